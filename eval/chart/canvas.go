package chart

// A point is a place on a canvas, in pixels of a screen from the left and the lower edge.
type point struct{ X, Y float64 }

// An area is a rectangle between two corners.
type area struct{ Min, Max point }

// A path is the outlines of a shape, or lines.
type path []outline

// An outline joins points by straight lines, and the last to the first where it is closed.
// With a radius it is the circle around its only point.
type outline struct {
	points []point
	closed bool
	radius float64
}

// A pen is how a line is drawn.
type pen struct {
	colour colour
	width  float64

	// dashes are the lengths of dashes and gaps in turn; nil is a line without gaps.
	dashes []float64
}

// A surface is a file that is drawn. What comes later covers what came before.
type surface interface {
	fill(path, colour)
	stroke(outline, pen)

	// write writes a line of text from the left end of its baseline.
	write(words, point, string)
}

// A canvas is a part of a surface.
type canvas struct {
	surface
	area
}

// crop returns the canvas within c whose sides are moved, up and right where positive.
func (c canvas) crop(left, right, bottom, top float64) canvas {
	return canvas{c.surface, area{point{c.Min.X + left, c.Min.Y + bottom}, point{c.Max.X + right, c.Max.Y + top}}}
}

func (c canvas) centre() point {
	return point{(c.Max.X-c.Min.X)/2 + c.Min.X, (c.Max.Y-c.Min.Y)/2 + c.Min.Y}
}

// x and y return the place that lies a share of the way through c.
func (c canvas) x(share float64) float64 { return float64(share*(c.Max.X-c.Min.X)) + c.Min.X }
func (c canvas) y(share float64) float64 { return float64(share*(c.Max.Y-c.Min.Y)) + c.Min.Y }

// slack is how far a point may be outside for want of precision.
const slack = 3e-8

func (c canvas) hasX(x float64) bool { return x <= c.Max.X+slack && x >= c.Min.X-slack }
func (c canvas) hasY(y float64) bool { return y <= c.Max.Y+slack && y >= c.Min.Y-slack }

func (c canvas) polygon(hue colour, corners []point) {
	if len(corners) > 0 {
		c.fill(path{{points: corners, closed: true}}, hue)
	}
}

// box fills a rectangle between two points.
func (c canvas) box(hue colour, x0, y0, x1, y1 float64) { c.polygon(hue, rectangle(x0, y0, x1, y1)) }

func rectangle(x0, y0, x1, y1 float64) []point {
	return []point{{x0, y0}, {x1, y0}, {x1, y1}, {x0, y1}}
}

func (c canvas) line(p pen, x0, y0, x1, y1 float64) {
	c.stroke(outline{points: []point{{x0, y0}, {x1, y1}}}, p)
}

// text writes a line, aligned to a point as w says.
func (c canvas) text(w words, at point, s string) {
	if s == "" {
		return
	}
	at.X += float64(w.alignX * w.width(s))
	at.Y += float64(w.alignY*w.height()) - w.ascent() + w.size
	c.write(w, at, s)
}

// An edge is a side of a canvas: what is inside has no more than bound of a coordinate
// times sign.
type edge struct {
	vertical    bool
	bound, sign float64
}

func (e edge) of(p point) float64 {
	if e.vertical {
		return p.Y
	}
	return p.X
}

func (e edge) inside(p point) bool { return e.sign*e.of(p) <= float64(e.sign*e.bound)+slack }

// cross returns the point of the line from a to b on e.
func (e edge) cross(a, b point) point {
	t := (e.of(a) - e.bound) / (e.of(a) - e.of(b))
	return point{float64(t*(b.X-a.X)) + a.X, float64(t*(b.Y-a.Y)) + a.Y}
}

// edges are the sides of c: right, left, lower, upper.
func (c canvas) edges() [4]edge {
	return [4]edge{{false, c.Max.X, 1}, {false, c.Min.X, -1}, {true, c.Min.Y, -1}, {true, c.Max.Y, 1}}
}

// clipLine returns the parts of a line that are inside c.
func (c canvas) clipLine(line []point) [][]point {
	parts := [][]point{line}
	for _, e := range c.edges() {
		var inside [][]point
		for _, part := range parts {
			inside = append(inside, e.parts(part)...)
		}
		parts = inside
	}
	return parts
}

// parts returns the parts of a line that are inside.
func (e edge) parts(line []point) [][]point {
	var all [][]point
	var open []point
	for i := 1; i < len(line); i++ {
		a, b := line[i-1], line[i]
		switch in := e.inside(b); {
		case e.inside(a) && in:
			open = append(open, a)
		case e.inside(a):
			all = append(all, append(open, a, e.cross(a, b)))
			open = nil
		case in:
			open = append(open, e.cross(a, b))
		}
	}
	if n := len(line) - 1; n > 0 && e.inside(line[n]) {
		open = append(open, line[n])
	}
	if len(open) > 1 {
		all = append(all, open)
	}
	return all
}

// clipPolygon returns the part of a polygon that is inside c.
func (c canvas) clipPolygon(corners []point) []point {
	for _, e := range c.edges() {
		var inside []point
		for i, a := range corners {
			b := corners[(i+1)%len(corners)]
			if e.inside(a) {
				inside = append(inside, a)
			}
			if e.inside(a) != e.inside(b) {
				inside = append(inside, e.cross(a, b))
			}
		}
		corners = inside
	}
	return corners
}
