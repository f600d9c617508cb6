package chart

// A point is a position in CSS pixels from the upper left corner.
type point struct{ x, y float64 }

// An area is a rectangle.
type area struct{ left, top, right, bottom float64 }

func (a area) corners() []point {
	return []point{{a.left, a.top}, {a.right, a.top}, {a.right, a.bottom}, {a.left, a.bottom}}
}

// A pen is the style of a line.
type pen struct {
	colour colour
	width  float64

	// dashes are the alternating lengths of dashes and gaps; nil means a solid line.
	dashes []float64
}

// A surface is a drawing. Later shapes cover earlier ones.
type surface interface {
	// fill fills the outlines as one shape.
	fill(c colour, outlines ...[]point)
	circle(c colour, centre point, radius float64)

	// dots draws a small square at each point.
	dots(c colour, at []point)
	stroke(p pen, line []point)

	// write writes a line of text. at is on the baseline, at the anchor of w.
	write(w words, at point, s string)

	// group draws a series that scripts on a page can hide. clip draws only the parts within an
	// area.
	group(paint func())
	clip(a area, paint func())
}

// dotRadius is half the side length of a dot.
const dotRadius = 1.2

// A canvas is the part of a surface between the axes. x and y convert values to positions.
type canvas struct {
	surface
	area
	x, y func(v float64) float64
}

// places converts values to positions.
func (c canvas) places(values []point) []point {
	all := make([]point, len(values))
	for i, v := range values {
		all[i] = point{c.x(v.x), c.y(v.y)}
	}
	return all
}

// zip returns the points with coordinates x and y.
func zip(x, y []float64) []point {
	all := make([]point, len(x))
	for i := range x {
		all[i] = point{x[i], y[i]}
	}
	return all
}
