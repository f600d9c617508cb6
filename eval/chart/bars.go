package chart

import (
	"fmt"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
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

func (b *Bars) compose() (*plot.Plot, []key, error) {
	p := b.newPlot()
	colours := b.Theme.palette()
	p.Add(lattice{colours, true})
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
		p.Add(member{&b.Frame, []plot.Plotter{row}})
	}
	down(p, b.Classes)
	return p, keys, nil
}

// down names rows from the top, on an axis with a place for each.
func down(p *plot.Plot, rows []string) {
	p.Y.Tick.Marker = downTicks(rows)
	p.Y.Min, p.Y.Max = -0.5, float64(len(rows))-0.5
	p.Y.Tick.LineStyle.Width = 0
}

// halfRow is half the height of what stands in a row: a part of the row, and no
// more than looks well where rows are few.
func halfRow(y func(float64) vg.Length) vg.Length { return min((y(0.64)-y(0))/2, 9) }

// A bar is that of one class: where each series ends, after the start of the first, and its colour.
type bar struct {
	row  float64
	ends []float64
	hues []colour
}

// DataRange is plot.DataRanger.
func (b bar) DataRange() (xmin, xmax, ymin, ymax float64) {
	return 0, b.ends[len(b.ends)-1], b.row - 0.5, b.row + 0.5
}

// Plot is plot.Plotter.
func (b bar) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	middle, half := y(b.row), halfRow(y)
	for i, hue := range b.hues {
		if from, to := x(b.ends[i]), x(b.ends[i+1]); to > from {
			box(c, hue, from, middle-half, to, middle+half)
		}
	}
}
