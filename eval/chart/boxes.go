package chart

import "fmt"

// Boxes is a box plot of distributions, one in each row: dots for values, a box from the first to
// the third quartile, a bar at the median, and whiskers to the minimum and the maximum.
type Boxes struct {
	Frame
	Rows []Box
}

// A Box is one distribution.
type Box struct {
	Name string

	// Least ≤ Q1 ≤ Median ≤ Q3 ≤ Greatest.
	Least, Q1, Median, Q3, Greatest float64

	// Dots are the values, or a sample if there are many.
	Dots []float64

	// Colour is the index of the colour, from 1; 0 means the index of the row.
	Colour int
}

func (b *Boxes) compose() (*plot, error) {
	p := b.newPlot()
	colours := b.Theme.palette()
	names := make([]string, len(b.Rows))
	for i := range b.Rows {
		r := &b.Rows[i]
		names[i] = r.Name
		if !(r.Least <= r.Q1 && r.Q1 <= r.Median && r.Median <= r.Q3 && r.Q3 <= r.Greatest) {
			return nil, fmt.Errorf("%w: %v, %v, %v, %v, %v of %q do not ascend", ErrValue, r.Least, r.Q1, r.Median, r.Q3,
				r.Greatest, r.Name)
		}
		p.x.show([]float64{r.Least, r.Greatest}, r.Dots)
		p.series(func(c canvas) { r.draw(c, len(b.Rows)-1-i, colours.hue(place(i, r.Colour)), colours.ink) })
	}
	p.y.down(names)
	p.x.widen()
	return p, nil
}

// draw draws r in row number row.
func (r *Box) draw(c canvas, row int, hue, ink colour) {
	middle, top, bottom := c.row(row)
	line := pen{colour: hue, width: 1.2}
	c.stroke(line, []point{{c.x(r.Least), middle}, {c.x(r.Q1), middle}})
	c.stroke(line, []point{{c.x(r.Q3), middle}, {c.x(r.Greatest), middle}})
	c.fill(veil(hue, 0x40), area{c.x(r.Q1), top, c.x(r.Q3), bottom}.corners())
	// Dots are spread over seven lines, so that equal values do not overlap.
	dots := make([]point, len(r.Dots))
	for i, v := range r.Dots {
		dots[i] = point{c.x(v), middle + float64((bottom-middle)*float64(i*3%7-3)/4.5)}
	}
	if len(dots) > 0 {
		c.dots(hue, dots)
	}
	c.stroke(pen{colour: ink, width: 2}, []point{{c.x(r.Median), top}, {c.x(r.Median), bottom}})
}
