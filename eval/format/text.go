package format

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/muesli/termenv"

	"github.com/spotter-dev/spotter/policy/figures"
)

// Options define the layout of text. They do not affect the other formats.
type Options struct {
	// Width is the width of the terminal in columns; 0 means 120.
	Width int

	// Details adds all details, Wide all columns of tables, and Color ANSI colours.
	Details, Wide, Color bool

	// NoRuns leaves the single runs out of JSON and YAML. Of summaries and of medians of windows these
	// then have Metrics alone, or all if Metrics is empty.
	NoRuns  bool
	Metrics []string
}

// defaultWidth is the assumed width of a terminal whose width is unknown.
const defaultWidth = 120

// firstMark marks the row of the winner.
const firstMark = "▸ "

// warningsShown is the number of warnings in an answer without details.
const warningsShown = 3

// A printer writes text of a given width.
type printer struct {
	w     *bytes.Buffer
	width int
	color bool
}

// Write writes a as text.
func (a *Answer) Write(w io.Writer, o Options) error {
	p := printer{new(bytes.Buffer), cmp.Or(max(o.Width, 0), defaultWidth), o.Color}
	for _, v := range a.Verdicts {
		p.text("", v.String(), v.Tone)
	}
	p.items("", &Section{Items: a.Failed}, Bad)
	about, legend := a.About, a.Legend
	for i := range a.Tables {
		t, left := a.Tables[i].fitting(p.width, o.Wide || o.Details)
		if len(t.Rows) == 0 {
			continue
		}
		p.blank()
		p.wide(&t)
		if more := len(a.Tables[i].Rows) - len(t.Rows); more > 0 {
			p.text("", fmt.Sprintf("and %d more, with --details", more), Plain)
		}
		if len(left) > 0 && (o.Wide || o.Details) {
			about += " · left out to fit the width: " + strings.Join(left, ", ")
		}
		for _, h := range t.Headings {
			if h.About != "" {
				legend = []string{strings.Join(append(slices.Clone(legend), h.About), " ")}
			}
		}
	}
	if !o.Details && len(a.Details) > 0 {
		about = strings.TrimPrefix(about+" · --details prints the rest", " · ")
	}
	if about != "" {
		p.blank()
		p.text("", about, Plain)
	}
	if !o.Details {
		for _, line := range legend {
			p.text("", line, Plain)
		}
	}
	p.warnings(a.Warnings, o.Details)
	if o.Details {
		for i := range a.Details {
			p.section(&a.Details[i])
		}
	}
	p.next(a.Next)
	_, err := w.Write(bytes.TrimPrefix(p.w.Bytes(), []byte("\n")))
	return err
}

// warnings writes all warnings if details is true, otherwise only the first ones.
func (p *printer) warnings(all []string, details bool) {
	shown := all
	if len(all) > warningsShown && !details {
		shown = all[:warningsShown]
	}
	if len(shown) > 0 {
		p.blank()
	}
	for _, text := range shown {
		p.text("", Verdict{Unsure, text}.String(), Unsure)
	}
	if more := len(all) - len(shown); more > 0 {
		p.text("", fmt.Sprintf("and %d more, with --details", more), Plain)
	}
}

// next writes the suggested next action.
func (p *printer) next(s Step) {
	if s.Do == "" {
		return
	}
	p.blank()
	p.text("", "Next: "+s.Do, Plain)
	for command := range strings.Lines(s.Command) {
		p.w.WriteString("  " + strings.TrimSuffix(command, "\n") + "\n")
	}
}

// section writes a section, unless it is empty.
func (p *printer) section(s *Section) {
	if len(s.Items)+len(s.Table.Rows)+len(s.About)+len(s.Picture) == 0 {
		return
	}
	p.blank()
	indent := ""
	if s.Heading != "" {
		p.text("", s.Heading, Plain)
		indent = "  "
	}
	if s.About != "" {
		p.text("", s.About, Plain)
	}
	p.items(indent, s, Plain)
	if len(s.Table.Rows) > 0 {
		t, _ := s.Table.fitting(p.width, true)
		p.wide(&t)
	}
	p.w.WriteString(s.Picture)
}

// items writes the list of a section. Text after a line break in an item is a command. It is not
// wrapped, so that it can be copied.
func (p *printer) items(indent string, s *Section, tone Tone) {
	for i, item := range s.Items {
		first, rest, _ := strings.Cut(item, "\n")
		if s.Numbered {
			first = fmt.Sprintf("%d. %s", i+1, first)
		}
		p.text(indent, first, tone)
		if rest != "" {
			if !strings.HasPrefix(rest, " ") { // not a command, but a name that contains a line break
				rest = " " + rest
			}
			p.w.WriteString(figures.Plain(rest) + "\n")
		}
	}
}

// painted returns s in the colour of a tone if p.color is set.
func (p *printer) painted(s string, tone Tone) string {
	colors := map[Tone]termenv.Color{Good: termenv.ANSIGreen, Bad: termenv.ANSIRed, Unsure: termenv.ANSIYellow}
	if color, known := colors[tone]; p.color && known && strings.TrimSpace(s) != "" {
		return termenv.ANSI.String(s).Foreground(color).String()
	}
	return s
}

func (p *printer) blank() { p.w.WriteByte('\n') }

// text writes s in the colour of a tone, wrapped between words. Each line starts with indent.
func (p *printer) text(indent, s string, tone Tone) {
	var lines []string
	used := 0
	for i, word := range strings.Fields(s) {
		word = figures.Plain(word)
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
}

// fitting returns t without wide rows and columns, unless all is true, and without the columns that
// do not fit into width. left contains the names of the latter.
func (t *Grid) fitting(width int, all bool) (out Grid, left []string) {
	short := Grid{Headings: t.Headings}
	for _, row := range t.Rows {
		if missing := len(t.Headings) - len(row.Cells); missing > 0 {
			row.Cells = append(slices.Clone(row.Cells), make([]Cell, missing)...)
		}
		if all || !row.Wide {
			short.Rows = append(short.Rows, row)
		}
	}
	t = &short
	var keep []int
	for i, h := range t.Headings {
		if all || !h.Wide {
			keep = append(keep, i)
		}
	}
	for len(keep) > 0 {
		out = t.columns(keep)
		drop := 0
		for i, h := range out.Headings {
			if h.Rank > out.Headings[drop].Rank {
				drop = i
			}
		}
		if lines, _ := out.lines(); total(widths(lines)) <= width || out.Headings[drop].Rank == 0 {
			return out, left
		}
		left = append(left, strings.ToLower(out.Headings[drop].String()))
		keep = slices.Delete(keep, drop, drop+1)
	}
	return *t, nil // the grid has no headings
}

// columns returns the columns of t with the indexes in keep.
func (t *Grid) columns(keep []int) (out Grid) {
	for _, i := range keep {
		out.Headings = append(out.Headings, t.Headings[i])
	}
	for _, row := range t.Rows {
		of := Row{First: row.First}
		for _, i := range keep {
			of.Cells = append(of.Cells, row.Cells[i])
		}
		out.Rows = append(out.Rows, of)
	}
	return out
}

// wide writes a table that may be wider than the terminal. Columns that do not fit are written
// below, after a blank line and with the first column repeated.
func (p *printer) wide(t *Grid) {
	lines, headings := t.lines()
	w := widths(lines)
	if headings == 0 || len(w) == 1 {
		p.grid(lines, w, headings)
		return
	}
	for from := 1; from < len(w); {
		to, used := from+1, w[0]+2+w[from]
		for to < len(w) && used+2+w[to] <= p.width {
			used += 2 + w[to]
			to++
		}
		if from > 1 {
			p.blank()
		}
		var part [][]Cell
		for _, line := range lines {
			part = append(part, append([]Cell{line[0]}, line[from:to]...))
		}
		p.grid(part, append([]int{w[0]}, w[from:to]...), headings)
		from = to
	}
}

// lines returns the lines of t, and the number of lines that are headings. Rows of winners start
// with firstMark, and all others are indented by its width.
func (t *Grid) lines() (out [][]Cell, headings int) {
	var tops, unders []Cell
	for _, h := range t.Headings {
		tops, unders = append(tops, Cell{Text: h.Top}), append(unders, Cell{Text: h.Under})
	}
	two := func(c Cell) bool { return c.Under != "" }
	for _, line := range [][]Cell{tops, unders} {
		if slices.ContainsFunc(line, func(c Cell) bool { return c.Text != "" }) {
			out = append(out, line)
		}
	}
	headings = len(out)
	var firsts []int
	for _, row := range t.Rows {
		if row.First {
			firsts = append(firsts, len(out))
		}
		upper, lower := slices.Clone(row.Cells), make([]Cell, len(row.Cells))
		if !slices.ContainsFunc(upper, two) {
			out = append(out, upper)
			continue
		}
		for i, c := range upper {
			lower[i] = Cell{Text: c.Under, Tone: c.Tone}
		}
		if at := strings.Index(upper[0].Text, ":"); at > 0 { // break a long name before its parameters
			upper[0].Text, lower[0].Text = upper[0].Text[:at], upper[0].Text[at:]
		}
		out = append(out, upper, lower)
	}
	for i, line := range out {
		for k := range line {
			line[k].Text = figures.Plain(line[k].Text)
		}
		switch mark := &line[0]; {
		case slices.Contains(firsts, i):
			mark.Text, mark.Tone = firstMark+mark.Text, Good
		case firsts != nil:
			mark.Text = strings.Repeat(" ", utf8.RuneCountInString(firstMark)) + mark.Text
		}
	}
	return out, headings
}

// grid writes lines, with a rule below the headings. The first column is left-aligned. The others
// are right-aligned if there are headings.
func (p *printer) grid(lines [][]Cell, widths []int, headings int) {
	for i, line := range lines {
		if i == headings && headings > 0 {
			p.w.WriteString(strings.Repeat("─", total(widths)) + "\n")
		}
		var b strings.Builder
		for k, c := range line {
			pad := strings.Repeat(" ", widths[k]-utf8.RuneCountInString(c.Text))
			switch text := p.painted(c.Text, c.Tone); {
			case k == 0:
				b.WriteString(text + pad)
			case headings == 0:
				b.WriteString("  " + text + pad)
			default:
				b.WriteString("  " + pad + text)
			}
		}
		if text := strings.TrimRight(b.String(), " "); text != "" || i >= headings { // of these columns, no heading has a second line
			p.w.WriteString(text + "\n")
		}
	}
}

// widths returns the widths of the columns.
func widths(lines [][]Cell) (w []int) {
	for _, line := range lines {
		for i, c := range line {
			if i == len(w) {
				w = append(w, 0)
			}
			w[i] = max(w[i], utf8.RuneCountInString(c.Text))
		}
	}
	return w
}

// total returns the width of a table with the given column widths.
func total(widths []int) int {
	sum := 2 * (len(widths) - 1)
	for _, w := range widths {
		sum += w
	}
	return sum
}
