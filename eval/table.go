package eval

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// defaultWidth is taken where the width of the terminal is not known.
const defaultWidth = 120

// WriteTable writes the report for a reader at a terminal of the given width;
// 0 means 120 columns. Where that is too narrow the less important columns are
// left out, and named.
func (r *Report) WriteTable(w io.Writer, width int) error {
	width = cmp.Or(width, defaultWidth)
	b := new(bytes.Buffer)
	p := printer{b, width}
	p.text("", r.title())
	for i := range r.Groups {
		g := &r.Groups[i]
		p.blank()
		if t := r.groupTitle(g); t != "" {
			p.text("", t)
		}
		left := p.table(r, g)
		if heading, rows := r.windowTable(g); rows != nil {
			p.blank()
			p.grid([][]string{heading}, rows)
		}
		for _, table := range []func(*Group) ([]string, [][]string){r.weeksTable, r.frontierTable} {
			if heading, rows := table(g); rows != nil {
				p.blank()
				p.grid([][]string{heading}, rows)
			}
		}
		if line := r.oracleLine(g); line != "" {
			p.blank()
			p.text("", line)
		}
		if left != "" && i == 0 {
			p.text("", "Left out for want of width: "+left+".")
		}
	}
	for _, table := range []func() ([]string, [][]string){r.acrossTable, r.savedTable} {
		if heading, rows := table(); rows != nil {
			p.wide(heading, rows)
		}
	}
	p.list("Manifests not kept", r.Violations())
	p.list("Gates", r.gateLines())
	p.comparison(r.Comparison)
	p.list("Warnings", r.Warnings())
	p.list("Worst outages", r.worstOutageLines())
	for i := range r.Groups {
		g := &r.Groups[i]
		p.list("Runs with outages"+r.in(g.Scenario), r.outageLines(g))
		p.list("Worst runs"+r.in(g.Scenario), r.worstLines(g))
	}
	p.list("Missing runs: "+fmt.Sprint(r.Missing()), r.missingLines())
	p.list("Notes", r.Notes())
	p.list("Configuration", r.settings())
	_, err := w.Write(b.Bytes())
	return err
}

// comparison writes the difference to the other side, nothing without one.
func (p *printer) comparison(c *Comparison) {
	if c == nil {
		return
	}
	p.list(c.title(), c.lines())
	if heading, rows := c.table(); rows != nil {
		p.blank()
		p.grid([][]string{heading}, rows)
	}
}

// gateLines are the verdicts in words.
func (r *Report) gateLines() []string {
	var lines []string
	for i := range r.Gates {
		lines = append(lines, r.gateLine(&r.Gates[i]))
	}
	return lines
}

// A printer writes plain text of a width.
type printer struct {
	w     *bytes.Buffer
	width int
}

func (p *printer) blank() { p.w.WriteByte('\n') }

// list writes a heading and items, or nothing without items. What follows a
// line break inside an item is a command and is not wrapped, so that it can be
// copied.
func (p *printer) list(heading string, items []string) {
	if len(items) == 0 {
		return
	}
	p.blank()
	p.text("", heading)
	for _, item := range items {
		first, rest, _ := strings.Cut(item, "\n")
		p.text("  ", first)
		if rest != "" {
			p.w.WriteString(rest + "\n")
		}
	}
}

// text writes s, wrapped between words, each line after indent.
func (p *printer) text(indent, s string) {
	used := 0
	for i, word := range strings.Fields(s) {
		n := utf8.RuneCountInString(word)
		if i == 0 {
			p.w.WriteString(indent)
			used = len(indent)
		} else if used+1+n > p.width {
			p.w.WriteString("\n" + indent + "  ")
			used = len(indent) + 2
		} else {
			p.w.WriteByte(' ')
			used++
		}
		p.w.WriteString(word)
		used += n
	}
	p.blank()
}

// table writes the comparison of g and returns the columns left out.
func (p *printer) table(r *Report, g *Group) (left string) {
	cols := slices.Clone(columns)
	var names []string
	for {
		headings := make([][]string, 2)
		for _, c := range cols {
			headings[0], headings[1] = append(headings[0], c.top), append(headings[1], c.under)
		}
		rows := r.rows(g, cols)
		if total(widths(append(headings, rows...))) <= p.width || !slices.ContainsFunc(cols, func(c column) bool { return c.rank > 0 }) {
			p.grid(headings, rows)
			return strings.Join(names, ", ")
		}
		drop := 0
		for i, c := range cols {
			if c.rank > cols[drop].rank {
				drop = i
			}
		}
		names = append(names, strings.ToLower(cols[drop].top+" "+cols[drop].under))
		cols = slices.Delete(cols, drop, drop+1)
	}
}

// grid writes headings, a rule and rows; the first column to the left, the
// others to the right.
func (p *printer) grid(headings, rows [][]string) {
	w := widths(append(slices.Clone(headings), rows...))
	for _, h := range headings {
		p.row(h, w)
	}
	p.w.WriteString(strings.Repeat("─", total(w)) + "\n")
	for _, row := range rows {
		p.row(row, w)
	}
}

// wide writes a table with as many columns side by side as fit, and the others
// below, each part after a blank line and with the first column again.
func (p *printer) wide(heading []string, rows [][]string) {
	all := append([][]string{heading}, rows...)
	w := widths(all)
	for from := 1; from < len(w); {
		to, used := from, w[0]
		for to < len(w) && (to == from || used+2+w[to] <= p.width) {
			used += 2 + w[to]
			to++
		}
		part := make([][]string, len(all))
		for i, row := range all {
			part[i] = append([]string{row[0]}, row[from:to]...)
		}
		p.blank()
		p.grid(part[:1], part[1:])
		from = to
	}
}

func (p *printer) row(cells []string, widths []int) {
	var b strings.Builder
	for i, c := range cells {
		pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c))
		if i == 0 {
			b.WriteString(c + pad)
		} else {
			b.WriteString("  " + pad + c)
		}
	}
	p.w.WriteString(strings.TrimRight(b.String(), " ") + "\n")
}

func widths(rows [][]string) []int {
	var w []int
	for _, row := range rows {
		for i, c := range row {
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
