package chart

import "fmt"

// Bars is a stacked horizontal bar chart: a bar for each class, divided into the values of the
// series. Values must not be negative.
type Bars struct {
	Frame

	// Classes are the names of the bars, from top to bottom.
	Classes []string
	Series  []Bar
}

// A Bar contains the values of one series, one for each class.
type Bar struct {
	Name string
	Y    []float64
}

func (b *Bars) compose() (*plot, error) {
	p := b.newPlot()
	p.y.down(b.Classes)
	colours := b.Theme.palette()
	for i, s := range b.Series {
		if len(s.Y) != len(b.Classes) {
			return nil, fmt.Errorf("%w: %q has %d bars for %d classes", ErrValue, s.Name, len(s.Y), len(b.Classes))
		}
		for k, v := range s.Y {
			if !(v >= 0) {
				return nil, fmt.Errorf("%w: bar %q of %q is %v", ErrValue, s.Name, b.Classes[k], v)
			}
		}
		p.keys = append(p.keys, key{name: s.Name, colour: colours.hue(i), filled: true})
	}
	for k := range b.Classes {
		ends := []float64{0}
		for i, s := range b.Series {
			ends = append(ends, ends[i]+s.Y[k])
		}
		p.x.show(ends)
		p.series(func(c canvas) {
			_, top, bottom := c.row(len(b.Classes) - 1 - k)
			for i := range b.Series {
				if from, to := c.x(ends[i]), c.x(ends[i+1]); to > from {
					c.fill(colours.hue(i), area{from, top, to, bottom}.corners())
				}
			}
		})
	}
	return p, nil
}

// row returns the y coordinates of the middle, the top and the bottom of row n. The height is
// limited for charts with few rows.
func (c canvas) row(n int) (middle, top, bottom float64) {
	middle = c.y(float64(n))
	half := min((c.y(0)-c.y(0.64))/2, 9)
	return middle, middle - half, middle + half
}
