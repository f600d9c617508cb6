package chart

import "fmt"

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

	// The ends of the intervals of Y; nil without intervals.
	YLow, YHigh []float64

	// Joined draws a line through the points.
	Joined bool

	// Small are further points of the kind, drawn as dots.
	SmallX, SmallY []float64

	// Colour is the place of its colour and shape, from 1; 0 means that of the
	// cloud.
	Colour int
}

// A glyph is the corners of a filled shape around a point, in radii; without any it is a circle.
type glyph []point

// shapes tell clouds apart for those who see no colours. Their number and that
// of colours have no common factor, so that many pairs differ.
var shapes = [...]glyph{
	nil,
	{{-0.9, -0.9}, {0.9, -0.9}, {0.9, 0.9}, {-0.9, 0.9}},
	{{-1.1, 0.9}, {1.1, 0.9}, {0, -1.1}},
	{{0, -1.3}, {1.1, 0}, {0, 1.3}, {-1.1, 0}},
	{{-1.1, -0.9}, {1.1, -0.9}, {0, 1.1}},
	{{-0.4, -1.2}, {0.4, -1.2}, {0.4, -0.4}, {1.2, -0.4}, {1.2, 0.4}, {0.4, 0.4},
		{0.4, 1.2}, {-0.4, 1.2}, {-0.4, 0.4}, {-1.2, 0.4}, {-1.2, -0.4}, {-0.4, -0.4}},
	{{-1.2, -0.45}, {1.2, -0.45}, {1.2, 0.45}, {-1.2, 0.45}},
	{{-0.45, -1.2}, {0.45, -1.2}, {0.45, 1.2}, {-0.45, 1.2}},
}

func shape(place int) *glyph { return &shapes[place%len(shapes)] }

// glyphRadius is the size of glyphs, and markRadius of those on lines.
const (
	glyphRadius = 4.5
	markRadius  = 3
)

func (g glyph) draw(s surface, c colour, centre point, radius float64) {
	if len(g) == 0 {
		s.circle(c, centre, radius)
		return
	}
	corners := make([]point, len(g))
	for i, p := range g {
		corners[i] = point{centre.x + float64(p.x*radius), centre.y + float64(p.y*radius)}
	}
	s.fill(c, corners)
}

func (p *Points) compose() (*plot, error) {
	drawn := p.newPlot()
	for i := range p.Series {
		s := &p.Series[i]
		n := len(s.X)
		for _, list := range [...][]float64{s.Y, s.YLow, s.YHigh} {
			if len(list) != n && list != nil || len(s.Y) != n || len(s.YLow) != len(s.YHigh) {
				return nil, fmt.Errorf("%w: %q has %d x and %d other values", ErrValue, s.Name, n, len(list))
			}
		}
		if len(s.SmallX) != len(s.SmallY) {
			return nil, fmt.Errorf("%w: %q has %d x and %d y of dots", ErrValue, s.Name, len(s.SmallX), len(s.SmallY))
		}
		drawn.x.show(s.X, s.SmallX)
		drawn.y.show(s.Y, s.YLow, s.YHigh, s.SmallY)
		at := place(i, s.Colour)
		hue, mark := p.Theme.palette().hue(at), shape(at)
		drawn.series(func(c canvas) { s.draw(c, hue, mark) })
		drawn.keys = append(drawn.keys, key{name: s.Name, colour: hue, glyph: mark})
	}
	drawn.x.widen()
	drawn.y.widen()
	return drawn, nil
}

// draw draws s. Its shape differs from that of its neighbours, for those who see no colours.
func (s *Cloud) draw(c canvas, hue colour, shape *glyph) {
	at := c.places(zip(s.X, s.Y))
	if len(s.SmallX) > 0 { // hundreds of circles would be most of the bytes of a page
		c.dots(veil(hue, 0x80), c.places(zip(s.SmallX, s.SmallY)))
	}
	if s.Joined && len(at) > 1 {
		c.stroke(pen{colour: veil(hue, 0x90), width: 1.4}, at)
	}
	for i, p := range at {
		if s.YLow != nil {
			c.stroke(pen{colour: hue, width: 1.2}, []point{{p.x, c.y(s.YLow[i])}, {p.x, c.y(s.YHigh[i])}})
		}
		shape.draw(c, hue, p, glyphRadius)
	}
}
