package chart

import "fmt"

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
	var keys []key
	rows := make([]bar, len(b.Classes))
	for k := range rows {
		rows[k] = bar{row: float64(len(b.Classes) - 1 - k), ends: []float64{0}}
	}
	for i := range b.Series {
		s := &b.Series[i]
		if len(s.Y) != len(b.Classes) {
			return nil, nil, fmt.Errorf("%w: %q has %d bars for %d classes", ErrValue, s.Name, len(s.Y), len(b.Classes))
		}
		for k, v := range s.Y {
			if !(v >= 0) {
				return nil, nil, fmt.Errorf("%w: bar %q of %q is %v", ErrValue, s.Name, b.Classes[k], v)
			}
			rows[k].ends, rows[k].hues = append(rows[k].ends, rows[k].ends[i]+v), append(rows[k].hues, colours.hue(i))
		}
		keys = append(keys, key{name: s.Name, colour: colours.hue(i), filled: true})
	}
	for _, row := range rows {
		p.add(member{&b.Frame, []mark{row}})
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

// A bar is that of one class: where each series ends, after the start of the first, and its colour.
type bar struct {
	row  float64
	ends []float64
	hues []colour
}

// extent implements ranger.
func (b bar) extent() (xMin, xMax, yMin, yMax float64) {
	return 0, b.ends[len(b.ends)-1], b.row - 0.5, b.row + 0.5
}

// draw implements mark.
func (b bar) draw(c canvas, p *plot) {
	x, y := p.places(c)
	middle, half := y(b.row), halfRow(y)
	for i, hue := range b.hues {
		if from, to := x(b.ends[i]), x(b.ends[i+1]); to > from {
			c.box(hue, from, middle-half, to, middle+half)
		}
	}
}
