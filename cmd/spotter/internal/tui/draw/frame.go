package draw

import (
	"strings"

	"github.com/spotter-dev/spotter/policy/figures"
)

// A Part is a piece of a line in one style.
type Part struct {
	Text  string
	Style Style
}

// Say returns a part in an ink.
func Say(text string, i Ink) Part { return Part{Text: text, Style: Style{Ink: i}} }

// Strong returns a part in an ink, in bold.
func Strong(text string, i Ink) Part { return Part{Text: text, Style: Style{Ink: i, Attr: Bold}} }

// A Box is a border with a title, preceded by the key that focuses the box, and a status at the
// right end of the title line. A focused box has a heavy border, so that the focus is visible
// without colour.
type Box struct {
	Key     rune // 0 for no key
	Title   string
	Right   string
	Focused bool
}

// Frame draws the border of b at the edges of c and returns the canvas inside the border. A canvas
// of fewer than three lines or columns is too small for a border and is returned unchanged.
func (b Box) Frame(c Canvas) Canvas {
	w, h := c.w, c.h
	if w < 3 || h < 3 {
		return c
	}
	border, line, title := []rune("╭─╮│╯╰"), ink(Faint), ink(Title).bold()
	if b.Focused {
		border, line, title = []rune("┏━┓┃┛┗"), ink(Accent), ink(Accent).bold()
	}
	for x := 1; x < w-1; x++ {
		c.Set(x, 0, border[1], line)
		c.Set(x, h-1, border[1], line)
	}
	for y := 1; y < h-1; y++ {
		c.Set(0, y, border[3], line)
		c.Set(w-1, y, border[3], line)
	}
	c.Set(0, 0, border[0], line)
	c.Set(w-1, 0, border[2], line)
	c.Set(w-1, h-1, border[4], line)
	c.Set(0, h-1, border[5], line)
	b.title(c.Sub(2, 0, w-4, 1), title)
	return c.Sub(1, 1, w-2, h-2)
}

// StatusMax returns the maximum width of a status that fits next to the title on c.
func (b Box) StatusMax(c Canvas) int {
	x := 0
	if b.Title != "" {
		x = Width(b.Title) + 2
		if b.Key != 0 {
			x += 2
		}
	}
	return c.w - 4 - x - 3
}

// title writes the key, the title and, if there is space, the status.
func (b Box) title(c Canvas, s Style) {
	x := 0
	if b.Title != "" {
		x = c.Text(0, 0, " ", s)
		if b.Key != 0 {
			x = c.Text(x, 0, string(b.Key), ink(Muted))
			x = c.Text(x, 0, " ", s)
		}
		x = c.Text(x, 0, Cut(b.Title, c.w-x-1), s)
		x = c.Text(x, 0, " ", s)
	}
	if rw := Width(b.Right) + 2; b.Right != "" && x+1+rw <= c.w {
		c.Text(c.w-rw, 0, " "+b.Right+" ", ink(Muted))
	}
}

// A Bar is one line with a background: Left and Right at its ends, and after Left the parts of More
// that fit. If Left and Right do not fit, Right is cut.
type Bar struct {
	Left, Right []Part

	// More are optional parts. The last parts are omitted first.
	More []Part
}

// Draw fills the first line of c.
func (b Bar) Draw(c Canvas) {
	c, _ = c.Cut(1)
	left, right := partsWidth(b.Left), partsWidth(b.Right)
	x := writeParts(c, 1, b.Left)
	free := c.w - 2 - left - 2
	if right > 0 && free > 3 {
		_, end := c.Split(c.w - 1 - min(right, free))
		writeParts(end.Sub(0, 0, end.w-1, 1), 0, b.Right)
		free -= right
	}
	for _, p := range b.More {
		if free -= Width(p.Text); free < 0 {
			break
		}
		x = writeParts(c, x, []Part{p})
	}
	c.Restyle(func(s Style) Style {
		if s.Ground == Own {
			s.Ground = Stripe
		}
		return s
	})
}

func partsWidth(ps []Part) int {
	n := 0
	for _, p := range ps {
		n += Width(p.Text)
	}
	return n
}

// writeParts writes ps at column x and returns the column after them. A part that does not fit ends
// in an ellipsis.
func writeParts(c Canvas, x int, ps []Part) int {
	for _, p := range ps {
		if x >= c.w {
			break
		}
		x = c.Text(x, 0, Cut(p.Text, c.w-x), p.Style)
	}
	return x
}

// A Message is wrapped text in the middle of an otherwise empty canvas.
type Message struct {
	Title, Text string
}

// Draw fills c.
func (m Message) Draw(c Canvas) {
	w := min(c.w-2, 72)
	var lines []string
	if m.Title != "" {
		lines = Wrap(m.Title, w)
	}
	titles := len(lines)
	for _, part := range strings.Split(m.Text, "\n") {
		if m.Text != "" {
			lines = append(lines, Wrap(part, w)...)
		}
	}
	y := max((c.h-len(lines))/2, 0)
	for i, l := range lines {
		s := ink(Muted)
		if i < titles {
			s = ink(Title).bold()
		}
		c.Text((c.w-Width(l))/2, y+i, l, s)
	}
}

// window returns the first of count rows to show in h lines so that the selected row is visible,
// with rows around it. It scrolls by half a page, so that small moves do not scroll.
func window(selected, count, h int) int {
	if h <= 0 || count <= h || selected < 0 {
		return 0
	}
	step := max(h/2, 1)
	top := selected/step*step - (h-step)/2
	return min(max(top, 0), count-h)
}

// writeMore writes on the last line of c how many rows there are above and below the visible ones.
// what is the name of a row in the singular.
func writeMore(c Canvas, above, below int, what string) {
	if c.h == 0 || above+below <= 0 {
		return
	}
	s := "… "
	switch {
	case above > 0 && below > 0:
		s += figures.Count(above, what) + " above, " + figures.Integer(below) + " below"
	case above > 0:
		s += figures.Count(above, "more "+what) + " above"
	default:
		s += figures.Count(below, "more "+what) + " below"
	}
	c.Text(1, c.h-1, Cut(s, c.w-1), ink(Muted))
}
