package chart

import (
	"fmt"
	"math"
	"slices"
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
var shapes = [...]glyph{
	circle{},
	polygon{{X: -0.9, Y: -0.9}, {X: 0.9, Y: -0.9}, {X: 0.9, Y: 0.9}, {X: -0.9, Y: 0.9}},
	polygon{{X: -1.1, Y: -0.9}, {X: 1.1, Y: -0.9}, {X: 0, Y: 1.1}},
	polygon{{X: 0, Y: -1.3}, {X: 1.1, Y: 0}, {X: 0, Y: 1.3}, {X: -1.1, Y: 0}},
	polygon{{X: -1.1, Y: 0.9}, {X: 1.1, Y: 0.9}, {X: 0, Y: -1.1}},
	polygon{{X: -0.4, Y: -1.2}, {X: 0.4, Y: -1.2}, {X: 0.4, Y: -0.4}, {X: 1.2, Y: -0.4}, {X: 1.2, Y: 0.4}, {X: 0.4, Y: 0.4},
		{X: 0.4, Y: 1.2}, {X: -0.4, Y: 1.2}, {X: -0.4, Y: 0.4}, {X: -1.2, Y: 0.4}, {X: -1.2, Y: -0.4}, {X: -0.4, Y: -0.4}},
	polygon{{X: -1.2, Y: -0.45}, {X: 1.2, Y: -0.45}, {X: 1.2, Y: 0.45}, {X: -1.2, Y: 0.45}},
	polygon{{X: -0.45, Y: -1.2}, {X: 0.45, Y: -1.2}, {X: 0.45, Y: 1.2}, {X: -0.45, Y: 1.2}},
}

// A glyph is a filled shape around a point.
type glyph interface {
	at(centre point, radius float64) path
}

// glyphRadius is the size of glyphs, and markRadius of those on lines.
const (
	glyphRadius = 4.5
	markRadius  = 3
)

type circle struct{}

func (circle) at(p point, radius float64) path {
	return path{{points: []point{p}, radius: radius, closed: true}}
}

// A polygon has its corners in radii.
type polygon []point

func (g polygon) at(p point, radius float64) path {
	corners := make([]point, len(g))
	for i, c := range g {
		corners[i] = point{p.X + float64(c.X*radius), p.Y + float64(c.Y*radius)}
	}
	return path{{points: corners, closed: true}}
}

func shape(place int) glyph { return shapes[place%len(shapes)] }

func (p *Points) frame() *Frame { return &p.Frame }

func (p *Points) compose() (*plot, []key, error) {
	drawn := p.newPlot()
	colours := p.Theme.palette()
	drawn.add(lattice{colours, false})
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
		drawn.add(member{&p.Frame, []mark{cloud{s, colours.hue(at), shape(at)}}})
		keys = append(keys, key{name: s.Name, colour: colours.hue(at), glyph: shape(at)})
	}
	widen(&drawn.x)
	widen(&drawn.y)
	return drawn, keys, nil
}

// widen makes room at the ends of an axis, so that what lies there is not cut.
func widen(a *axis) {
	if free := (a.max - a.min) * 0.04; free > 0 && !a.log {
		a.min, a.max = a.min-free, a.max+free
	}
}

// A cloud draws a Cloud. Its shape differs from that of its neighbours, for
// those who see no colours.
type cloud struct {
	*Cloud
	hue   colour
	shape glyph
}

// extent implements ranger.
func (s cloud) extent() (xMin, xMax, yMin, yMax float64) {
	xMin, xMax = ends(s.X, s.SmallX)
	yMin, yMax = ends(s.Y, s.YLow, s.YHigh, s.SmallY)
	return xMin, xMax, yMin, yMax
}

// ends returns the least and the greatest of the numbers in lists.
func ends(lists ...[]float64) (least, most float64) {
	least, most = math.Inf(1), math.Inf(-1)
	for _, v := range slices.Concat(lists...) {
		least, most = min(least, v), max(most, v)
	}
	return least, most
}

// draw implements mark.
func (s cloud) draw(c canvas, p *plot) {
	x, y := p.places(c)
	spots := make([]point, len(s.SmallX))
	for i := range spots {
		spots[i] = point{x(s.SmallX[i]), y(s.SmallY[i])}
	}
	dots(c, veil(s.hue, 0x80), spots)
	if s.Joined && len(s.X) > 0 {
		var line []point
		for i := range s.X {
			line = append(line, point{x(s.X[i]), y(s.Y[i])})
		}
		c.stroke(outline{points: line}, pen{colour: veil(s.hue, 0x90), width: 1.4})
	}
	whisker := pen{colour: s.hue, width: 1.2}
	for i := range s.X {
		at := point{x(s.X[i]), y(s.Y[i])}
		if s.YLow != nil {
			c.line(whisker, at.X, y(s.YLow[i]), at.X, y(s.YHigh[i]))
		}
		c.fill(s.shape.at(at, glyphRadius), s.hue)
	}
}

// dots draws small squares as one shape: hundreds of circles would be most of
// the bytes of a page.
func dots(c canvas, hue colour, at []point) {
	const half = 1.2
	var squares path
	for _, p := range at {
		squares = append(squares, outline{points: rectangle(p.X-half, p.Y-half, p.X+half, p.Y+half), closed: true})
	}
	if len(squares) > 0 {
		c.fill(squares, hue)
	}
}
