package chart

import (
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// groupMark is how a canvas for SVG writes a move by nothing, which opens a group.
const groupMark = `<g transform="translate(0, 0)">`

// group makes what paint draws on c one group in a picture for a page, so that the page can hide
// it: <g class="series">, in the order of the series.
func (f *Frame) group(c draw.Canvas, paint func()) {
	if f.Theme != Page {
		paint()
		return
	}
	c.Push()
	c.Translate(vg.Point{})
	paint()
	c.Pop()
}

// A member is the plotters of one series, drawn as a group.
type member struct {
	frame *Frame
	parts []plot.Plotter
}

// Plot is plot.Plotter.
func (m member) Plot(c draw.Canvas, p *plot.Plot) {
	m.frame.group(c, func() {
		for _, x := range m.parts {
			x.Plot(c, p)
		}
	})
}

// DataRange is plot.DataRanger.
func (m member) DataRange() (xmin, xmax, ymin, ymax float64) {
	xmin, xmax, ymin, ymax = math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)
	for _, x := range m.parts {
		if ranged, ok := x.(plot.DataRanger); ok {
			x0, x1, y0, y1 := ranged.DataRange()
			xmin, xmax, ymin, ymax = min(xmin, x0), max(xmax, x1), min(ymin, y0), max(ymax, y1)
		}
	}
	return xmin, xmax, ymin, ymax
}
