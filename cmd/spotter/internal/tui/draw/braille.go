package draw

// A plot is a grid of dots, two across and four down in every cell.
type plot struct {
	w, h int // in cells
	bits []uint8
	inks []Ink
}

func newPlot(w, h int) plot {
	return plot{w: w, h: h, bits: make([]uint8, w*h), inks: make([]Ink, w*h)}
}

// dots contains the bit of each dot of a braille cell, by row and column.
var dots = [4][2]uint8{{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}

// set sets the dot at x, y, counted from the upper left. The cell has the ink of the last dot set
// in it.
func (p plot) set(x, y int, i Ink) {
	if x < 0 || y < 0 || x >= p.w*2 || y >= p.h*4 {
		return
	}
	at := y/4*p.w + x/2
	p.bits[at] |= dots[y%4][x%2]
	p.inks[at] = i
}

// line draws a line from x0, y0 to x1, y1. It clips the line to the plot first, since the ends may
// be far outside.
func (p plot) line(x0, y0, x1, y1 int, i Ink) {
	if x0 < -1 && x1 > x0 {
		y0 += (y1 - y0) * (-1 - x0) / (x1 - x0)
	}
	x0, x1 = min(max(x0, -1), p.w*2), min(max(x1, -1), p.w*2)
	y0, y1 = min(max(y0, -1), p.h*4), min(max(y1, -1), p.h*4)
	steps := max(x1-x0, x0-x1, y1-y0, y0-y1)
	if steps == 0 {
		p.set(x0, y0, i)
		return
	}
	for n := range steps + 1 {
		p.set(x0+((x1-x0)*n*2+steps)/(steps*2), y0+((y1-y0)*n*2+steps)/(steps*2), i)
	}
}

// draw writes the cells that have dots.
func (p plot) draw(c Canvas) {
	for y := range p.h {
		for x := range p.w {
			if b := p.bits[y*p.w+x]; b != 0 {
				c.Set(x, y, 0x2800+rune(b), ink(p.inks[y*p.w+x]))
			}
		}
	}
}
