package report

import (
	"strings"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/format"
)

// toneClasses maps tones to CSS classes of cells.
var toneClasses = map[format.Tone]string{format.Good: "good", format.Bad: "bad"}

// gridTable converts a grid that all formats share to a table; nil if the grid has no rows.
func gridTable(caption, note string, g *format.Grid) *table {
	if len(g.Rows) == 0 {
		return nil
	}
	t := &table{Caption: caption, Note: note, Sortable: true}
	for i, h := range g.Headings {
		// Headings are in capitals, as for a terminal.
		t.Head = append(t.Head, heading{Text: h.Top[:1] + strings.ToLower(h.Top[1:]), Unit: h.Under, Words: i == 0})
	}
	for _, row := range g.Rows {
		var cells []cell
		for _, c := range row.Cells {
			cells = append(cells, cell{Text: c.Text, Sub: c.Under, Class: toneClasses[c.Tone]})
		}
		if row.First {
			cells[0].Text, cells[0].Class = star+cells[0].Text, "winner"
		}
		t.Rows = append(t.Rows, cells)
	}
	return t
}

// across returns the table of each policy's results over several scenarios.
func across(r *eval.Report, a *format.Answer) *table {
	return gridTable(format.AcrossTitle(r),
		format.AcrossNote+" The baseline has *, and what does not keep the manifests in a scenario has !.", &a.Tables[0])
}

// changes returns the table of the changes of c; nil if c is nil.
func changes(c *eval.Comparison) *table {
	if c == nil {
		return nil
	}
	a := format.AnswerOfComparison(c)
	return gridTable("Compared with "+c.Other, strings.Join(a.Legend, " "), &a.Tables[0])
}

// comparisonSummary summarizes the outcome of c.
func comparisonSummary(c *eval.Comparison) summary {
	v := summary{State: "none", Badge: string(c.Outcome)}
	switch c.Outcome {
	case eval.Worse:
		v.State = "failed"
	case eval.Equal, eval.NoWorse:
		v.State = "passed"
	}
	a := format.AnswerOfComparison(c)
	for _, x := range a.Verdicts {
		v.Sentences = append(v.Sentences, sentence(x.Text))
	}
	v.Sentences = append(v.Sentences, a.About+".")
	return v
}
