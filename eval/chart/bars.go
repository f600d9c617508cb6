package chart

import (
	"fmt"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg/draw"
)

// Bars are a value for each class, side by side for several series. The axis
// of values begins at 0 unless it is given other bounds.
type Bars struct {
	Frame

	// Classes are the names below the bars.
	Classes []string
	Series  []Bar
}

// A Bar is the values of one series.
type Bar struct {
	Name string
	Y    []float64
}

// Histogram counts values into equal classes between from and to; values
// outside go to the outermost.
func Histogram(frame Frame, name string, values []float64, from, to float64, classes int) *Bars {
	b := &Bars{Frame: frame, Series: []Bar{{Name: name, Y: make([]float64, classes)}}}
	width := (to - from) / float64(classes)
	for i := range classes {
		b.Classes = append(b.Classes, number(from+float64(float64(i)*width), width, frame.X.Percent))
	}
	for _, v := range values {
		b.Series[0].Y[max(0, min(classes-1, int((v-from)/width)))]++
	}
	return b
}

func (b *Bars) frame() *Frame { return &b.Frame }

func (b *Bars) compose() (*plot.Plot, []key, error) {
	p := b.newPlot()
	colours := b.Theme.palette()
	p.Add(lattice{colours})
	var keys []key
	for i := range b.Series {
		if s := &b.Series[i]; len(s.Y) != len(b.Classes) {
			return nil, nil, fmt.Errorf("%w: %q has %d bars for %d classes", ErrValue, s.Name, len(s.Y), len(b.Classes))
		}
		p.Add(bars{b, i, colours.hue(i)})
		keys = append(keys, key{name: b.Series[i].Name, colour: colours.hue(i), filled: true})
	}
	p.X.Tick.Marker = classTicks(b.Classes)
	p.X.Min, p.X.Max = -0.5, float64(len(b.Classes))-0.5
	return p, keys, nil
}

// classTicks name every class, or every second, third … where they are many.
type classTicks []string

// Ticks is plot.Ticker.
func (t classTicks) Ticks(float64, float64) []plot.Tick {
	const most = 12
	every := (len(t) + most - 1) / most
	var ticks []plot.Tick
	for i, name := range t {
		if i%every == 0 {
			ticks = append(ticks, plot.Tick{Value: float64(i), Label: name})
		}
	}
	return ticks
}

// bars draws one series.
type bars struct {
	*Bars
	index int
	hue   colour
}

// DataRange is plot.DataRanger.
func (b bars) DataRange() (xmin, xmax, ymin, ymax float64) {
	ymin, ymax = plotter.Range(plotter.Values(b.Series[b.index].Y))
	if !b.Y.Log {
		ymin, ymax = min(0, ymin), max(0, ymax)
	}
	return -0.5, float64(len(b.Classes)) - 0.5, ymin, ymax
}

// Plot is plot.Plotter.
func (b bars) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	const group = 0.8 // of a class; the rest is the gap
	width := group / float64(len(b.Series))
	base := max(0, p.Y.Min)
	if b.Bars.Y.Log {
		base = p.Y.Min
	}
	for i, v := range b.Series[b.index].Y {
		left := float64(i) - group/2 + float64(float64(b.index)*width)
		box(c, b.hue, x(left), y(base), x(left+width), y(v))
	}
}
