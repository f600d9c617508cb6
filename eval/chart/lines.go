package chart

import (
	"fmt"
	"math"
	"sort"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
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
var dashes = [][]vg.Length{nil, {7, 3}, {2, 2}, {7, 2, 2, 2}, {4, 2}, {11, 3}, {7, 2, 2, 2, 2, 2}, {1, 3}, {4, 4}, {11, 2, 4, 2}, {3, 5}}

// pattern returns the dashes of series i at a place among the colours.
func (l *Lines) pattern(i, place int) []vg.Length {
	switch {
	case l.Series[i].Dashed:
		return []vg.Length{6, 4}
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

func (l *Lines) compose() (*plot.Plot, []key, error) {
	p := l.newPlot()
	colours := l.Theme.palette()
	p.Add(lattice{colours, false})
	var keys []key
	for i := range l.Series {
		s := &l.Series[i]
		at := place(i, s.Colour)
		hue, pattern := colours.hue(at), l.pattern(i, at)
		if len(s.X) != len(s.Y) || len(s.Low) != len(s.High) || s.Low != nil && len(s.Low) != len(s.X) {
			return nil, nil, fmt.Errorf("%w: line %q has %d x, %d y and %d, %d bounds", ErrValue, s.Name, len(s.X), len(s.Y), len(s.Low), len(s.High))
		}
		var parts []plot.Plotter
		if s.Low != nil {
			area, err := band(s, hue)
			if err != nil {
				return nil, nil, err
			}
			parts = append(parts, area)
		}
		for _, part := range pieces(s) {
			line, err := plotter.NewLine(part)
			if err != nil {
				return nil, nil, fmt.Errorf("%w: line %q: %w", ErrValue, s.Name, err)
			}
			if line.LineStyle = stroke(hue, 1.8, pattern); s.Step {
				line.StepStyle = plotter.PostStep
			}
			parts = append(parts, line)
		}
		k := key{name: s.Name, colour: hue, dashes: pattern}
		if l.Distinct && len(s.X) > 0 {
			k.mark = shape(at)
			parts = append(parts, marks{s, hue, k.mark, (float64(i) + 0.5) / float64(len(l.Series))})
		}
		p.Add(member{&l.Frame, parts})
		keys = append(keys, k)
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

// marksOf is how many marks a line has.
const marksOf = 4

// marks are a few glyphs on a line, the first a part of the distance between two from its start.
type marks struct {
	*Line
	hue   colour
	shape draw.GlyphDrawer
	phase float64
}

// Plot is plot.Plotter.
func (m marks) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	first, length := m.X[0], m.X[len(m.X)-1]-m.X[0]
	for i := range marksOf {
		at := sort.SearchFloat64s(m.X, first+float64(length*(float64(i)+m.phase)/marksOf))
		if at < len(m.X) && !math.IsNaN(m.Y[at]) {
			c.DrawGlyph(draw.GlyphStyle{Color: m.hue, Radius: 3, Shape: m.shape}, vg.Point{X: x(m.X[at]), Y: y(m.Y[at])})
		}
	}
}

// band returns the area of the interval around a line.
func band(s *Line, hue colour) (plot.Plotter, error) {
	var outline plotter.XYs
	for i, x := range s.X {
		outline = append(outline, plotter.XY{X: x, Y: s.High[i]})
	}
	for i := len(s.X) - 1; i >= 0; i-- {
		outline = append(outline, plotter.XY{X: s.X[i], Y: s.Low[i]})
	}
	area, err := plotter.NewPolygon(outline)
	if err != nil {
		return nil, fmt.Errorf("%w: bounds of line %q: %w", ErrValue, s.Name, err)
	}
	area.Color = veil(hue, 0x38)
	area.LineStyle.Width = 0
	return area, nil
}

// A lattice is the faint lines at the named ticks.
type lattice struct {
	colours *palette

	// rows says that y counts rows, between which lines would say nothing.
	rows bool
}

// Plot is plot.Plotter.
func (l lattice) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	line := stroke(l.colours.grid, 0.75, nil)
	for _, t := range p.X.Tick.Marker.Ticks(p.X.Min, p.X.Max) {
		if t.Label != "" {
			c.StrokeLine2(line, x(t.Value), c.Min.Y, x(t.Value), c.Max.Y)
		}
	}
	if l.rows {
		return
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
