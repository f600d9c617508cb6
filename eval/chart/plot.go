package chart

import "math"

// A plot is marks between two axes.
type plot struct {
	x, y  axis
	marks []mark
}

// A mark is drawn between the axes.
type mark interface{ draw(canvas, *plot) }

// A ranger is a mark that the axes must show whole.
type ranger interface {
	// extent returns the ends of its values.
	extent() (xMin, xMax, yMin, yMax float64)
}

// An axis is one direction of a plot.
type axis struct {
	// min and max are the values at its ends.
	min, max float64

	log   bool
	ticks ticker
	words words
	line  pen

	// bare axes have labels and no ticks.
	bare bool
}

const (
	tickLength = 4

	// labelGap divides labels of the y axis from its ticks, at their size or a little more.
	labelGap = 3

	// axisGap divides an axis from what is drawn.
	axisGap = 6
)

// add draws m over what was added before, and widens the axes to show it.
func (p *plot) add(m mark) {
	if r, ok := m.(ranger); ok {
		xMin, xMax, yMin, yMax := r.extent()
		p.x.min, p.x.max = math.Min(p.x.min, xMin), math.Max(p.x.max, xMax)
		p.y.min, p.y.max = math.Min(p.y.min, yMin), math.Max(p.y.max, yMax)
	}
	p.marks = append(p.marks, m)
}

// share returns how far on a the value v lies: 0 at its minimum, 1 at its maximum.
func (a *axis) share(v float64) float64 {
	if a.log {
		low := math.Log(a.min)
		return (math.Log(v) - low) / (math.Log(a.max) - low)
	}
	return (v - a.min) / (a.max - a.min)
}

func (a *axis) tickMarks() []tick { return a.ticks.ticks(a.min, a.max) }

// places returns where values lie on c.
func (p *plot) places(c canvas) (x, y func(float64) float64) {
	x = func(v float64) float64 { return c.x(p.x.share(v)) }
	y = func(v float64) float64 { return c.y(p.y.share(v)) }
	return x, y
}

// draw draws p and returns the part of c that has the marks.
func (p *plot) draw(c canvas) area {
	left, below := p.yWidth(), p.xHeight()
	p.drawX(p.padX(c.crop(left, 0, 0, 0)))
	p.drawY(p.padY(c.crop(0, 0, below, 0)))
	inner := p.padY(p.padX(c.crop(left, 0, below, 0)))
	for _, m := range p.marks {
		m.draw(inner, p)
	}
	return inner.area
}

// tickSize is how far ticks reach from a.
func (a *axis) tickSize() float64 {
	if a.bare {
		return 0
	}
	return tickLength
}

// labelled reports whether a tick of a has a label.
func labelled(ticks []tick) bool {
	for _, t := range ticks {
		if t.label != "" {
			return true
		}
	}
	return false
}

// xHeight is the height of the x axis with its labels.
func (p *plot) xHeight() float64 {
	a, height := &p.x, 0.0
	if ticks := a.tickMarks(); len(ticks) > 0 {
		height += a.tickSize()
		if labelled(ticks) {
			height += a.words.height()
		}
	}
	return height + a.line.width/2 + axisGap
}

// yWidth is the width of the y axis with its labels.
func (p *plot) yWidth() float64 {
	a, width := &p.y, 0.0
	if ticks := a.tickMarks(); len(ticks) > 0 {
		if w := a.labelWidth(ticks); w > 0 {
			width += w
			width += labelGap
		}
		width += a.tickSize()
	}
	return width + a.line.width/2 + axisGap
}

// labelWidth is the width of the widest label.
func (a *axis) labelWidth(ticks []tick) float64 {
	widest := 0.0
	for _, t := range ticks {
		widest = max(widest, a.words.width(t.label))
	}
	return widest
}

// padX takes from the right of c what the last labels of the x axis need.
func (p *plot) padX(c canvas) canvas {
	most, share, over := c.Max.X, 1.0, 0.0
	for _, t := range p.x.tickMarks() {
		width := p.x.words.width(t.label)
		if at := p.x.share(t.value); width > 0 && at > 0 && at <= 1 {
			if end := c.x(at) + width/2; end > most {
				most, share, over = end, at, width/2
			}
		}
	}
	c.Max.X = (c.Max.X-over-c.Min.X)/share + c.Min.X
	return c
}

// padY takes from the top of c what the last labels of the y axis need.
func (p *plot) padY(c canvas) canvas {
	most, share, over := c.Max.Y, 1.0, 0.0
	half := p.y.words.height() / 2
	for _, t := range p.y.tickMarks() {
		if at := p.y.share(t.value); t.label != "" && at > 0 && at <= 1 {
			if end := c.y(at) + half; end > most {
				most, share, over = end, at, half
			}
		}
	}
	c.Max.Y = (c.Max.Y-over-c.Min.Y)/share + c.Min.Y
	return c
}

// drawX draws the x axis along the lower side of c.
func (p *plot) drawX(c canvas) {
	a, y := &p.x, c.Min.Y
	ticks := a.tickMarks()
	height := 0.0
	if labelled(ticks) {
		height = a.words.height()
	}
	for _, t := range ticks {
		if x := c.x(a.share(t.value)); c.hasX(x) {
			c.text(a.words, point{x, y + height + a.words.descent()}, t.label)
		}
	}
	if len(ticks) == 0 {
		height = a.line.width / 2
	}
	y += height
	if len(ticks) > 0 && !a.bare {
		for _, t := range ticks {
			if x := c.x(a.share(t.value)); c.hasX(x) {
				c.line(a.line, x, y+t.short(), x, y+tickLength)
			}
		}
		y += tickLength
	}
	c.line(a.line, c.Min.X, y, c.Max.X, y)
}

// drawY draws the y axis along the left side of c.
func (p *plot) drawY(c canvas) {
	a, x := &p.y, c.Min.X
	ticks := a.tickMarks()
	x += a.labelWidth(ticks)
	for _, t := range ticks {
		if y := c.y(a.share(t.value)); c.hasY(y) {
			c.text(a.words, point{x, y + a.words.descent()}, t.label)
		}
	}
	if labelled(ticks) {
		x += a.words.width(" ")
	}
	if len(ticks) > 0 && !a.bare {
		for _, t := range ticks {
			if y := c.y(a.share(t.value)); c.hasY(y) {
				c.line(a.line, x+t.short(), y, x+tickLength, y)
			}
		}
		x += tickLength
	}
	c.line(a.line, x, c.Min.Y, x, c.Max.Y)
}

// short is how much shorter a tick without a label is.
func (t tick) short() float64 {
	if t.label == "" {
		return tickLength / 2
	}
	return 0
}
