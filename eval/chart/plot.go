package chart

import (
	"errors"
	"fmt"
	"math"
)

// A plot is the content between the axes: its layers, drawn in order, and the entries of the
// legend.
type plot struct {
	x, y   axis
	layers []func(canvas)
	keys   []key

	// clipped reports whether some values are outside the axes' limits.
	clipped bool
}

// An axis is the scale of one direction of a plot.
type axis struct {
	spec *Axis

	// min and max are the values at the ends of the axis.
	min, max float64

	// rows are the names of rows from top to bottom, which replace ticks.
	rows []string
}

// newPlot returns an empty plot with the axes of f.
func (f *Frame) newPlot() *plot {
	return &plot{x: axis{spec: &f.X, min: math.Inf(1), max: math.Inf(-1)},
		y: axis{spec: &f.Y, min: math.Inf(1), max: math.Inf(-1)}}
}

// series adds the layer of a series, which scripts on a page can hide.
func (p *plot) series(draw func(canvas)) {
	p.layers = append(p.layers, func(c canvas) { c.group(func() { draw(c) }) })
}

// show extends the axis to include values.
func (a *axis) show(lists ...[]float64) {
	for _, values := range lists {
		for _, v := range values {
			a.min, a.max = min(a.min, v), max(a.max, v)
		}
	}
}

// widen adds a margin to both ends, so that markers are not cut off.
func (a *axis) widen() {
	if room := (a.max - a.min) * 0.04; room > 0 && !a.spec.Log {
		a.min, a.max = a.min-room, a.max+room
	}
}

// down makes a an axis of rows, the first at the top.
func (a *axis) down(rows []string) {
	a.rows, a.min, a.max = rows, -0.5, float64(len(rows))-0.5
}

// bound applies the limits of both axes, after the data were added.
func (p *plot) bound() error {
	for _, d := range [...]struct {
		name string
		axis *axis
	}{{"x", &p.x}, {"y", &p.y}} {
		clipped, err := d.axis.bound()
		if err != nil {
			return fmt.Errorf("%w: the %s axis has %w", ErrValue, d.name, err)
		}
		p.clipped = p.clipped || clipped
	}
	return nil
}

// bound applies the limits of a, and extends the axis if all values are equal. It reports whether
// values are outside the limits.
func (a *axis) bound() (clipped bool, err error) {
	least, most := a.min, a.max
	if !(least > most) && (math.IsInf(least, 0) || math.IsInf(most, 0) || math.IsNaN(least)) {
		return false, errors.New("a value that is not a number")
	}
	if a.spec.From < a.spec.To {
		a.min, a.max = a.spec.From, a.spec.To
	}
	if a.min > a.max {
		return false, errors.New("no values")
	}
	if low := min(least, a.min); a.spec.Log && low <= 0 {
		return false, fmt.Errorf("%v on a logarithmic scale", low)
	}
	clipped = least < a.min || most > a.max
	switch room := max(math.Abs(a.min)/2, 0.5); {
	case a.min < a.max:
	case a.spec.Log:
		a.min, a.max = a.min/2, a.max*2
	default:
		a.min, a.max = a.min-room, a.max+room
	}
	return clipped, nil
}

// share returns the position of the value v on a: 0 at its minimum, 1 at its maximum.
func (a *axis) share(v float64) float64 {
	if a.spec.Log {
		low := math.Log(a.min)
		return (math.Log(v) - low) / (math.Log(a.max) - low)
	}
	return (v - a.min) / (a.max - a.min)
}

func (a *axis) ticks() []tick {
	if a.rows == nil {
		return a.spec.ticks(a.min, a.max)
	}
	var all []tick
	for i, name := range a.rows {
		all = append(all, tick{float64(len(a.rows) - 1 - i), name})
	}
	return all
}

const (
	tickLength = 4

	// labelGap is the distance between labels and ticks, axisGap that between an axis and the data.
	labelGap, axisGap = 3, 6

	// labelHeight is the height of a line of labels, labelMiddle the distance from its baseline up
	// to its middle.
	labelHeight, labelMiddle = 12, 4
)

// draw draws p within a and returns the area between the axes.
func (p *plot) draw(s surface, a area, colours *palette) area {
	label := words{size: 11, colour: colours.faint}
	xs, ys := p.x.ticks(), p.y.ticks()
	widest := 0.0
	for _, t := range ys {
		widest = max(widest, label.width(t.label))
	}
	left, bottom := a.left+widest+labelGap+tickLength, a.bottom-labelHeight-tickLength // of the axes
	inner := area{left + axisGap, a.top, a.right, bottom - axisGap}
	for _, t := range xs { // labels may extend beyond the end of their axis
		if at := p.x.share(t.value); at > 0 {
			inner.right = min(inner.right, inner.left+(a.right-label.width(t.label)/2-inner.left)/at)
		}
	}
	for _, t := range ys {
		if at := p.y.share(t.value); at > 0 {
			inner.top = max(inner.top, inner.bottom-(inner.bottom-a.top-labelHeight/2)/at)
		}
	}
	spread(xs, inner.right-inner.left, label)
	c := canvas{
		surface: s, area: inner,
		x: func(v float64) float64 { return inner.left + float64(p.x.share(v)*(inner.right-inner.left)) },
		y: func(v float64) float64 { return inner.bottom - float64(p.y.share(v)*(inner.bottom-inner.top)) },
	}
	p.lattice(c, xs, ys, pen{colour: colours.grid, width: 0.75})
	line := pen{colour: colours.faint, width: 0.75}
	s.stroke(line, []point{{left, inner.top}, {left, inner.bottom}})
	s.stroke(line, []point{{inner.left, bottom}, {inner.right, bottom}})
	for _, t := range xs {
		s.stroke(line, []point{{c.x(t.value), bottom}, {c.x(t.value), bottom + t.length()}})
	}
	for _, t := range ys {
		if p.y.rows == nil {
			s.stroke(line, []point{{left, c.y(t.value)}, {left - t.length(), c.y(t.value)}})
		}
	}
	label.anchor = middle
	for _, t := range xs {
		t.write(s, label, point{c.x(t.value), a.bottom - 1})
	}
	label.anchor = end
	for _, t := range ys {
		t.write(s, label, point{left - tickLength - labelGap, c.y(t.value) + labelMiddle})
	}
	p.paint(c)
	return inner
}

// spread removes every other label if the labels of ticks would touch.
func spread(ticks []tick, room float64, w words) {
	const gap = 8
	for _, t := range ticks {
		room -= w.width(t.label) + gap
	}
	for i := 1; i < len(ticks) && room < -gap; i += 2 {
		ticks[i].label = ""
	}
}

// paint draws the layers of p.
func (p *plot) paint(c canvas) {
	all := func() {
		for _, draw := range p.layers {
			draw(c)
		}
	}
	if p.clipped {
		c.clip(c.area, all)
	} else {
		all()
	}
}

// lattice draws grid lines at the ticks with labels. It draws none between rows.
func (p *plot) lattice(c canvas, xs, ys []tick, line pen) {
	for _, t := range xs {
		if t.label != "" {
			c.stroke(line, []point{{c.x(t.value), c.top}, {c.x(t.value), c.bottom}})
		}
	}
	for _, t := range ys {
		if t.label != "" && p.y.rows == nil {
			c.stroke(line, []point{{c.left, c.y(t.value)}, {c.right, c.y(t.value)}})
		}
	}
}

// length returns the length of the tick in pixels.
func (t tick) length() float64 {
	if t.label == "" {
		return tickLength / 2
	}
	return tickLength
}

func (t tick) write(s surface, w words, at point) {
	if t.label != "" {
		s.write(w, at, t.label)
	}
}
