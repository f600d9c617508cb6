package format

import (
	"html"
	"strings"
)

// An Answer is a result for people: the verdict first, then what supports it, and everything else
// on request. [Answer.Write], [Answer.Markdown] and [Answer.Comment] render it, and know of a result
// nothing else.
type Answer struct {
	Verdicts []Verdict
	Tables   []Grid

	// About says what was compared, over what.
	About string

	// Legend explains the columns that do not explain themselves.
	Legend []string

	// Failed are the gates that failed, with the command that repeats the worst run of each.
	Failed []string

	// Warnings are what to know before relying on the verdict, the gravest first.
	Warnings []string

	Next Step

	// Details are everything else.
	Details []Section

	// Review is what a comment has for who reviews a change.
	Review Review
}

// A Review is the part of a comment above everything else.
type Review struct {
	// Title is the verdict in a few words. Quiet says that it is nothing new: all gates hold, and
	// chance explains what changed.
	Title Verdict
	Quiet bool

	Sections []Section

	// Fold is the title of the details, which are folded.
	Fold string
}

// A Tone says whether something is good news.
type Tone int

// The tones.
const (
	Plain Tone = iota
	Good
	Bad
	Unsure
)

// A Verdict is a result in a sentence.
type Verdict struct {
	Tone Tone
	Text string
}

// String returns the sentence after the sign of its tone.
func (v Verdict) String() string {
	return map[Tone]string{Good: "✓ ", Bad: "✗ ", Unsure: "⚠ "}[v.Tone] + v.Text
}

// verdicts makes sentences verdicts, of which the first has a tone.
func verdicts(tone Tone, sentences []string) (out []Verdict) {
	for _, text := range sentences {
		out = append(out, Verdict{tone, text})
		tone = Plain
	}
	return out
}

// A Grid is a table. Without headings all its columns are aligned to the left.
type Grid struct {
	Headings []Heading
	Rows     []Row
}

// A Heading is that of a column, of one line or two.
type Heading struct {
	Top, Under string

	// About explains the column.
	About string

	// Wide says that only a table with all columns has it. Rank says which column is left out first
	// where the terminal is narrow: the one with the greatest. 0 stays always.
	Wide bool
	Rank int
}

// String returns the heading in one line.
func (h Heading) String() string {
	if strings.HasSuffix(h.Top, "-") {
		return h.Top + h.Under
	}
	return strings.TrimSpace(h.Top + " " + h.Under)
}

// A Row is one of a [Grid].
type Row struct {
	Cells []Cell

	// First marks the winner. Wide says that only a table with everything has the row.
	First, Wide bool
}

// A Cell is a figure in words. Under is a second figure, below the first where there is little room.
type Cell struct {
	Text, Under string
	Tone        Tone
}

// HTML returns t as a table of a page.
func (t Grid) HTML() string {
	var b strings.Builder
	b.WriteString("<table>\n<tr>")
	for _, h := range t.Headings {
		b.WriteString("<th scope=\"col\">" + html.EscapeString(h.String()) + "</th>")
	}
	for _, row := range t.Rows {
		b.WriteString("</tr>\n<tr>")
		for i, text := range row.line() {
			if i == 0 {
				b.WriteString("<th scope=\"row\">" + html.EscapeString(text) + "</th>")
			} else {
				b.WriteString("<td>" + html.EscapeString(text) + "</td>")
			}
		}
	}
	return b.String() + "</tr>\n</table>\n"
}

// line returns the cells in one line, with the mark of the winner.
func (r *Row) line() (out []string) {
	for i, c := range r.Cells {
		text := c.Text
		if c.Under != "" {
			text += " / " + c.Under
		}
		if r.First && i == 0 {
			text = firstMark + text
		}
		out = append(out, text)
	}
	return out
}

// Headings makes headings of one line.
func Headings(names ...string) (out []Heading) {
	for _, name := range names {
		out = append(out, Heading{Top: name})
	}
	return out
}

// Cells makes a row of texts.
func Cells(texts ...string) (out Row) {
	for _, text := range texts {
		out.Cells = append(out.Cells, Cell{Text: text})
	}
	return out
}

// A column makes the cells of one column of a grid of rows of type R.
type column[R any] struct {
	Heading
	cell func(R) string

	// tone is that of a cell; nil where it has none.
	tone func(R) Tone
}

// gridOf makes a grid of columns. First reports of a row whether it is the winner; nil means no.
func gridOf[R any](cols []column[R], rows []R, first func(i int) bool) (t Grid) {
	for _, c := range cols {
		t.Headings = append(t.Headings, c.Heading)
	}
	for i, r := range rows {
		row := Row{First: first != nil && first(i)}
		for _, c := range cols {
			cell := Cell{Text: c.cell(r)}
			if c.tone != nil {
				cell.Tone = c.tone(r)
			}
			row.Cells = append(row.Cells, cell)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// A Step is what to do next, and the commands that do it, a line each.
type Step struct{ Do, Command string }

// A Section is a list, a table, a picture or a sentence under a heading.
type Section struct {
	Heading string

	// About is a sentence before the others, or in place of them.
	About string

	// Items are the list, with numbers where Numbered. What follows a line break inside one is a
	// command.
	Items    []string
	Numbered bool

	// Table is the table, and What its rows are, in the plural.
	Table Grid
	What  string

	// Picture is drawn in characters.
	Picture string

	// rank says how early it is left out where there is little room.
	rank int
}

// The ranks of sections.
const (
	rankWhy    = iota // what failed, what was compared, how to repeat the worst
	rankNote          // what a reader should know
	rankFound         // the tables of one scenario alone, or across several
	rankDetail        // the tables of each of several scenarios
	rankMore          // the windows and the runs of each of several scenarios
)
