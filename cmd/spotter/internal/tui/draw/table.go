package draw

import "github.com/spotter-dev/spotter/policy/figures"

// A Column of a table.
type Column struct {
	Title string

	// Right aligns it right, as numbers are. Middle cuts texts that do not fit in
	// their middle.
	Right, Middle bool

	// Min is the least width it is of use at, 0 for its whole width; Max the most
	// it takes, 0 for as wide as its widest field. Rank 0 is never left out; the
	// highest rank goes first.
	Min, Max, Rank int
}

// A Field is one cell of a table.
type Field struct {
	Text string
	Ink  Ink
	Bold bool

	// Bar, if not nil, is drawn before the text.
	Bar *Meter
}

// A Table shows rows under titles.
type Table struct {
	Columns []Column
	Rows    [][]Field

	// Selected is the row that is selected, -1 without one; it is always in sight.
	Selected int

	// Dimmed is how many rows at the end are dimmed.
	Dimmed int

	// Empty is said where there are no rows.
	Empty string
}

// meterWidth is the columns of a bar in a table, with the gap behind it.
const meterWidth = 11

// A tableLook is how a table is laid out on one canvas.
type tableLook struct {
	widths []int // by column, -1 for one left out
	gap    int   // between columns
	body   int   // first line of the rows
	rows   int   // how many are shown
	top    int   // the first one shown
	more   bool  // the last line says how many are not
}

// lines lays the rows of t out on h lines.
func (t Table) lines(h int) tableLook {
	l := tableLook{body: 1}
	if h < 3 {
		l.body = 0
	}
	l.rows = max(min(h-l.body, len(t.Rows)), 0)
	if l.rows < len(t.Rows) && h-l.body >= 3 {
		l.more, l.rows = true, h-l.body-1
	}
	l.top = window(t.Selected, len(t.Rows), l.rows)
	return l
}

// spread takes the widths, and two columns between them where w has room.
func (l *tableLook) spread(widths []int, w int) {
	l.widths, l.gap = widths, 2
	sum := 1 - l.gap
	for _, n := range widths {
		if n >= 0 {
			sum += n + l.gap
		}
	}
	if sum > w {
		l.gap = 1
	}
}

// widths returns the width of each column in w columns, -1 of those in which no row has
// anything: narrower ones first, then some are left out.
func (t Table) widths(w int) []int {
	wide := make([]int, len(t.Columns))
	sum := 1
	for i, col := range t.Columns {
		if wide[i] = Width(col.Title); t.blank(i) {
			wide[i] = -1
			continue
		}
		for _, r := range t.Rows {
			if i < len(r) {
				wide[i] = max(wide[i], r[i].width())
			}
		}
		if col.Max > 0 {
			wide[i] = min(wide[i], col.Max)
		}
		sum += wide[i] + 1
	}
	for sum-1 > w {
		if t.shrink(wide, sum-1-w) {
			break
		}
		drop := -1
		for i, col := range t.Columns {
			if wide[i] >= 0 && col.Rank > 0 && (drop < 0 || col.Rank >= t.Columns[drop].Rank) {
				drop = i
			}
		}
		if drop < 0 {
			break
		}
		sum -= wide[drop] + 1
		wide[drop] = -1
	}
	return wide
}

// blank reports whether no row has anything in a column.
func (t Table) blank(column int) bool {
	for _, r := range t.Rows {
		if column < len(r) && (r[column].Bar != nil ||
			r[column].Text != "" && r[column].Text != " " && r[column].Text != figures.Unknown) {
			return false
		}
	}
	return len(t.Rows) > 0
}

// shrink takes over columns from those that may be narrower, the widest first,
// and says whether it could; if not it takes nothing.
func (t Table) shrink(wide []int, over int) bool {
	free := 0
	for i, col := range t.Columns {
		if col.Min > 0 && wide[i] > col.Min {
			free += wide[i] - col.Min
		}
	}
	if free < over {
		return false
	}
	for ; over > 0; over-- {
		widest := -1
		for i, col := range t.Columns {
			if col.Min > 0 && wide[i] > col.Min && (widest < 0 || wide[i] > wide[widest]) {
				widest = i
			}
		}
		wide[widest]--
	}
	return true
}

// width returns the columns that f takes.
func (f Field) width() int {
	n := Width(f.Text)
	if f.Bar != nil {
		n += meterWidth
	}
	return n
}

// Draw fills c.
func (t Table) Draw(c Canvas) {
	if len(t.Rows) == 0 {
		Message{Text: t.Empty}.Draw(c)
		return
	}
	l := t.lines(c.h)
	l.spread(t.widths(c.w), c.w)
	if l.body > 0 {
		x := 1
		for i, col := range t.Columns {
			if l.widths[i] >= 0 {
				x = col.write(c, x, 0, l.widths[i], Field{Text: col.Title, Ink: Muted}, false) + l.gap
			}
		}
	}
	for i := range l.rows {
		t.row(c, l, l.top+i, l.body+i)
	}
	if l.more {
		writeMore(c, l.top, len(t.Rows)-l.top-l.rows, "row")
	}
}

// row draws row i at line y.
func (t Table) row(c Canvas, l tableLook, i, y int) {
	dim := i >= len(t.Rows)-t.Dimmed
	switch {
	case i == t.Selected:
		c.Set(0, y, '▸', ink(Accent).bold())
	case dim:
		c.Set(0, y, '·', ink(Faint))
	}
	x := 1
	for n, col := range t.Columns {
		if l.widths[n] < 0 {
			continue
		}
		var f Field
		if n < len(t.Rows[i]) {
			f = t.Rows[i][n]
		}
		x = col.write(c, x, y, l.widths[n], f, dim) + l.gap
	}
	if i == t.Selected {
		c.Sub(0, y, c.w, 1).Mark()
	}
}

// write draws f in w columns from x on and returns the column after it.
func (col Column) write(c Canvas, x, y, w int, f Field, dim bool) int {
	at, free, s := x, w, Style{Ink: f.Ink}
	if f.Bold {
		s.Attr |= Bold
	}
	if dim {
		s = ink(Muted)
	}
	if f.Bar != nil && f.width() <= w { // the text says it all where there is no room
		m := *f.Bar
		if dim {
			m.Ink = Muted
		}
		m.Draw(c.Sub(at, y, meterWidth-1, 1))
		at, free = at+meterWidth, free-meterWidth
	}
	text := f.Text
	if col.Middle {
		text = CutMiddle(text, free)
	} else {
		text = Cut(text, free)
	}
	if col.Right {
		at += free - Width(text)
	}
	c.Sub(0, y, x+w, 1).Text(at, 0, text, s)
	return x + w
}

// RowAt returns the row drawn at line y on a canvas of h lines.
func (t Table) RowAt(h, y int) (int, bool) {
	l := t.lines(h)
	if y < l.body || y >= l.body+l.rows {
		return 0, false
	}
	return l.top + y - l.body, true
}
