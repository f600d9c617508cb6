// Package chart turns numbers into pictures: lines and steps, distribution
// functions, points with intervals, bars of parts, boxes of distributions,
// grids of amounts and rasters of states over time, as SVG or PNG.
//
// A picture is a value that is filled in and given to [Write]. It does not know the source of its
// numbers. Its Note names it for readers who see the picture alone. Equal values give equal bytes.
// Every SVG carries its title and a description for those who cannot see it.
//
//	err := chart.Write(file, chart.SVG, &chart.Lines{
//		Frame:  chart.Frame{Title: "Price", Note: "recorded", X: chart.Axis{Time: true}, Y: chart.Axis{Label: "$ per hour"}},
//		Series: []chart.Line{{Name: "m5.large", X: seconds, Y: dollars, Step: true}},
//	})
package chart
