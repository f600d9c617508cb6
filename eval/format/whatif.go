package format

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/stats"
	"github.com/spotter-dev/spotter/policy/figures"
)

// WriteWhatIf writes the cost of changes to a scenario as text. If wide is true, the table has all
// columns.
func WriteWhatIf(w io.Writer, r *eval.WhatIf, wide bool, o Options) error {
	o.Wide = wide
	return answerOfWhatIf(r).Write(w, o)
}

// WriteWhatIfComment writes the cost of changes for their reviewers, in the form that `spotter
// comment` posts.
func WriteWhatIfComment(w io.Writer, r *eval.WhatIf) error { return answerOfWhatIf(r).Comment(w) }

// answerOfWhatIf returns the answer on the cost of changes to a scenario.
func answerOfWhatIf(r *eval.WhatIf) *Answer {
	a := &Answer{
		Tables: []Grid{whatIfTable(r)}, About: whatIfTitle(r), Warnings: whatIfWarnings(r), Next: whatIfNext(r),
		Legend: []string{firstMark +
			"is the cheapest, of a sweep the knee. $/MONTH is the bill of 730 hours with what is paid in advance, " +
			"without the cost of outages."},
		Review: Review{Title: whatIfReview(r), Quiet: whatIfQuiet(r), Fold: "What is changed, and how it was measured"},
	}
	tone, lines := Plain, WhatIfWords(r)
	short, _ := a.Tables[0].fitting(math.MaxInt, false)
	a.Review.Sections = []Section{{Table: short}, {Items: lines}}
	if r.Judged != nil {
		if tone = Good; r.Judged.Failed() {
			tone = Bad
		}
		var passed []string
		a.Failed, passed = gatesByResult(r.Judged)
		a.Review.Sections[1].Items = append(slices.Clone(lines), reviewGates(r.Judged)...)
		a.Details = append(a.Details, Section{Heading: "Gates that passed", Items: passed})
	}
	a.Verdicts = verdicts(tone, lines)
	if r.Sweep != "" {
		a.Details = append(a.Details, Section{Heading: "Frontier", Picture: frontier(r)})
	}
	var changes []string
	for i := range r.Variants {
		changes = append(changes, r.Variants[i].Name+": "+strings.Join(r.Variants[i].Changes, " with "))
	}
	a.Details = append(a.Details, Section{Heading: "Changes", Items: changes},
		Section{Heading: "Notes", Items: whatIfNotes(r), rank: rankNote})
	return a
}

// whatIfColumns shows the cost of a variant and its effects on workloads.
var whatIfColumns = []column[*eval.WhatIfRow]{
	{Heading: Heading{Top: "VARIANT"}, cell: func(x *eval.WhatIfRow) string { return x.Name }},
	{Heading: Heading{Top: "$/MONTH", Under: "median"},
		cell: medianOf(func(x *eval.WhatIfRow) *eval.Figure { return &x.Cost }, figures.Dollars)},
	{Heading: Heading{Top: "CHANGE, $/MONTH", Under: "median [interval]"}, tone: changeTone,
		cell: summaryOf(func(x *eval.WhatIfRow) *eval.Figure { return &x.Change },
			func(s *eval.Summary) string { return withInterval(s, figures.DollarChange) })},
	{Heading: Heading{Top: "CHANGE", Under: "%"}, tone: changeTone,
		cell: medianOf(func(x *eval.WhatIfRow) *eval.Figure { return &x.ChangePct }, points)},
	{Heading: Heading{Top: "OUTAGE INCIDENTS", Under: "med / max"},
		cell: summaryOf(func(x *eval.WhatIfRow) *eval.Figure { return &x.Incidents }, medianMax)},
	{Heading: Heading{Top: "OUTAGE MIN", Under: "med / max", Wide: true},
		cell: summaryOf(func(x *eval.WhatIfRow) *eval.Figure { return &x.OutageMinutes }, medianMax)},
	{Heading: Heading{Top: "FROM SPOT, MIN", Under: "med / max", Wide: true},
		cell: summaryOf(func(x *eval.WhatIfRow) *eval.Figure { return &x.SpotMinutes }, medianMax)},
	{Heading: Heading{Top: "OUTAGES, $/MONTH", Under: "median", Wide: true},
		cell: medianOf(func(x *eval.WhatIfRow) *eval.Figure { return &x.OutageCost }, figures.Dollars)},
	{Heading: Heading{Top: "EVICTIONS", Under: "/pod-day"},
		cell: medianOf(func(x *eval.WhatIfRow) *eval.Figure { return &x.Evictions },
			func(v float64) string { return figures.Number(v, 2) })},
	{Heading: Heading{Top: "NODES", Under: "mean"},
		cell: medianOf(func(x *eval.WhatIfRow) *eval.Figure { return &x.Nodes }, percent)},
	{Heading: Heading{Top: "SPOT", Under: "%", Wide: true},
		cell: medianOf(func(x *eval.WhatIfRow) *eval.Figure { return &x.SpotShare }, share)},
}

// summaryOf returns a cell that formats a summary. The summary may be empty: the unchanged scenario
// has no changes.
func summaryOf(of func(*eval.WhatIfRow) *eval.Figure, words func(*eval.Summary) string) func(*eval.WhatIfRow) string {
	return func(x *eval.WhatIfRow) string {
		if s := of(x); s.N > 0 {
			return words(&s.Summary)
		}
		return figures.Unknown
	}
}

func medianOf(of func(*eval.WhatIfRow) *eval.Figure, number func(float64) string) func(*eval.WhatIfRow) string {
	return summaryOf(of, func(s *eval.Summary) string { return number(s.Median) })
}

// changeTone returns Bad for a variant that is more expensive, beyond what chance explains.
func changeTone(x *eval.WhatIfRow) Tone {
	if in := x.Change.MedianInterval; in != nil && in.Low > 0 {
		return Bad
	}
	return Plain
}

// whatIfTable returns the table of r with the unchanged scenario first. The variant to choose is
// marked.
func whatIfTable(r *eval.WhatIf) Grid {
	rows := []*eval.WhatIfRow{&r.AsIs}
	for i := range r.Variants {
		rows = append(rows, &r.Variants[i])
	}
	at, better := r.First()
	t := gridOf(whatIfColumns, rows, func(i int) bool { return better && i == at+1 })
	for i := range t.Rows {
		if name := &t.Rows[i].Cells[0].Text; r.Sweep != "" {
			*name = Mark(i-1) + "  " + strings.TrimPrefix(*name, r.Sweep+"=")
			if _, bends := r.Knee(); bends && t.Rows[i].First {
				*name += " ← knee"
			}
		}
	}
	t.Rows[0].Cells[2].Text, t.Rows[0].Cells[3].Text = "", ""
	return t
}

// whatIfNext returns the suggested next action.
func whatIfNext(r *eval.WhatIf) Step {
	again := r.Config.Invocation
	if again == "" {
		return Step{}
	}
	for i := range r.Variants {
		if x := &r.Variants[i].Change; x.Need > 0 && x.Over == eval.OverSeeds {
			return seedsStep(again, x.Need)
		}
	}
	return Step{"keep it for a review", again + " --out whatif.md"}
}

// whatIfTitle describes the scope of the comparison in one line.
func whatIfTitle(r *eval.WhatIf) string {
	cases := r.Config.Cases
	text := fmt.Sprintf("%s (%s, %s to %s) · %s · %s against %s · %s", cases[0].Scenario,
		figures.Count(len(cases), "window"),
		Instant(cases[0].Bound.Start), Instant(cases[len(cases)-1].End()), figures.Count(len(r.Config.Seeds), "seed"),
		figures.Count(len(r.Variants), "variant"), r.AsIs.Name, figures.Count(len(r.Runs), "run"))
	if r.Stopped {
		return "INCOMPLETE: stopped before the end · " + text
	}
	return text
}

// whatIfNotes explains the results and their scope.
func whatIfNotes(r *eval.WhatIf) []string {
	var over string
	need := 0
	for i := range r.Variants {
		over, need = cmp.Or(over, r.Variants[i].Change.Over), max(need, r.Variants[i].Change.Need)
	}
	windows := "this window"
	if len(r.Config.Cases) > 1 {
		windows = "these windows"
	}
	interval := fmt.Sprintf("Intervals are of the median over %s, at %s each; the result holds for %s only.", over,
		levelWords(r.Level), windows)
	if need > 0 {
		interval = "There are no intervals, which " + NeedWords(need, over) + "."
	}
	lines := []string{"Changes are of runs with the same prices, weather and seed. " +
		"$/MONTH is the bill of 730 hours with what was paid in advance, without the cost of outages. " + interval}
	if r.Config.Invocation != "" {
		lines = append(lines, "repeat with\n    "+r.Config.Invocation)
	}
	return lines
}

// whatIfWarnings returns the caveats of r.
func whatIfWarnings(r *eval.WhatIf) (lines []string) {
	for i := range r.Variants {
		if x := &r.Variants[i]; x.Missing > 0 {
			lines = append(lines, fmt.Sprintf("%s: %d of its runs have no pair.", x.Name, x.Missing))
		}
	}
	if r.Config.Cases[0].Bound.Trace.Synthetic {
		lines = append(lines, "The prices are synthetic: give --trace for recorded ones.")
	}
	for i := range r.Variants {
		if x := &r.Variants[i]; x.Demand {
			lines = append(lines, x.Name+": the workloads request something else, so a smaller bill is no saving by itself.")
		}
	}
	return lines
}

// WhatIfWords returns a sentence on the effect of each variant, or on the knee of a sweep.
func WhatIfWords(r *eval.WhatIf) (out []string) {
	if r.Sweep == "" {
		for i := range r.Variants {
			out = append(out, whatIfSentence(r, &r.Variants[i]))
		}
		return out
	}
	knee, bends := r.Knee()
	out = []string{"There is no knee: values that save more also evict more, or chance explains the difference."}
	switch {
	case bends && knee < 0:
		out[0] = "The knee is " + r.AsIs.Name + ": no value saves more without many more evictions."
	case bends:
		out[0] = "The knee: " + whatIfSentence(r, &r.Variants[knee])
	}
	if best := r.Cheapest(); best >= 0 && !(bends && best == knee) && r.Variants[best].Change.Median < 0 {
		out = append(out, "Cheapest: "+whatIfSentence(r, &r.Variants[best]))
	}
	return out
}

func whatIfSentence(r *eval.WhatIf, x *eval.WhatIfRow) string {
	switch {
	case x.Change.N == 0:
		return x.Name + " cannot be judged: no run of it was finished."
	case x.Equal:
		return x.Name + " changes nothing: every run has the same result."
	}
	parts := []string{x.Name + " " + costWords(x), evictionWords(&r.AsIs, x), incidentWords(&r.AsIs, x)}
	if d := x.OutageChange.Median; math.Abs(d) >= 0.5 {
		word := " more"
		if d < 0 {
			word = " less"
		}
		parts = append(parts, "outages cost "+figures.Dollars(math.Abs(d))+word+" a month")
	}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "; ") + "."
}

// costWords describes the savings or the cost of x, and their uncertainty.
func costWords(x *eval.WhatIfRow) string {
	d, in := x.Change.Median, x.Change.MedianInterval
	part := ""
	if x.ChangePct.N > 0 {
		part = figures.Percent(math.Abs(x.ChangePct.Median), 1)
	}
	if in != nil && holdsZero(in) {
		units := x.Change.N
		if x.Change.Over == eval.OverWindows {
			units = x.Change.Windows.N
		}
		if figures.DollarChange(in.Low) == figures.DollarChange(in.High) {
			return "costs the same"
		}
		return fmt.Sprintf("costs the same within what %d %s show: between %s and %s a month", units, x.Change.Over,
			figures.DollarChange(in.Low), figures.DollarChange(in.High))
	}
	if in == nil && figures.Dollars(math.Abs(d)) == figures.Dollars(0) {
		return "costs the same"
	}
	text := "saves " + figures.Dollars(-d) + " a month (" + part
	if d > 0 {
		text = "costs " + figures.Dollars(d) + " a month more (" + part
	}
	if in == nil {
		return text + "; too few " + x.Change.Over + " to say how sure that is)"
	}
	low, high := figures.Dollars(math.Abs(in.Low)), figures.Dollars(math.Abs(in.High))
	if d < 0 {
		low, high = high, low
	}
	if low == high {
		return text + ")"
	}
	return text + "; between " + low + " and " + high + ")"
}

// evictionWords describes the change of evictions per pod-day; it is empty if unknown.
func evictionWords(asIs, x *eval.WhatIfRow) string {
	a, b := figures.Number(asIs.Evictions.Median, 2), figures.Number(x.Evictions.Median, 2)
	switch {
	case x.EvictionChange.N == 0:
		return ""
	case a == b || x.EvictionChange.MedianInterval != nil && holdsZero(x.EvictionChange.MedianInterval):
		return "it evicts about as many pods"
	case x.EvictionChange.Median < 0:
		return "it evicts fewer pods: " + a + " → " + b + " per pod-day"
	}
	return "it evicts more pods: " + a + " → " + b + " per pod-day"
}

func holdsZero(i *stats.Interval) bool { return i.Low <= 0 && i.High >= 0 }

// incidentWords describes the outage incidents of both sides.
func incidentWords(asIs, x *eval.WhatIfRow) string {
	a, b := &asIs.Incidents, &x.Incidents
	if a.Max == 0 && b.Max == 0 {
		return "no outage in any run"
	}
	return "outage incidents " + arrow(figures.Whole(a.Median), figures.Whole(b.Median)) + " in the median run and " +
		arrow(figures.Whole(a.Max), figures.Whole(b.Max)) + " in the worst"
}

// whatIfQuiet reports whether no gate failed and chance explains the effects of all variants.
func whatIfQuiet(r *eval.WhatIf) bool {
	if r.Judged != nil && r.Judged.Failed() {
		return false
	}
	return !slices.ContainsFunc(r.Variants, func(x eval.WhatIfRow) bool {
		return !x.Equal && (r.Stopped || x.Missing > 0 || x.Change.MedianInterval == nil ||
			!holdsZero(x.Change.MedianInterval) ||
			x.Incidents.Max > r.AsIs.Incidents.Max)
	})
}

// whatIfHeadline returns the result in one line.
func whatIfHeadline(r *eval.WhatIf) string { return whatIfReview(r).String() }

// whatIfReview returns the result in a few words: for the knee of a sweep, or else for the cheapest
// variant.
func whatIfReview(r *eval.WhatIf) Verdict {
	at, better := r.First()
	if !better || at < 0 {
		at = r.Cheapest()
	}
	if at < 0 {
		return Verdict{Unsure, "Spotter: no run was finished"}
	}
	best, v := &r.Variants[at], Verdict{Good, "Spotter: no change"}
	in := best.Change.MedianInterval
	if !best.Equal {
		v.Text = "Spotter: " + changeWords(r.AsIs.Cost.Median, r.AsIs.Cost.Median+best.Change.Median) + " a month"
		if in != nil && holdsZero(in) {
			v.Text += ", within what chance explains"
		}
	}
	was, is := r.AsIs.Incidents.Median, best.Incidents.Median
	if r.Stopped || best.Missing > 0 || in != nil && in.Low > 0 || is > was {
		v.Tone = Unsure
	}
	if is != was {
		v.Text += ", outage incidents " + arrow(figures.Whole(was), figures.Whole(is))
	}
	v.Text += " with " + best.Name
	if r.Judged != nil && r.Judged.Failed() {
		v.Tone = Bad
		v.Text += "; " + strings.Join(demandsOf(r.Judged), "; ")
	}
	return v
}
