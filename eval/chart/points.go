package chart

import "fmt"

// Points is a chart of single points with optional intervals of their y values.
type Points struct {
	Frame
	Series []Cloud
}

// A Cloud contains the points of one series.
type Cloud struct {
	Name string
	X, Y []float64

	// YLow and YHigh are the ends of the intervals of Y; nil if there are no intervals.
	YLow, YHigh []float64

	// Joined connects the points by a line.
	Joined bool

	// SmallX and SmallY are additional points of the series, drawn as dots.
	SmallX, SmallY []float64

	// Colour is the index of the colour and the shape, from 1; 0 means the index of the series.
	Colour int
}

// A glyph is a filled shape, given by its corners relative to its centre in units of its radius. A
// glyph without corners is a circle.
type glyph []point

// shapes distinguish series without colours. The numbers of shapes and of colours are coprime, so
// that many combinations differ.
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

// glyphRadius is the radius of glyphs in pixels, markRadius that of markers on lines.
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

// draw draws s. The shapes of neighbouring series differ, so that they can be distinguished without
// colours.
func (s *Cloud) draw(c canvas, hue colour, shape *glyph) {
	at := c.places(zip(s.X, s.Y))
	if len(s.SmallX) > 0 { // hundreds of circles would make pages large
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
