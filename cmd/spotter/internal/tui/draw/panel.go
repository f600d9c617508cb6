package draw

// An Item is a line of a panel: a value after its key, or text without a key. Long values are
// wrapped.
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

// A Panel shows the facts about one subject. Scroll is the number of lines that are skipped.
type Panel struct {
	Sections []Section
	Scroll   int
}

// keyMax is the maximum number of columns for keys.
const keyMax = 18

// keyWidth returns the width of the column of keys in w columns, including the gap after it.
func (p Panel) keyWidth(w int) int {
	n := 0
	for _, s := range p.Sections {
		for _, i := range s.Items {
			n = max(n, Width(i.Key))
		}
	}
	return min(n, keyMax, max(w/3, 1)) + 2
}

// Lines returns the number of lines of p in w columns.
func (p Panel) Lines(w int) int { return p.write(Canvas{w: w}, 0) }

// Draw fills c. If lines do not fit, the last line shows their number.
func (p Panel) Draw(c Canvas) {
	all := p.write(c, max(p.Scroll, 0))
	above := min(max(p.Scroll, 0), all)
	if below := all - above - c.h; below > 0 && c.h >= 3 {
		last := c.Sub(0, c.h-1, c.w, 1)
		last.Fill(0, Style{})
		writeMore(last, 0, below+1, "line")
	}
}

// write draws p without its first skip lines and returns its total number of lines.
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

// write draws i from line y, with its value after keys columns, and returns its number of lines.
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
