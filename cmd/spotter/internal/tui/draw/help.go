package draw

// A KeyGroup is the keys of one purpose.
type KeyGroup struct {
	Title string
	Keys  []Key
}

// Help is a page of keys, in as many columns as fit. Scroll leaves out that
// many lines.
type Help struct {
	Groups []KeyGroup
	Scroll int
}

// A helpColumn is groups under one another.
type helpColumn struct {
	groups []KeyGroup
	lines  int
}

// widths returns the columns that keys and their meanings take.
func (h Help) widths() (keys, what int) {
	for _, g := range h.Groups {
		what = max(what, Width(g.Title)-keys-2)
		for _, k := range g.Keys {
			keys, what = max(keys, Width(k.Keys)), max(what, Width(k.What))
		}
	}
	return keys, what
}

// columns spreads the groups over the columns that fit in w, in order, none of
// them cut: the least height at which they fit.
func (h Help) columns(w int) []helpColumn {
	keys, what := h.widths()
	n := max((w+3)/(keys+2+what+3), 1)
	total := 0
	for _, g := range h.Groups {
		total += len(g.Keys) + 2
	}
	for height := (total + n - 1) / n; ; height++ {
		if cols := h.fill(height); len(cols) <= n {
			return cols
		}
	}
}

// fill puts the groups into columns of at most height lines.
func (h Help) fill(height int) []helpColumn {
	var cols []helpColumn
	for _, g := range h.Groups {
		need := len(g.Keys) + 2
		if n := len(cols); n == 0 || cols[n-1].lines+need > height+1 && cols[n-1].lines > 0 {
			cols = append(cols, helpColumn{})
		}
		col := &cols[len(cols)-1]
		col.groups, col.lines = append(col.groups, g), col.lines+need
	}
	return cols
}

// Lines returns how many lines h takes in w columns.
func (h Help) Lines(w int) int {
	n := 0
	for _, col := range h.columns(w) {
		n = max(n, col.lines-1)
	}
	return n
}

// Draw fills c.
func (h Help) Draw(c Canvas) {
	keys, what := h.widths()
	x := 0
	for _, col := range h.columns(c.w) {
		part := c.Sub(x, 0, min(keys+2+what, c.w-x), c.h)
		y := -max(h.Scroll, 0)
		for _, g := range col.groups {
			part.Text(0, y, g.Title, ink(Title).bold())
			y++
			for _, k := range g.Keys {
				part.Text(0, y, k.Keys, ink(Accent).bold())
				part.Text(keys+2, y, Cut(k.What, part.w-keys-2), Style{})
				y++
			}
			y++
		}
		x += keys + 2 + what + 3
	}
}
