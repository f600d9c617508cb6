package format

import (
	"cmp"
	"io"

	"github.com/spotter-dev/spotter/eval"
)

// WriteComparison writes c as text.
func WriteComparison(w io.Writer, of *eval.Comparison, o Options) error {
	c := comparison{of}
	tone := map[eval.Outcome]Tone{eval.Worse: Bad, eval.Undecided: Unsure, eval.NotComparable: Unsure}[c.Outcome]
	heading, rows := c.table()
	a := Answer{Verdicts: []Verdict{{cmp.Or(tone, Good), c.headline() + "."}, {Plain, c.summary()}}, About: c.title(), Legend: c.lines()[2:], Warnings: c.warnings()}
	if rows != nil {
		a.Tables = []Grid{plainTable(heading, rows)}
	}
	return a.Write(w, o)
}

// ComparisonTitle says with what c compares, over which seeds.
func ComparisonTitle(c *eval.Comparison) string { return comparison{c}.title() }
