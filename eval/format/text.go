package format

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/muesli/termenv"
)

// defaultWidth is taken where the width of the terminal is not known.
const defaultWidth = 120

// firstMark is before the row of the winner.
const firstMark = "▸ "

// A printer writes text of a width.
type printer struct {
	w     *bytes.Buffer
	width int
	color bool
}

// painted returns s in the colour of a tone, on a terminal that has colours.
func (p *printer) painted(s string, tone Tone) string {
	color, known := map[Tone]termenv.Color{Good: termenv.ANSIGreen, Bad: termenv.ANSIRed, Unsure: termenv.ANSIYellow}[tone]
	if !p.color || !known || strings.TrimSpace(s) == "" {
		return s
	}
	return termenv.ANSI.String(s).Foreground(color).String()
}

func (p *printer) blank() { p.w.WriteByte('\n') }

// list writes a heading and items, or nothing without items. What follows a
// line break inside an item is a command and is not wrapped, so that it can be
// copied.
func (p *printer) list(heading string, items []string, tone Tone) {
	if len(items) == 0 {
		return
	}
	indent := ""
	if heading != "" {
		p.blank()
		p.text("", heading)
		indent = "  "
	}
	for _, item := range items {
		first, rest, _ := strings.Cut(item, "\n")
		p.toned(indent, first, tone)
		if rest != "" {
			p.w.WriteString(rest + "\n")
		}
	}
}

// text writes s, wrapped between words, each line after indent.
func (p *printer) text(indent, s string) { p.toned(indent, s, Plain) }

// toned writes s as text in the colour of a tone.
func (p *printer) toned(indent, s string, tone Tone) {
	var lines []string
	used := 0
	for i, word := range strings.Fields(s) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
			lines, used = append(lines, indent+word), len(indent)+n
		case used+1+n > p.width:
			lines, used = append(lines, indent+"  "+word), len(indent)+2+n
		default:
			lines[len(lines)-1] += " " + word
			used += 1 + n
		}
	}
	for _, line := range lines {
		p.w.WriteString(p.painted(line, tone) + "\n")
	}
	if len(lines) == 0 {
		p.blank()
	}
}

// wide writes a table with as many columns side by side as fit, and the others below, each part
// after a blank line and with the first column again.
func (p *printer) wide(t Grid) {
	w := t.widths()
	for from := 1; from < len(w); {
		to, used := from+1, w[0]+2+w[from]
		for to < len(w) && used+2+w[to] <= p.width {
			used += 2 + w[to]
			to++
		}
		if from > 1 {
			p.blank()
		}
		p.grid(t.part(from, to))
		from = to
	}
}

// grid writes headings, a rule and rows; the first column to the left, the others to the right.
func (p *printer) grid(t Grid) {
	w := t.widths()
	for _, h := range t.Headings {
		p.row(Row{Cells: h}, w)
	}
	p.w.WriteString(strings.Repeat("─", total(w)) + "\n")
	for _, row := range t.Rows {
		p.row(row, w)
	}
}

func (p *printer) row(row Row, widths []int) {
	var b strings.Builder
	for i, c := range row.Cells {
		pad, tone := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c)), Plain
		if i < len(row.Tones) {
			tone = row.Tones[i]
		}
		if c = p.painted(c, tone); i == 0 {
			b.WriteString(c + pad)
		} else {
			b.WriteString("  " + pad + c)
		}
	}
	p.w.WriteString(strings.TrimRight(b.String(), " ") + "\n")
}

// marked returns t with the mark of the winner before its name, and room for it before the others.
func (t Grid) marked() Grid {
	if !t.hasFirst() {
		return t
	}
	room := strings.Repeat(" ", utf8.RuneCountInString(firstMark))
	out := Grid{}
	for _, h := range t.Headings {
		out.Headings = append(out.Headings, append([]string{room + h[0]}, h[1:]...))
	}
	for _, row := range t.Rows {
		mark := room
		if row.First {
			mark = firstMark
			tones := make([]Tone, len(row.Cells))
			copy(tones, row.Tones)
			tones[0], row.Tones = Good, tones
		}
		row.Cells = append([]string{mark + row.Cells[0]}, row.Cells[1:]...)
		out.Rows = append(out.Rows, row)
	}
	return out
}

// part returns the first column of t and those of a range.
func (t Grid) part(from, to int) (out Grid) {
	for _, h := range t.Headings {
		out.Headings = append(out.Headings, append([]string{h[0]}, h[from:to]...))
	}
	for _, row := range t.Rows {
		of := Row{Cells: append([]string{row.Cells[0]}, row.Cells[from:to]...), First: row.First}
		if len(row.Tones) == len(row.Cells) {
			of.Tones = append([]Tone{row.Tones[0]}, row.Tones[from:to]...)
		}
		out.Rows = append(out.Rows, of)
	}
	return out
}

// widths returns the widths of the columns.
func (t *Grid) widths() []int {
	lines := slices.Clone(t.Headings)
	for i := range t.Rows {
		lines = append(lines, t.Rows[i].Cells)
	}
	var w []int
	for _, line := range lines {
		for i, c := range line {
			if i == len(w) {
				w = append(w, 0)
			}
			w[i] = max(w[i], utf8.RuneCountInString(c))
		}
	}
	return w
}

func total(widths []int) int {
	sum := 2 * (len(widths) - 1)
	for _, w := range widths {
		sum += w
	}
	return sum
}
