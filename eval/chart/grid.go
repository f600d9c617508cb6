package chart

import (
	"fmt"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// A Grid is a value for each pair of names, written into its cell and shown by
// its colour.
type Grid struct {
	Frame
	Rows, Columns []string

	// Values holds a list for each row; NaN is left blank. Low and High are the
	// values of the ends of the colours; where Low ≥ High the values say.
	Values    [][]float64
	Low, High float64
}

func (g *Grid) frame() *Frame { return &g.Frame }

func (g *Grid) compose() (*plot.Plot, []key, error) {
	p := g.newPlot()
	if len(g.Values) != len(g.Rows) || len(g.Rows) == 0 || len(g.Columns) == 0 {
		return nil, nil, fmt.Errorf("%w: %d lists of values for %d rows of %d", ErrValue, len(g.Values), len(g.Rows), len(g.Columns))
	}
	for i, row := range g.Values {
		if len(row) != len(g.Columns) {
			return nil, nil, fmt.Errorf("%w: row %q has %d values for %d columns", ErrValue, g.Rows[i], len(row), len(g.Columns))
		}
	}
	p.Add(grid{g})
	p.X.Tick.Marker, p.Y.Tick.Marker = classTicks(g.Columns), downTicks(g.Rows)
	p.X.Min, p.X.Max = -0.5, float64(len(g.Columns))-0.5
	p.Y.Min, p.Y.Max = -0.5, float64(len(g.Rows))-0.5
	return p, nil, nil
}

// downTicks name rows from the top.
type downTicks []string

// Ticks is plot.Ticker.
func (t downTicks) Ticks(float64, float64) []plot.Tick {
	ticks := make([]plot.Tick, len(t))
	for i, name := range t {
		ticks[i] = plot.Tick{Value: float64(len(t) - 1 - i), Label: name}
	}
	return ticks
}

type grid struct{ *Grid }

func (g grid) ends() (low, high float64) {
	if low, high = g.Low, g.High; low < high {
		return low, high
	}
	low, high = math.Inf(1), math.Inf(-1)
	for _, row := range g.Values {
		for _, v := range row {
			if !math.IsNaN(v) {
				low, high = min(low, v), max(high, v)
			}
		}
	}
	return low, high
}

// Plot is plot.Plotter.
func (g grid) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	low, high := g.ends()
	colours := g.Theme.palette()
	for i, row := range g.Values {
		middle := float64(len(g.Rows) - 1 - i)
		for j, v := range row {
			if math.IsNaN(v) {
				continue
			}
			share := (v - low) / (high - low)
			if !(high > low) {
				share = 0.5
			}
			at := float64(j)
			box(c, colours.between(share), x(at-0.48), y(middle-0.46), x(at+0.48), y(middle+0.46))
			word := style(10, colours.ink)
			if share > 0.55 {
				word.Color = colours.paper
			}
			word.XAlign, word.YAlign = draw.XCenter, draw.YCenter
			c.FillText(word, vg.Point{X: x(at), Y: y(middle)}, fmt.Sprintf("%.2f", v))
		}
	}
}

// A Raster is states over time, a row for each thing that has one.
type Raster struct {
	Frame

	// States are the names of the legend; a span's State is an index into it.
	States []string
	Rows   []Strip
}

// A Strip is one row.
type Strip struct {
	Name  string
	Spans []Span
}

// A Span is a time in one state.
type Span struct {
	From, To float64
	State    int
}

func (r *Raster) frame() *Frame { return &r.Frame }

func (r *Raster) compose() (*plot.Plot, []key, error) {
	p := r.newPlot()
	low, high := math.Inf(1), math.Inf(-1)
	names := make([]string, len(r.Rows))
	for i := range r.Rows {
		names[i] = r.Rows[i].Name
		for _, s := range r.Rows[i].Spans {
			if s.State < 0 || s.State >= len(r.States) {
				return nil, nil, fmt.Errorf("%w: state %d of row %q; there are %d", ErrValue, s.State, names[i], len(r.States))
			}
			low, high = min(low, s.From), max(high, s.To)
		}
	}
	p.X.Min, p.X.Max = low, high
	p.Y.Min, p.Y.Max = -0.5, float64(len(r.Rows))-0.5
	p.Y.Tick.Marker = downTicks(names)
	p.Add(raster{r})
	var keys []key
	for i, name := range r.States {
		keys = append(keys, key{name: name, colour: r.Theme.state(i), filled: true})
	}
	return p, keys, nil
}

// state is the colour of a state: the first is the calm one.
func (t Theme) state(i int) colour {
	c := t.palette()
	if i == 0 {
		return c.between(0.25)
	}
	return c.hue(i)
}

type raster struct{ *Raster }

// Plot is plot.Plotter.
func (r raster) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for i := range r.Rows {
		middle := float64(len(r.Rows) - 1 - i)
		for _, s := range r.Rows[i].Spans {
			from, to := max(s.From, p.X.Min), min(s.To, p.X.Max)
			if from < to {
				box(c, r.Theme.state(s.State), x(from), y(middle-0.4), x(to), y(middle+0.4))
			}
		}
	}
}
