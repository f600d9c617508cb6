package chart

import (
	"fmt"
)

// Boxes are distributions, a row for each: its values as dots, a box from the
// first quartile to the third, a bar at the median and lines out to the least
// and the greatest.
type Boxes struct {
	Frame
	Rows []Box
}

// A Box is one distribution.
type Box struct {
	Name string

	// Least ≤ Q1 ≤ Median ≤ Q3 ≤ Greatest.
	Least, Q1, Median, Q3, Greatest float64

	// Dots are values, or some of them where they are very many.
	Dots []float64

	// Colour is the place of its colour, from 1; 0 means that of the row.
	Colour int
}

func (b *Boxes) frame() *Frame { return &b.Frame }

func (b *Boxes) compose() (*plot, []key, error) {
	p := b.newPlot()
	colours := b.Theme.palette()
	p.add(lattice{colours, true})
	names := make([]string, len(b.Rows))
	for i := range b.Rows {
		r := &b.Rows[i]
		names[i] = r.Name
		if !(r.Least <= r.Q1 && r.Q1 <= r.Median && r.Median <= r.Q3 && r.Q3 <= r.Greatest) {
			return nil, nil, fmt.Errorf("%w: %v, %v, %v, %v, %v of %q do not ascend", ErrValue, r.Least, r.Q1, r.Median, r.Q3, r.Greatest, r.Name)
		}
		row := distribution{r, float64(len(b.Rows) - 1 - i), colours.hue(place(i, r.Colour)), colours.ink}
		p.add(member{&b.Frame, []mark{row}})
	}
	down(p, names)
	widen(&p.x)
	return p, nil, nil
}

// A distribution draws a Box at a height.
type distribution struct {
	*Box
	row      float64
	hue, ink colour
}

// extent implements ranger.
func (d distribution) extent() (xMin, xMax, yMin, yMax float64) {
	xMin, xMax = d.Least, d.Greatest
	for _, v := range d.Dots {
		xMin, xMax = min(xMin, v), max(xMax, v)
	}
	return xMin, xMax, d.row, d.row
}

// draw implements mark.
func (d distribution) draw(c canvas, p *plot) {
	x, y := p.places(c)
	middle, half := y(d.row), halfRow(y)
	line := pen{colour: d.hue, width: 1.2}
	c.line(line, x(d.Least), middle, x(d.Q1), middle)
	c.line(line, x(d.Q3), middle, x(d.Greatest), middle)
	c.box(veil(d.hue, 0x40), x(d.Q1), middle-half, x(d.Q3), middle+half)
	// Dots lie on seven lines in turn: those of equal values stay apart.
	spots := make([]point, len(d.Dots))
	for i, v := range d.Dots {
		spots[i] = point{x(v), middle + half*float64(i*3%7-3)/4.5}
	}
	dots(c, d.hue, spots)
	c.line(pen{colour: d.ink, width: 2}, x(d.Median), middle-half, x(d.Median), middle+half)
}
