package draw

import "github.com/spotter-dev/spotter/policy/figures"

// A Column describes a column of a table.
type Column struct {
	Title string

	// Right aligns it to the right, as for numbers. Middle shortens texts that do not fit in the
	// middle.
	Right, Middle bool

	// Min is the minimum useful width, or 0 if the column must have its full width. Max is the
	// maximum width, or 0 for the width of the widest field. A column of rank 0 is never omitted;
	// otherwise the highest rank is omitted first.
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

	// Selected is the index of the selected row, or -1. The selected row is always visible.
	Selected int

	// Dimmed is the number of rows at the end that are dimmed.
	Dimmed int

	// Empty is the text if there are no rows.
	Empty string
}

// meterWidth is the width of a bar in a table, including the gap after it.
const meterWidth = 11

// A tableLook is the layout of a table on a canvas.
type tableLook struct {
	widths []int // by column, -1 for an omitted one
	gap    int   // between columns
	body   int   // first line of the rows
	rows   int   // number of visible rows
	top    int   // first visible row
	more   bool  // whether the last line shows the number of hidden rows
}

// lines returns the layout of the rows of t on h lines.
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

// spread sets the widths, and a gap of two columns between them if they fit in w columns.
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

// widths returns the width of each column in w columns, and -1 for columns that are empty in all
// rows. If space is short, columns are narrowed first and then omitted.
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

// blank reports whether a column is empty in all rows.
func (t Table) blank(column int) bool {
	for _, r := range t.Rows {
		if column < len(r) && (r[column].Bar != nil ||
			r[column].Text != "" && r[column].Text != " " && r[column].Text != figures.Unknown) {
			return false
		}
	}
	return len(t.Rows) > 0
}

// shrink narrows columns by over in total, the widest first. It reports whether that is possible;
// if not, it changes nothing.
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

// width returns the width of f.
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

// write draws f in w columns at x and returns the column after it.
func (col Column) write(c Canvas, x, y, w int, f Field, dim bool) int {
	at, free, s := x, w, Style{Ink: f.Ink}
	if f.Bold {
		s.Attr |= Bold
	}
	if dim {
		s = ink(Muted)
	}
	if f.Bar != nil && f.width() <= w { // without space for the bar, the text is sufficient
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
