package chart

import (
	"fmt"
	"math"
	"slices"
)

// Lines is a chart of values that are joined by lines.
type Lines struct {
	Frame
	Series []Line

	// Distinct gives each line its own dashes and markers, so that lines can be distinguished
	// without colours. The markers of each line are at different positions, so that overlapping
	// lines can be distinguished.
	Distinct bool
}

// dashes are the dash patterns of lines. They can be distinguished at the width of a legend entry.
var dashes = [][]float64{nil, {7, 3}, {2, 2}, {7, 2, 2, 2}, {4, 2}, {11, 3}, {7, 2, 2, 2, 2, 2}, {1, 3}, {4, 4},
	{11, 2, 4, 2}, {3, 5}}

// pattern returns the dash pattern of series i. place is the index of its colour.
func (l *Lines) pattern(i, place int) []float64 {
	switch {
	case l.Series[i].Dashed:
		return []float64{6, 4}
	case l.Distinct:
		return dashes[place%len(dashes)]
	}
	return nil
}

// A Line is one series. X must ascend. NaN in Y is a gap.
type Line struct {
	Name string
	X, Y []float64

	// Colour is the index of the colour, from 1; 0 means the index of the line.
	Colour int

	// Step keeps each value until the next one, as for prices.
	Step bool

	// Dashed marks a series that others are compared with.
	Dashed bool
}

func (l *Lines) compose() (*plot, error) {
	p := l.newPlot()
	for i := range l.Series {
		s := &l.Series[i]
		if len(s.X) != len(s.Y) {
			return nil, fmt.Errorf("%w: line %q has %d x and %d y", ErrValue, s.Name, len(s.X), len(s.Y))
		}
		parts := s.pieces()
		for _, part := range parts {
			for _, v := range part {
				p.x.show([]float64{v.x})
				p.y.show([]float64{v.y})
			}
		}
		at := place(i, s.Colour)
		k := key{name: s.Name, colour: l.Theme.palette().hue(at), dashes: l.pattern(i, at), line: true}
		if l.Distinct {
			k.glyph = shape(at)
		}
		p.keys = append(p.keys, k)
		p.series(func(c canvas) {
			for _, part := range parts {
				c.stroke(pen{k.colour, 1.8, k.dashes}, c.places(part))
			}
			if k.glyph != nil {
				s.mark(c, &k, (float64(i)+0.5)/float64(len(l.Series)))
			}
		})
	}
	return p, nil
}

// pieces returns the points of s between gaps. For steps, it inserts a point at the end of each
// step, and extends the last value to the gap.
func (s *Line) pieces() [][]point {
	var all [][]point
	open := false
	for i, y := range s.Y {
		gap := math.IsNaN(y)
		if !gap && !open {
			all = append(all, nil)
		}
		if open && s.Step {
			last := &all[len(all)-1]
			*last = append(*last, point{s.X[i], (*last)[len(*last)-1].y})
		}
		if open = !gap; open {
			all[len(all)-1] = append(all[len(all)-1], point{s.X[i], y})
		}
	}
	return all
}

// marksOf is the number of markers on a line.
const marksOf = 4

// mark draws marksOf markers on s. phase in [0, 1) is the position of the first one, in units of
// the distance between two markers.
func (s *Line) mark(c canvas, k *key, phase float64) {
	if len(s.X) == 0 {
		return
	}
	first, length := s.X[0], s.X[len(s.X)-1]-s.X[0]
	for i := range marksOf {
		n, _ := slices.BinarySearch(s.X, first+float64(length*(float64(i)+phase)/marksOf))
		if n < len(s.X) && !math.IsNaN(s.Y[n]) {
			k.glyph.draw(c, k.colour, point{c.x(s.X[n]), c.y(s.Y[n])}, markRadius)
		}
	}
}
