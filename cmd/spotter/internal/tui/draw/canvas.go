package draw

import (
	"strings"
	"unicode/utf8"
)

// A cell is one column of one line. Rune 0 is a blank, wideTail the second half
// of the rune to its left.
type cell struct {
	r     rune
	style Style
}

const wideTail rune = -1

// A Canvas is a rectangle of cells. The zero Canvas has none. [Canvas.Sub]
// shares cells with the canvas it is cut from; what is written outside a canvas
// is dropped.
type Canvas struct {
	cells  []cell
	stride int
	w, h   int
}

// New returns a blank canvas of w columns and h lines; negative sizes count as 0.
func New(w, h int) Canvas {
	w, h = max(w, 0), max(h, 0)
	return Canvas{cells: make([]cell, w*h), stride: w, w: w, h: h}
}

// Width returns the columns of c.
func (c Canvas) Width() int { return c.w }

// Height returns the lines of c.
func (c Canvas) Height() int { return c.h }

// Sub returns the part of c of w columns and h lines whose upper left corner is
// at x, y, cut at the edges of c.
func (c Canvas) Sub(x, y, w, h int) Canvas {
	if x < 0 {
		x, w = 0, w+x
	}
	if y < 0 {
		y, h = 0, h+y
	}
	w, h = min(w, c.w-x), min(h, c.h-y)
	if w <= 0 || h <= 0 {
		return Canvas{}
	}
	first := y*c.stride + x
	return Canvas{cells: c.cells[first : first+(h-1)*c.stride+w], stride: c.stride, w: w, h: h}
}

// Split cuts c into a left part of w columns and the rest.
func (c Canvas) Split(w int) (left, right Canvas) {
	w = min(max(w, 0), c.w)
	return c.Sub(0, 0, w, c.h), c.Sub(w, 0, c.w-w, c.h)
}

// Cut cuts c into an upper part of h lines and the rest.
func (c Canvas) Cut(h int) (above, below Canvas) {
	h = min(max(h, 0), c.h)
	return c.Sub(0, 0, c.w, h), c.Sub(0, h, c.w, c.h-h)
}

// Set writes one rune. A rune that a cell cannot hold becomes a replacement of
// one column, see [Width].
func (c Canvas) Set(x, y int, r rune, s Style) {
	if x < 0 || y < 0 || x >= c.w || y >= c.h {
		return
	}
	r, w := fitting(r)
	if w == 0 {
		return
	}
	if w == 2 && x+1 >= c.w {
		r, w = '·', 1
	}
	i := y*c.stride + x
	c.cells[i] = cell{r, s}
	if w == 2 {
		c.cells[i+1] = cell{wideTail, s}
	}
}

// Text writes s from x, y on, cut at the right edge, and returns the column
// after it.
func (c Canvas) Text(x, y int, s string, st Style) int {
	for _, r := range s {
		if x >= c.w {
			return x
		}
		c.Set(x, y, r, st)
		x += runeWidth(r)
	}
	return x
}

// Fill makes every cell of c the rune r in style s.
func (c Canvas) Fill(r rune, s Style) {
	for y := range c.h {
		line := c.cells[y*c.stride : y*c.stride+c.w]
		for x := range line {
			line[x] = cell{r, s}
		}
	}
}

// Restyle changes the style of the cells of c and leaves their runes.
func (c Canvas) Restyle(change func(Style) Style) {
	for y := range c.h {
		line := c.cells[y*c.stride : y*c.stride+c.w]
		for x := range line {
			line[x].style = change(line[x].style)
		}
	}
}

// Mark gives the cells of c the background of what is selected.
func (c Canvas) Mark() {
	c.Restyle(func(s Style) Style { s.Attr |= Selected; return s })
}

// Render writes c for a terminal: its lines, each of exactly Width columns, joined by newlines.
// Every line starts and ends in the terminal's own style.
func (c Canvas) Render(t *Theme) string {
	var b strings.Builder
	b.Grow(c.w*c.h*2 + c.h*64)
	for y := range c.h {
		if y > 0 {
			b.WriteByte('\n')
		}
		c.renderLine(&b, t, c.cells[y*c.stride:y*c.stride+c.w])
	}
	return b.String()
}

func (c Canvas) renderLine(b *strings.Builder, t *Theme, line []cell) {
	var now Style
	for x := 0; x < len(line); x++ {
		l := line[x]
		// What was drawn later may have taken one half of a wide rune: the other
		// half is a blank then.
		whole := x+1 < len(line) && line[x+1].r == wideTail
		switch wide := isWide(l.r); {
		case l.r == wideTail, wide && !whole:
			l.r = 0
		case wide:
			x++
		}
		if want := t.shown(l); want != now {
			t.change(b, now, want)
			now = want
		}
		switch {
		case l.r == 0:
			b.WriteByte(' ')
		case l.r < utf8.RuneSelf:
			b.WriteByte(byte(l.r))
		default:
			b.WriteRune(l.r)
		}
	}
	t.change(b, now, Style{})
}
