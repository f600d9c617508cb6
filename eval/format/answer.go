package format

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
)

// An Answer is a result for people: the verdict first, then what supports it, and everything else
// on request.
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

// A Grid is a table with headings of one line or two.
type Grid struct {
	Headings [][]string
	Rows     []Row
}

// A Row is one of a [Grid]. Tones are those of its cells, as far as they have any.
type Row struct {
	Cells []string
	Tones []Tone

	// First marks the winner.
	First bool
}

// A Step is what to do next, and the command that does it.
type Step struct{ Do, Command string }

// A Section is a part of the details: a list, a table or a picture under a heading.
type Section struct {
	Heading string

	// About is a sentence before the table, or in place of one.
	About string

	// Items are the list. What follows a line break inside one is a command.
	Items []string

	// Table is the table, and What its rows are, in the plural.
	Table Grid
	What  string

	// Picture is drawn in characters, for a terminal alone.
	Picture string

	// rank says how early it is left out where there is little room.
	rank int
}

// Options say how text is laid out. The other formats have no use for them.
type Options struct {
	// Width is that of the terminal in columns; 0 means 120.
	Width int

	// Details asks for everything that was found, and Color for the colours of a terminal.
	Details, Color bool
}

// warningsShown is how many warnings an answer has without its details.
const warningsShown = 3

// Write writes a as text.
func (a *Answer) Write(w io.Writer, o Options) error {
	p := printer{new(bytes.Buffer), cmp.Or(max(o.Width, 0), defaultWidth), o.Color}
	for _, v := range a.Verdicts {
		p.toned("", v.String(), v.Tone)
	}
	p.list("", a.Failed, Bad)
	for _, t := range a.Tables {
		p.blank()
		p.wide(t.marked())
	}
	p.blank()
	about := a.About
	if !o.Details && len(a.Details) > 0 {
		about += " · --details prints the rest"
	}
	p.text("", strings.TrimPrefix(about, " · "))
	if !o.Details {
		for _, line := range a.Legend {
			p.text("", line)
		}
	}
	p.warnings(a.Warnings, o.Details)
	if o.Details {
		for i := range a.Details {
			p.section(&a.Details[i])
		}
	}
	if a.Next.Do != "" {
		p.blank()
		p.text("", "Next: "+a.Next.Do)
		if a.Next.Command != "" {
			p.w.WriteString("  " + a.Next.Command + "\n")
		}
	}
	_, err := w.Write(p.w.Bytes())
	return err
}

// warnings writes the first of them, or all.
func (p *printer) warnings(all []string, details bool) {
	shown := all
	if len(all) > warningsShown && !details {
		shown = all[:warningsShown]
	}
	if len(shown) > 0 {
		p.blank()
	}
	for _, text := range shown {
		p.toned("", Verdict{Unsure, text}.String(), Unsure)
	}
	if more := len(all) - len(shown); more > 0 {
		p.text("", fmt.Sprintf("and %d more, with --details", more))
	}
}

// section writes a section, or nothing of one that is empty.
func (p *printer) section(s *Section) {
	p.list(s.Heading, s.Items, Plain)
	if s.Picture != "" {
		p.w.WriteString("\n" + s.Picture)
	}
	if len(s.Table.Rows) == 0 && s.About == "" {
		return
	}
	p.blank()
	for _, line := range []string{s.Heading, s.About} {
		if line != "" && len(s.Items) == 0 {
			p.text("", line)
		}
	}
	if len(s.Table.Rows) > 0 {
		p.wide(s.Table.marked())
	}
}

// plainTable is a table without tones.
func plainTable(heading []string, rows [][]string) Grid {
	t := Grid{Headings: [][]string{heading}}
	for _, cells := range rows {
		t.Rows = append(t.Rows, Row{Cells: cells})
	}
	return t
}

// hasFirst reports whether a row is marked as the winner.
func (t *Grid) hasFirst() bool {
	return slices.ContainsFunc(t.Rows, func(r Row) bool { return r.First })
}
