// Package chart draws data as SVG or PNG: lines and steps, distribution functions, points with
// intervals, stacked bars, box plots, grids of counts and rasters of states over time.
//
// A picture is a value that is passed to [Write]. The package does not know the source of the data;
// a picture's Note names it for readers who see the picture alone. The output is deterministic.
// Every SVG has a title and a description for screen readers.
//
//	err := chart.Write(file, chart.SVG, &chart.Lines{
//		Frame:  chart.Frame{Title: "Price", Note: "recorded", X: chart.Axis{Time: true}, Y: chart.Axis{Label: "$ per hour"}},
//		Series: []chart.Line{{Name: "m5.large", X: seconds, Y: dollars, Step: true}},
//	})
package chart
