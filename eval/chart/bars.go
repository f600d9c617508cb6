package chart

import (
	"fmt"
	"slices"
)

// Bars are the parts of a whole for each class: a bar to the right for each,
// the series one behind the other in it. Values are 0 or above.
type Bars struct {
	Frame

	// Classes are the names of the bars, from the top.
	Classes []string
	Series  []Bar
}

// A Bar is the values of one series.
type Bar struct {
	Name string
	Y    []float64
}

func (b *Bars) frame() *Frame { return &b.Frame }

func (b *Bars) compose() (*plot, []key, error) {
	p := b.newPlot()
	colours := b.Theme.palette()
	p.add(lattice{colours, true})
	ends := make([]float64, len(b.Classes))
	var keys []key
	for i := range b.Series {
		s := &b.Series[i]
		if len(s.Y) != len(b.Classes) {
			return nil, nil, fmt.Errorf("%w: %q has %d bars for %d classes", ErrValue, s.Name, len(s.Y), len(b.Classes))
		}
		from := slices.Clone(ends)
		for k, v := range s.Y {
			if !(v >= 0) {
				return nil, nil, fmt.Errorf("%w: bar %q of %q is %v", ErrValue, s.Name, b.Classes[k], v)
			}
			ends[k] += v
		}
		p.add(bars{from: from, to: slices.Clone(ends), hue: colours.hue(i)})
		keys = append(keys, key{name: s.Name, colour: colours.hue(i), filled: true})
	}
	down(p, b.Classes)
	return p, keys, nil
}

// down names rows from the top, on an axis with a place for each.
func down(p *plot, rows []string) {
	p.y.ticks, p.y.bare = downTicks(rows), true
	p.y.min, p.y.max = -0.5, float64(len(rows))-0.5
}

// halfRow is half the height of what stands in a row: a part of the row, and no
// more than looks well where rows are few.
func halfRow(y func(float64) float64) float64 { return min((y(0.64)-y(0))/2, 9) }

// bars draws one series from where the one before it ends.
type bars struct {
	from, to []float64
	hue      colour
}

// extent implements ranger.
func (b bars) extent() (xMin, xMax, yMin, yMax float64) {
	if len(b.to) == 0 {
		return 0, 0, 0, 0
	}
	return 0, slices.Max(b.to), -0.5, float64(len(b.to)) - 0.5
}

// draw implements mark.
func (b bars) draw(c canvas, p *plot) {
	x, y := p.places(c)
	for i := range b.to {
		middle := float64(len(b.to) - 1 - i)
		half := halfRow(y)
		if from, to := x(b.from[i]), x(b.to[i]); to > from {
			c.box(b.hue, from, y(middle)-half, to, y(middle)+half)
		}
	}
}
