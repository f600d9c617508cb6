package draw

import (
	"strings"
	"unicode/utf8"
)

// A cell is one column of one line. Rune 0 is a blank, and wideTail is the second half of the rune
// to its left.
type cell struct {
	r     rune
	style Style
}

const wideTail rune = -1

// A Canvas is a rectangle of cells. The zero Canvas is empty. [Canvas.Sub] shares cells with its
// parent. Writes outside a canvas are dropped.
type Canvas struct {
	cells  []cell
	stride int
	w, h   int
}

// New returns a blank canvas of w columns and h lines. Negative sizes count as 0.
func New(w, h int) Canvas {
	w, h = max(w, 0), max(h, 0)
	return Canvas{cells: make([]cell, w*h), stride: w, w: w, h: h}
}

// Width returns the number of columns.
func (c Canvas) Width() int { return c.w }

// Height returns the number of lines.
func (c Canvas) Height() int { return c.h }

// Sub returns the part of c with w columns and h lines whose upper left corner is at x, y, clipped
// to c.
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

// Split divides c into a left part of w columns and the rest.
func (c Canvas) Split(w int) (left, right Canvas) {
	w = min(max(w, 0), c.w)
	return c.Sub(0, 0, w, c.h), c.Sub(w, 0, c.w-w, c.h)
}

// Cut divides c into an upper part of h lines and the rest.
func (c Canvas) Cut(h int) (above, below Canvas) {
	h = min(max(h, 0), c.h)
	return c.Sub(0, 0, c.w, h), c.Sub(0, h, c.w, c.h-h)
}

// Set writes one rune. A rune that does not fit in a cell is replaced by one of one column, see
// [Width].
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

// Text writes s at x, y, clipped at the right edge, and returns the column after it.
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

// Fill sets every cell of c to the rune r in style s.
func (c Canvas) Fill(r rune, s Style) {
	for y := range c.h {
		line := c.cells[y*c.stride : y*c.stride+c.w]
		for x := range line {
			line[x] = cell{r, s}
		}
	}
}

// Restyle changes the styles of the cells of c and keeps their runes.
func (c Canvas) Restyle(change func(Style) Style) {
	for y := range c.h {
		line := c.cells[y*c.stride : y*c.stride+c.w]
		for x := range line {
			line[x].style = change(line[x].style)
		}
	}
}

// Mark sets the background of the cells of c to that of a selection.
func (c Canvas) Mark() {
	c.Restyle(func(s Style) Style { s.Attr |= Selected; return s })
}

// Render returns c for a terminal: its lines, each of exactly Width columns, joined by newlines.
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
		// A later write may have replaced one half of a wide rune. The other half is then blank.
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
