package format

import (
	"html"
	"strings"
)

// An Answer is a result for people: the verdict first, then the supporting numbers, and everything
// else on request. [Answer.Write], [Answer.Markdown] and [Answer.Comment] render it and need
// nothing else of the result.
type Answer struct {
	Verdicts []Verdict
	Tables   []Grid

	// About describes the comparison and its scope.
	About string

	// Legend explains the columns whose headings are not sufficient.
	Legend []string

	// Failed lists the failed gates, with the command that repeats the worst run of each.
	Failed []string

	// Warnings are the caveats of the verdict, the most serious first.
	Warnings []string

	Next Step

	// Details contains everything else.
	Details []Section

	// Review is the content of a comment for reviewers of a change.
	Review Review
}

// A Review is the first part of a comment.
type Review struct {
	// Title is a short verdict. Quiet reports whether there is nothing new: all gates pass, and
	// chance explains all changes.
	Title Verdict
	Quiet bool

	Sections []Section

	// Fold is the title of the collapsed details.
	Fold string
}

// A Tone classifies a message as good or bad news.
type Tone int

// The tones.
const (
	Plain Tone = iota
	Good
	Bad
	Unsure
)

// A Verdict is a result as a sentence.
type Verdict struct {
	Tone Tone
	Text string
}

// String returns the sentence with the symbol of its tone in front.
func (v Verdict) String() string {
	return map[Tone]string{Good: "✓ ", Bad: "✗ ", Unsure: "⚠ "}[v.Tone] + v.Text
}

// verdicts converts sentences to verdicts; only the first has tone.
func verdicts(tone Tone, sentences []string) (out []Verdict) {
	for _, text := range sentences {
		out = append(out, Verdict{tone, text})
		tone = Plain
	}
	return out
}

// A Grid is a table. If it has no headings, all its columns are left-aligned.
type Grid struct {
	Headings []Heading
	Rows     []Row
}

// A Heading is the heading of a column, on one or two lines.
type Heading struct {
	Top, Under string

	// About explains the column.
	About string

	// Wide columns are only in tables with all columns. On narrow terminals, columns are omitted in
	// descending order of Rank; those with Rank 0 always remain.
	Wide bool
	Rank int
}

// String returns the heading on one line.
func (h Heading) String() string {
	if strings.HasSuffix(h.Top, "-") {
		return h.Top + h.Under
	}
	return strings.TrimSpace(h.Top + " " + h.Under)
}

// A Row is a row of a [Grid].
type Row struct {
	Cells []Cell

	// First marks the winner. Wide rows are only in tables with all rows.
	First, Wide bool
}

// A Cell is a formatted value. Under is a second value, below the first in narrow tables.
type Cell struct {
	Text, Under string
	Tone        Tone
}

// HTML returns t as an HTML table.
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

// line returns the text of each cell on one line, and marks the winner.
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

// Headings returns headings of one line.
func Headings(names ...string) (out []Heading) {
	for _, name := range names {
		out = append(out, Heading{Top: name})
	}
	return out
}

// Cells returns a row of texts.
func Cells(texts ...string) (out Row) {
	for _, text := range texts {
		out.Cells = append(out.Cells, Cell{Text: text})
	}
	return out
}

// A column defines the cells of a column for rows of type R.
type column[R any] struct {
	Heading
	cell func(R) string

	// tone returns the tone of a cell; nil if cells have none.
	tone func(R) Tone
}

// gridOf returns a grid of rows. first reports whether row i is the winner; nil means that there is
// no winner.
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

// A Step is a suggested next action, and the commands that perform it, one per line.
type Step struct{ Do, Command string }

// A Section is a list, a table, a picture or a sentence below a heading.
type Section struct {
	Heading string

	// About is a sentence before the other content, or the only content.
	About string

	// Items is the list, numbered if Numbered is true. Text after a line break in an item is a
	// command.
	Items    []string
	Numbered bool

	// Table is the table. What is the plural noun for its rows.
	Table Grid
	What  string

	// Picture is drawn with characters.
	Picture string

	// rank determines when the section is omitted if there is little space: higher ranks first.
	rank int
}

// The ranks of sections.
const (
	rankWhy    = iota // failures, the scope of the comparison, and how to repeat the worst run
	rankNote          // notes for the reader
	rankFound         // the tables of a single scenario, or over several scenarios
	rankDetail        // the tables of each of several scenarios
	rankMore          // the windows and runs of each of several scenarios
)
