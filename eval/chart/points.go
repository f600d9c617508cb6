package chart

import (
	"fmt"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Points are single values, each with an interval in either direction where
// that is known.
type Points struct {
	Frame
	Series []Cloud
}

// A Cloud is the points of one kind.
type Cloud struct {
	Name string
	X, Y []float64

	// The ends of the intervals of Y; nil where there are none.
	YLow, YHigh []float64

	// Joined draws a line through the points.
	Joined bool

	// Small are further points of the kind, drawn as dots.
	SmallX, SmallY []float64

	// Colour is the place of its colour and shape, from 1; 0 means that of the
	// cloud.
	Colour int
}

// shapes tell clouds apart for those who see no colours. Their number and that
// of colours have no common factor, so that many pairs differ.
var shapes = [...]draw.GlyphDrawer{
	draw.CircleGlyph{},
	polygon{{X: -0.9, Y: -0.9}, {X: 0.9, Y: -0.9}, {X: 0.9, Y: 0.9}, {X: -0.9, Y: 0.9}},
	polygon{{X: -1.1, Y: -0.9}, {X: 1.1, Y: -0.9}, {X: 0, Y: 1.1}},
	polygon{{X: 0, Y: -1.3}, {X: 1.1, Y: 0}, {X: 0, Y: 1.3}, {X: -1.1, Y: 0}},
	polygon{{X: -1.1, Y: 0.9}, {X: 1.1, Y: 0.9}, {X: 0, Y: -1.1}},
	polygon{{X: -0.4, Y: -1.2}, {X: 0.4, Y: -1.2}, {X: 0.4, Y: -0.4}, {X: 1.2, Y: -0.4}, {X: 1.2, Y: 0.4}, {X: 0.4, Y: 0.4},
		{X: 0.4, Y: 1.2}, {X: -0.4, Y: 1.2}, {X: -0.4, Y: 0.4}, {X: -1.2, Y: 0.4}, {X: -1.2, Y: -0.4}, {X: -0.4, Y: -0.4}},
	polygon{{X: -1.2, Y: -0.45}, {X: 1.2, Y: -0.45}, {X: 1.2, Y: 0.45}, {X: -1.2, Y: 0.45}},
	polygon{{X: -0.45, Y: -1.2}, {X: 0.45, Y: -1.2}, {X: 0.45, Y: 1.2}, {X: -0.45, Y: 1.2}},
}

// A polygon is a filled shape, its corners in radii.
type polygon []vg.Point

// DrawGlyph is draw.GlyphDrawer.
func (g polygon) DrawGlyph(c *draw.Canvas, style draw.GlyphStyle, at vg.Point) {
	corners := make([]vg.Point, len(g))
	for i, p := range g {
		corners[i] = vg.Point{X: at.X + p.X*style.Radius, Y: at.Y + p.Y*style.Radius}
	}
	c.FillPolygon(style.Color, corners)
}

func shape(place int) draw.GlyphDrawer { return shapes[place%len(shapes)] }

func (p *Points) frame() *Frame { return &p.Frame }

func (p *Points) compose() (*plot.Plot, []key, error) {
	drawn := p.newPlot()
	colours := p.Theme.palette()
	drawn.Add(lattice{colours, false})
	var keys []key
	for i := range p.Series {
		s := &p.Series[i]
		n := len(s.X)
		for _, list := range [...][]float64{s.Y, s.YLow, s.YHigh} {
			if len(list) != n && list != nil || len(s.Y) != n {
				return nil, nil, fmt.Errorf("%w: %q has %d x and %d other values", ErrValue, s.Name, n, len(list))
			}
		}
		if len(s.SmallX) != len(s.SmallY) {
			return nil, nil, fmt.Errorf("%w: %q has %d x and %d y of dots", ErrValue, s.Name, len(s.SmallX), len(s.SmallY))
		}
		at := place(i, s.Colour)
		drawn.Add(member{&p.Frame, []plot.Plotter{cloud{s, colours.hue(at), shape(at)}}})
		keys = append(keys, key{name: s.Name, colour: colours.hue(at), glyph: shape(at)})
	}
	widen(&drawn.X, &p.X)
	widen(&drawn.Y, &p.Y)
	return drawn, keys, nil
}

// widen makes room at the ends of an axis, so that what lies there is not cut.
func widen(a *plot.Axis, spec *Axis) {
	if free := (a.Max - a.Min) * 0.04; free > 0 && !spec.Log {
		a.Min, a.Max = a.Min-free, a.Max+free
	}
}

// A cloud draws a Cloud. Its shape differs from that of its neighbours, for
// those who see no colours.
type cloud struct {
	*Cloud
	hue   colour
	shape draw.GlyphDrawer
}

// DataRange is plot.DataRanger.
func (s cloud) DataRange() (xmin, xmax, ymin, ymax float64) {
	xmin, xmax = plotter.Range(values(s.X, s.SmallX))
	ymin, ymax = plotter.Range(values(s.Y, s.YLow, s.YHigh, s.SmallY))
	return xmin, xmax, ymin, ymax
}

func values(lists ...[]float64) plotter.Values {
	var all plotter.Values
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// Plot is plot.Plotter.
func (s cloud) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	spots := make([]vg.Point, len(s.SmallX))
	for i := range spots {
		spots[i] = vg.Point{X: x(s.SmallX[i]), Y: y(s.SmallY[i])}
	}
	dots(c, veil(s.hue, 0x80), spots)
	if s.Joined {
		var line []vg.Point
		for i := range s.X {
			line = append(line, vg.Point{X: x(s.X[i]), Y: y(s.Y[i])})
		}
		c.StrokeLines(stroke(veil(s.hue, 0x90), 1.4, nil), line)
	}
	whisker := stroke(s.hue, 1.2, nil)
	for i := range s.X {
		at := vg.Point{X: x(s.X[i]), Y: y(s.Y[i])}
		if s.YLow != nil {
			c.StrokeLine2(whisker, at.X, y(s.YLow[i]), at.X, y(s.YHigh[i]))
		}
		c.DrawGlyphNoClip(draw.GlyphStyle{Color: s.hue, Radius: 4.5, Shape: s.shape}, at)
	}
}

// dots draws small squares as one shape: hundreds of circles would be most of
// the bytes of a page.
func dots(c draw.Canvas, hue colour, at []vg.Point) {
	const half = 1.2
	var path vg.Path
	for _, p := range at {
		path.Move(vg.Point{X: p.X - half, Y: p.Y - half})
		path.Line(vg.Point{X: p.X + half, Y: p.Y - half})
		path.Line(vg.Point{X: p.X + half, Y: p.Y + half})
		path.Line(vg.Point{X: p.X - half, Y: p.Y + half})
		path.Close()
	}
	if len(path) > 0 {
		c.SetColor(hue)
		c.Fill(path)
	}
}
