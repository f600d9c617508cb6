package format

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spotter-dev/spotter/eval"
)

// defaultWidth is taken where the width of the terminal is not known.
const defaultWidth = 120

// writeTable writes the report for a reader at a terminal of the given width;
// 0 means 120 columns. Where that is too narrow the less important columns are
// left out, and named.
func writeTable(w io.Writer, r *eval.Report, width int) error {
	width = cmp.Or(width, defaultWidth)
	b := new(bytes.Buffer)
	p := printer{b, width}
	p.text("", Title(r))
	for i := range r.Groups {
		g := &r.Groups[i]
		p.blank()
		if t := groupTitle(r, g); t != "" {
			p.text("", t)
		}
		left := p.table(r, g)
		for _, table := range groupTables {
			if heading, rows := table(r, g); rows != nil {
				p.blank()
				p.grid([][]string{heading}, rows)
			}
		}
		if line := OracleLine(r, g); line != "" {
			p.blank()
			p.text("", line)
		}
		if left != "" && i == 0 {
			p.text("", "Left out for want of width: "+left+".")
		}
	}
	for _, table := range []func(*eval.Report) ([]string, [][]string){acrossTable, savedTable} {
		if heading, rows := table(r); rows != nil {
			p.blank()
			p.wide([][]string{heading}, rows)
		}
	}
	p.list("Manifests not kept", Violations(r))
	p.list("Gates", gateLines(r))
	p.comparison(r.Comparison)
	p.list("Warnings", Warnings(r))
	p.list("Worst outages", worstOutageLines(r))
	for i := range r.Groups {
		g := &r.Groups[i]
		p.list("Runs with outages"+inScenario(r, g.Scenario), outageLines(r, g))
		p.list("Worst runs"+inScenario(r, g.Scenario), worstLines(r, g))
	}
	p.list("Missing runs: "+fmt.Sprint(r.Missing()), missingLines(r))
	p.list("Notes", Notes(r))
	p.list("Configuration", Settings(r))
	_, err := w.Write(b.Bytes())
	return err
}

// comparison writes the difference to the other side, nothing without one.
func (p *printer) comparison(x *eval.Comparison) {
	if x == nil {
		return
	}
	c := comparison{x}
	p.list(c.title(), c.lines())
	if heading, rows := c.table(); rows != nil {
		p.blank()
		p.grid([][]string{heading}, rows)
	}
}

// gateLines are the results of the gates in words.
func gateLines(r *eval.Report) []string {
	var lines []string
	for i := range r.Gates {
		lines = append(lines, gateLine(r, &r.Gates[i]))
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
func (p *printer) table(r *eval.Report, g *eval.Group) (left string) {
	cols := slices.Clone(columns)
	var names []string
	for {
		headings := make([][]string, 2)
		for _, c := range cols {
			headings[0], headings[1] = append(headings[0], c.top), append(headings[1], c.under)
		}
		rows := cells(r, g, cols)
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

// wide writes a grid with as many columns side by side as fit, and the others below,
// each part after a blank line and with the first column again.
func (p *printer) wide(headings, rows [][]string) {
	w := widths(append(slices.Clone(headings), rows...))
	for from := 1; from < len(w); {
		to, used := from+1, w[0]+2+w[from]
		for to < len(w) && used+2+w[to] <= p.width {
			used += 2 + w[to]
			to++
		}
		part := func(lines [][]string) (out [][]string) {
			for _, line := range lines {
				out = append(out, append([]string{line[0]}, line[from:to]...))
			}
			return out
		}
		if from > 1 {
			p.blank()
		}
		p.grid(part(headings), part(rows))
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
