package chart

import (
	"fmt"
	"math"
	"slices"
)

// Lines are values along an axis, joined.
type Lines struct {
	Frame
	Series []Line

	// Distinct gives each line dashes and marks of its own, for those who see no colours. The
	// marks of one line stand between those of others, so that lines in one place are seen to
	// be several.
	Distinct bool
}

// dashes are the patterns of lines that differ: none, then what is told apart
// at the width of a legend.
var dashes = [][]float64{nil, {7, 3}, {2, 2}, {7, 2, 2, 2}, {4, 2}, {11, 3}, {7, 2, 2, 2, 2, 2}, {1, 3}, {4, 4}, {11, 2, 4, 2}, {3, 5}}

// pattern returns the dashes of series i at a place among the colours.
func (l *Lines) pattern(i, place int) []float64 {
	switch {
	case l.Series[i].Dashed:
		return []float64{6, 4}
	case l.Distinct:
		return dashes[place%len(dashes)]
	}
	return nil
}

// A Line is one of them. X ascends. A NaN in Y leaves a gap.
type Line struct {
	Name string
	X, Y []float64

	// Colour is the place of its colour, from 1; 0 means that of the line.
	Colour int

	// Step holds a value until the next one, as prices do.
	Step bool

	// Dashed marks what is compared with.
	Dashed bool

	// Low and High, when set, are the ends of an interval around each value.
	Low, High []float64
}

func (l *Lines) frame() *Frame { return &l.Frame }

func (l *Lines) compose() (*plot, []key, error) {
	p := l.newPlot()
	colours := l.Theme.palette()
	p.add(lattice{colours, false})
	var keys []key
	for i := range l.Series {
		s := &l.Series[i]
		at := place(i, s.Colour)
		hue, pattern := colours.hue(at), l.pattern(i, at)
		if len(s.X) != len(s.Y) || len(s.Low) != len(s.High) || s.Low != nil && len(s.Low) != len(s.X) {
			return nil, nil, fmt.Errorf("%w: line %q has %d x, %d y and %d, %d bounds", ErrValue, s.Name, len(s.X), len(s.Y), len(s.Low), len(s.High))
		}
		var parts []mark
		if s.Low != nil {
			outline := band(s)
			if !finite(outline) {
				return nil, nil, fmt.Errorf("%w: a bound of line %q is not a number", ErrValue, s.Name)
			}
			parts = append(parts, hull{outline, veil(hue, 0x38)})
		}
		for _, part := range pieces(s) {
			if !finite(part) {
				return nil, nil, fmt.Errorf("%w: a value of line %q is not a number", ErrValue, s.Name)
			}
			parts = append(parts, curve{part, pen{hue, 1.8, pattern}, s.Step})
		}
		k := key{name: s.Name, colour: hue, dashes: pattern}
		if l.Distinct && len(s.X) > 0 {
			k.mark = shape(at)
			parts = append(parts, marks{s, hue, k.mark, (float64(i) + 0.5) / float64(len(l.Series))})
		}
		p.add(member{&l.Frame, parts})
		keys = append(keys, k)
	}
	return p, keys, nil
}

// pieces are the points of s between its gaps.
func pieces(s *Line) [][]point {
	var all [][]point
	open := false
	for i, y := range s.Y {
		if math.IsNaN(y) {
			if open && s.Step { // the last value holds up to the gap
				last := &all[len(all)-1]
				*last = append(*last, point{s.X[i], (*last)[len(*last)-1].Y})
			}
			open = false
			continue
		}
		if !open {
			all = append(all, nil)
			open = true
		}
		all[len(all)-1] = append(all[len(all)-1], point{s.X[i], y})
	}
	return all
}

// marksOf is how many marks a line has.
const marksOf = 4

// marks are a few glyphs on a line, the first a part of the distance between two from its start.
type marks struct {
	*Line
	hue   colour
	shape glyph
	phase float64
}

// draw implements mark.
func (m marks) draw(c canvas, p *plot) {
	x, y := p.places(c)
	first, length := m.X[0], m.X[len(m.X)-1]-m.X[0]
	for i := range marksOf {
		n, _ := slices.BinarySearch(m.X, first+float64(length*(float64(i)+m.phase)/marksOf))
		if n == len(m.X) || math.IsNaN(m.Y[n]) {
			continue
		}
		if at := (point{x(m.X[n]), y(m.Y[n])}); c.hasX(at.X) && c.hasY(at.Y) {
			c.fill(m.shape.at(at, markRadius), m.hue)
		}
	}
}

// band returns the outline of the interval around a line.
func band(s *Line) []point {
	var outline []point
	for i, x := range s.X {
		outline = append(outline, point{x, s.High[i]})
	}
	for i := len(s.X) - 1; i >= 0; i-- {
		outline = append(outline, point{s.X[i], s.Low[i]})
	}
	return outline
}

// finite reports whether all of points are numbers.
func finite(points []point) bool {
	return !slices.ContainsFunc(points, func(p point) bool { return math.IsNaN(p.X-p.X) || math.IsNaN(p.Y-p.Y) })
}

// extent returns the least and greatest coordinates of points.
func extent(points []point) (xMin, xMax, yMin, yMax float64) {
	xMin, xMax, yMin, yMax = math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)
	for _, p := range points {
		xMin, xMax, yMin, yMax = min(xMin, p.X), max(xMax, p.X), min(yMin, p.Y), max(yMax, p.Y)
	}
	return xMin, xMax, yMin, yMax
}

// placed returns values as places on c.
func (p *plot) placed(c canvas, values []point) []point {
	x, y := p.places(c)
	all := make([]point, len(values))
	for i, v := range values {
		all[i] = point{x(v.X), y(v.Y)}
	}
	return all
}

// A curve draws values, joined, and by steps if asked.
type curve struct {
	values []point
	pen    pen
	step   bool
}

// extent implements ranger.
func (l curve) extent() (xMin, xMax, yMin, yMax float64) { return extent(l.values) }

// draw implements mark.
func (l curve) draw(c canvas, p *plot) {
	for _, part := range c.clipLine(p.placed(c, l.values)) {
		if l.step {
			part = stepped(part)
		}
		c.stroke(outline{points: part}, l.pen)
	}
}

// stepped returns a line that keeps its height up to each of the points.
func stepped(line []point) []point {
	all := []point{line[0]}
	for i, p := range line[1:] {
		all = append(all, point{p.X, line[i].Y}, p)
	}
	return all
}

// A hull fills the outline of an interval.
type hull struct {
	values []point
	colour colour
}

// extent implements ranger.
func (h hull) extent() (xMin, xMax, yMin, yMax float64) { return extent(h.values) }

// draw implements mark.
func (h hull) draw(c canvas, p *plot) { c.polygon(h.colour, c.clipPolygon(p.placed(c, h.values))) }

// A lattice is the faint lines at the named ticks.
type lattice struct {
	colours *palette

	// rows says that y counts rows, between which lines would say nothing.
	rows bool
}

// draw implements mark.
func (l lattice) draw(c canvas, p *plot) {
	x, y := p.places(c)
	line := pen{colour: l.colours.grid, width: 0.75}
	for _, t := range p.x.tickMarks() {
		if t.label != "" {
			c.line(line, x(t.value), c.Min.Y, x(t.value), c.Max.Y)
		}
	}
	if l.rows {
		return
	}
	for _, t := range p.y.tickMarks() {
		if t.label != "" {
			c.line(line, c.Min.X, y(t.value), c.Max.X, y(t.value))
		}
	}
}
