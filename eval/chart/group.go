package chart

import (
	"math"
)

// The tags of a group, which a page can hide.
const (
	groupStart = `<g class="series">`
	groupEnd   = "</g>"
)

// group makes what paint draws on c one group in a picture for a page, in the order of the series.
func (f *Frame) group(c canvas, paint func()) {
	s, ok := c.surface.(*svgSurface)
	if !ok || f.Theme != Page {
		paint()
		return
	}
	s.out.WriteString(groupStart)
	paint()
	s.out.WriteString(groupEnd)
}

// A member is the marks of one series, drawn as a group.
type member struct {
	frame *Frame
	marks []mark
}

// draw implements mark.
func (m member) draw(c canvas, p *plot) {
	m.frame.group(c, func() {
		for _, x := range m.marks {
			x.draw(c, p)
		}
	})
}

// extent implements ranger.
func (m member) extent() (xMin, xMax, yMin, yMax float64) {
	xMin, xMax, yMin, yMax = math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)
	for _, x := range m.marks {
		if r, ok := x.(ranger); ok {
			x0, x1, y0, y1 := r.extent()
			xMin, xMax, yMin, yMax = min(xMin, x0), max(xMax, x1), min(yMin, y0), max(yMax, y1)
		}
	}
	return xMin, xMax, yMin, yMax
}
