package format

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/policy/figures"
)

// WriteWhatIfComment writes what changes would cost for who reviews them, as `spotter comment`
// posts it.
func WriteWhatIfComment(w io.Writer, r *eval.WhatIf) error {
	var b bytes.Buffer
	if whatIfQuiet(r) {
		b.WriteString(CommentQuiet + "\n")
	}
	b.WriteString("### " + escape(whatIfHeadline(r)) + "\n")
	t := whatIfTable(r, false)
	for i, top := range t.Headings[0] {
		words := strings.ToLower(top)
		if t.Headings[0][i] = strings.ToUpper(words[:1]) + words[1:]; t.Headings[1][i] != "" {
			t.Headings[0][i] += ", " + t.Headings[1][i]
		}
	}
	t.Headings = t.Headings[:1]
	table := tableBlock("", &t, 0, "")
	b.WriteString(table.text(len(table.rows)))
	b.WriteByte('\n')
	for _, line := range WhatIfWords(r) {
		markdownItem(&b, line)
	}
	if r.Judged != nil {
		for i := range r.Judged.Gates {
			markdownItem(&b, gateWords(r.Judged, &r.Judged.Gates[i]))
		}
	}
	if r.Sweep != "" {
		b.WriteString("\n```\n" + frontier(r) + "```\n")
	}
	b.WriteString("\n<details><summary>What is changed, and how it was measured</summary>\n\n" + escape(whatIfTitle(r)) + "\n\n")
	for i := range r.Variants {
		x := &r.Variants[i]
		markdownItem(&b, x.Name+": "+strings.Join(x.Changes, " with "))
	}
	b.WriteByte('\n')
	for _, line := range whatIfNotes(r) {
		markdownItem(&b, line)
	}
	b.WriteString("\n</details>\n")
	_, err := w.Write(b.Bytes())
	return err
}

// whatIfQuiet reports whether no gate failed and no variant does anything that chance does not explain.
func whatIfQuiet(r *eval.WhatIf) bool {
	if r.Judged != nil && r.Judged.Failed() {
		return false
	}
	for i := range r.Variants {
		x := &r.Variants[i]
		if x.Equal {
			continue
		}
		if r.Stopped || x.Missing > 0 || x.Change.MedianInterval == nil || !holdsZero(x.Change.MedianInterval) || x.Incidents.Max > r.AsIs.Incidents.Max {
			return false
		}
	}
	return true
}

// whatIfHeadline is the outcome in one line: of the only variant, of a sweep's knee, or of the
// variant that costs least.
func whatIfHeadline(r *eval.WhatIf) string {
	at, better := r.First()
	if !better || at < 0 {
		at = r.Cheapest()
	}
	if at < 0 {
		return "⚠ Spotter: no run was finished"
	}
	best := &r.Variants[at]
	mark, text := "✓", "no change"
	if !best.Equal {
		text = changeWords(r.AsIs.Cost.Median, r.AsIs.Cost.Median+best.Change.Median) + " a month"
		if in := best.Change.MedianInterval; in != nil && holdsZero(in) {
			text += ", within what chance explains"
		}
	}
	in := best.Change.MedianInterval
	if r.Stopped || best.Missing > 0 || in != nil && in.Low > 0 || best.Incidents.Median > r.AsIs.Incidents.Median {
		mark = "⚠"
	}
	if best.Incidents.Median != r.AsIs.Incidents.Median {
		text += ", outage incidents " + arrow(figures.Whole(r.AsIs.Incidents.Median), figures.Whole(best.Incidents.Median))
	}
	text += " with " + best.Name
	if r.Judged != nil && r.Judged.Failed() {
		mark = "✗"
		text += fmt.Sprintf("; %s of %s failed", figures.Integer(len(FailedGates(r.Judged))), figures.Count(len(r.Judged.Gates), "gate"))
	}
	return mark + " Spotter: " + text
}
