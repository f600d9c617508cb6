package chart

import (
	"fmt"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Lines are values along an axis, joined.
type Lines struct {
	Frame
	Series []Line
}

// A Line is one of them. X ascends. A NaN in Y leaves a gap.
type Line struct {
	Name string
	X, Y []float64

	// Step holds a value until the next one, as prices do.
	Step bool

	// Dashed marks what is compared with.
	Dashed bool

	// Low and High, when set, are the ends of an interval around each value.
	Low, High []float64
}

func (l *Lines) frame() *Frame { return &l.Frame }

func (l *Lines) compose() (*plot.Plot, []key, error) {
	p := l.newPlot()
	colours := l.Theme.palette()
	p.Add(lattice{colours})
	var keys []key
	for i := range l.Series {
		s, hue := &l.Series[i], colours.hue(i)
		if len(s.X) != len(s.Y) || len(s.Low) != len(s.High) || s.Low != nil && len(s.Low) != len(s.X) {
			return nil, nil, fmt.Errorf("%w: line %q has %d x, %d y and %d, %d bounds", ErrValue, s.Name, len(s.X), len(s.Y), len(s.Low), len(s.High))
		}
		if s.Low != nil {
			if err := band(p, s, hue); err != nil {
				return nil, nil, err
			}
		}
		for _, part := range pieces(s) {
			line, err := plotter.NewLine(part)
			if err != nil {
				return nil, nil, fmt.Errorf("%w: line %q: %w", ErrValue, s.Name, err)
			}
			if line.LineStyle = stroke(hue, 1.8, s.Dashed); s.Step {
				line.StepStyle = plotter.PostStep
			}
			p.Add(line)
		}
		keys = append(keys, key{name: s.Name, colour: hue, dashed: s.Dashed})
	}
	return p, keys, nil
}

// pieces are the points of s between its gaps.
func pieces(s *Line) []plotter.XYs {
	var all []plotter.XYs
	open := false
	for i, y := range s.Y {
		if math.IsNaN(y) {
			if open && s.Step { // the last value holds up to the gap
				last := &all[len(all)-1]
				*last = append(*last, plotter.XY{X: s.X[i], Y: (*last)[len(*last)-1].Y})
			}
			open = false
			continue
		}
		if !open {
			all = append(all, nil)
			open = true
		}
		all[len(all)-1] = append(all[len(all)-1], plotter.XY{X: s.X[i], Y: y})
	}
	return all
}

// band fills the interval around a line.
func band(p *plot.Plot, s *Line, hue colour) error {
	var outline plotter.XYs
	for i, x := range s.X {
		outline = append(outline, plotter.XY{X: x, Y: s.High[i]})
	}
	for i := len(s.X) - 1; i >= 0; i-- {
		outline = append(outline, plotter.XY{X: s.X[i], Y: s.Low[i]})
	}
	area, err := plotter.NewPolygon(outline)
	if err != nil {
		return fmt.Errorf("%w: bounds of line %q: %w", ErrValue, s.Name, err)
	}
	area.Color = veil(hue, 0x38)
	area.LineStyle.Width = 0
	p.Add(area)
	return nil
}

// A lattice is the faint lines at the named ticks.
type lattice struct{ colours *palette }

// Plot is plot.Plotter.
func (l lattice) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	line := stroke(l.colours.grid, 0.75, false)
	for _, t := range p.X.Tick.Marker.Ticks(p.X.Min, p.X.Max) {
		if t.Label != "" {
			c.StrokeLine2(line, x(t.Value), c.Min.Y, x(t.Value), c.Max.Y)
		}
	}
	for _, t := range p.Y.Tick.Marker.Ticks(p.Y.Min, p.Y.Max) {
		if t.Label != "" {
			c.StrokeLine2(line, c.Min.X, y(t.Value), c.Max.X, y(t.Value))
		}
	}
}

// box fills a rectangle between two points of the canvas.
func box(c draw.Canvas, hue colour, x0, y0, x1, y1 vg.Length) {
	c.FillPolygon(hue, []vg.Point{{X: x0, Y: y0}, {X: x1, Y: y0}, {X: x1, Y: y1}, {X: x0, Y: y1}})
}
