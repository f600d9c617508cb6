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

	// The ends of the intervals; nil where there are none.
	XLow, XHigh, YLow, YHigh []float64

	// Joined draws a line through the points.
	Joined bool
}

func (p *Points) frame() *Frame { return &p.Frame }

func (p *Points) compose() (*plot.Plot, []key, error) {
	drawn := p.newPlot()
	colours := p.Theme.palette()
	drawn.Add(lattice{colours})
	var keys []key
	for i := range p.Series {
		s := &p.Series[i]
		n := len(s.X)
		for _, list := range [...][]float64{s.Y, s.XLow, s.XHigh, s.YLow, s.YHigh} {
			if len(list) != n && list != nil || len(s.Y) != n {
				return nil, nil, fmt.Errorf("%w: %q has %d x and %d other values", ErrValue, s.Name, n, len(list))
			}
		}
		drawn.Add(cloud{s, colours.hue(i), i})
		keys = append(keys, key{name: s.Name, colour: colours.hue(i)})
	}
	return drawn, keys, nil
}

// A cloud draws a Cloud. Its shape differs from that of its neighbours, for
// those who see no colours.
type cloud struct {
	*Cloud
	hue   colour
	shape int
}

// DataRange is plot.DataRanger.
func (s cloud) DataRange() (xmin, xmax, ymin, ymax float64) {
	xmin, xmax = plotter.Range(values(s.X, s.XLow, s.XHigh))
	ymin, ymax = plotter.Range(values(s.Y, s.YLow, s.YHigh))
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
	if s.Joined {
		var line []vg.Point
		for i := range s.X {
			line = append(line, vg.Point{X: x(s.X[i]), Y: y(s.Y[i])})
		}
		c.StrokeLines(stroke(veil(s.hue, 0x90), 1.4, false), line)
	}
	whisker := stroke(s.hue, 1.2, false)
	for i := range s.X {
		at := vg.Point{X: x(s.X[i]), Y: y(s.Y[i])}
		if s.XLow != nil {
			c.StrokeLine2(whisker, x(s.XLow[i]), at.Y, x(s.XHigh[i]), at.Y)
		}
		if s.YLow != nil {
			c.StrokeLine2(whisker, at.X, y(s.YLow[i]), at.X, y(s.YHigh[i]))
		}
		shape := [...]draw.GlyphDrawer{draw.CircleGlyph{}, draw.BoxGlyph{}, draw.PyramidGlyph{}}[s.shape%3]
		c.DrawGlyphNoClip(draw.GlyphStyle{Color: s.hue, Radius: 4, Shape: shape}, at)
	}
}
