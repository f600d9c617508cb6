package chart

// A point is a place in pixels of a screen, from the upper left corner.
type point struct{ x, y float64 }

// An area is a rectangle.
type area struct{ left, top, right, bottom float64 }

func (a area) corners() []point {
	return []point{{a.left, a.top}, {a.right, a.top}, {a.right, a.bottom}, {a.left, a.bottom}}
}

// A pen is how a line is drawn.
type pen struct {
	colour colour
	width  float64

	// dashes are the lengths of dashes and gaps in turn; nil is a line without gaps.
	dashes []float64
}

// A surface is a file that is drawn. What comes later covers what came before.
type surface interface {
	// fill fills outlines as one shape.
	fill(c colour, outlines ...[]point)
	circle(c colour, centre point, radius float64)

	// dots draws a small square at each point.
	dots(c colour, at []point)
	stroke(p pen, line []point)

	// write writes a line of text whose baseline is at a height, and has the anchor of w at x.
	write(w words, at point, s string)

	// group makes what paint draws a series that a page can hide; clip leaves out of it what is
	// outside an area.
	group(paint func())
	clip(a area, paint func())
}

// dotRadius is half the side of dots.
const dotRadius = 1.2

// A canvas is the part of a surface between axes, with the place of each value.
type canvas struct {
	surface
	area
	x, y func(v float64) float64
}

// places returns the positions of values.
func (c canvas) places(values []point) []point {
	all := make([]point, len(values))
	for i, v := range values {
		all[i] = point{c.x(v.x), c.y(v.y)}
	}
	return all
}

// zip makes points of coordinates.
func zip(x, y []float64) []point {
	all := make([]point, len(x))
	for i := range x {
		all[i] = point{x[i], y[i]}
	}
	return all
}
