package draw

// An Item is a line of a panel: a value behind its key, or text without one.
// Long values are wrapped.
type Item struct {
	Key, Value string
	Ink        Ink

	// Bar, if not nil, is drawn before the value.
	Bar *Meter
}

// A Section is items under a title.
type Section struct {
	Title string
	Items []Item
}

// A Panel shows what is known of one thing. Scroll leaves out that many lines.
type Panel struct {
	Sections []Section
	Scroll   int
}

// keyMax is the most columns of a panel that keys take.
const keyMax = 18

// keyWidth returns the columns of the keys in w columns, with the gap behind
// them.
func (p Panel) keyWidth(w int) int {
	n := 0
	for _, s := range p.Sections {
		for _, i := range s.Items {
			n = max(n, Width(i.Key))
		}
	}
	return min(n, keyMax, max(w/3, 1)) + 2
}

// Lines returns how many lines p takes in w columns.
func (p Panel) Lines(w int) int { return p.write(Canvas{w: w}, 0) }

// Draw fills c, with a line at the end for what is below it.
func (p Panel) Draw(c Canvas) {
	all := p.write(c, max(p.Scroll, 0))
	above := min(max(p.Scroll, 0), all)
	if below := all - above - c.h; below > 0 && c.h >= 3 {
		last := c.Sub(0, c.h-1, c.w, 1)
		last.Fill(0, Style{})
		writeMore(last, 0, below+1, "line")
	}
}

// write draws p without its first lines and returns how many lines it has.
func (p Panel) write(c Canvas, skip int) int {
	y, keys := -skip, p.keyWidth(c.w)
	for n, s := range p.Sections {
		if n > 0 {
			y++
		}
		if s.Title != "" {
			x := c.Text(0, y, Cut(s.Title, c.w), ink(Title).bold()) + 1
			for ; x < c.w; x++ {
				c.Set(x, y, '─', ink(Faint))
			}
			y++
		}
		for _, i := range s.Items {
			y += i.write(c, y, keys)
		}
	}
	return y + skip
}

// write draws i from line y on, its value behind keys columns, and returns how
// many lines it takes.
func (i Item) write(c Canvas, y, keys int) int {
	x := 0
	if i.Key != "" {
		c.Text(0, y, Cut(i.Key, keys-1), ink(Muted))
		x = keys
	}
	if i.Bar != nil {
		i.Bar.Draw(c.Sub(x, y, min(meterWidth-1, c.w-x), 1))
		x += meterWidth
	}
	lines := Wrap(i.Value, max(c.w-x, 1))
	for n, l := range lines {
		c.Text(x, y+n, l, ink(i.Ink))
	}
	return len(lines)
}
