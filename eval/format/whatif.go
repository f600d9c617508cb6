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

// A whatIfColumn is one figure of a variant as tables show it.
type whatIfColumn struct {
	top, under string
	wide       bool // only where all columns are asked for
	cell       func(*eval.WhatIfRow) string
}

// summaryCell makes a cell of a summary, which may have nothing.
func summaryCell(of func(*eval.WhatIfRow) *eval.Figure, words func(*eval.Summary) string) func(*eval.WhatIfRow) string {
	return func(x *eval.WhatIfRow) string {
		if s := of(x); s.N > 0 {
			return words(&s.Summary)
		}
		return figures.Unknown
	}
}

// whatIfColumns answer what it costs, and what it does to the workloads.
var whatIfColumns = []whatIfColumn{
	{"VARIANT", "", false, func(x *eval.WhatIfRow) string { return x.Name }},
	{"$/MONTH", "median", false, summaryCell(func(x *eval.WhatIfRow) *eval.Figure { return &x.Cost }, func(s *eval.Summary) string { return figures.Dollars(s.Median) })},
	{"CHANGE, $/MONTH", "median [interval]", false, summaryCell(func(x *eval.WhatIfRow) *eval.Figure { return &x.Change }, changeInterval)},
	{"CHANGE", "%", false, summaryCell(func(x *eval.WhatIfRow) *eval.Figure { return &x.ChangePct }, func(s *eval.Summary) string { return points(s.Median) })},
	{"OUTAGE INCIDENTS", "med / max", false, summaryCell(func(x *eval.WhatIfRow) *eval.Figure { return &x.Incidents }, func(s *eval.Summary) string { return figures.Whole(s.Median) + " / " + figures.Whole(s.Max) })},
	{"OUTAGE MIN", "med / max", true, summaryCell(func(x *eval.WhatIfRow) *eval.Figure { return &x.OutageMinutes }, func(s *eval.Summary) string { return figures.Whole(s.Median) + " / " + figures.Whole(s.Max) })},
	{"OUTAGES, $/MONTH", "median", true, summaryCell(func(x *eval.WhatIfRow) *eval.Figure { return &x.OutageCost }, func(s *eval.Summary) string { return figures.Dollars(s.Median) })},
	{"EVICTIONS", "/pod-day", false, summaryCell(func(x *eval.WhatIfRow) *eval.Figure { return &x.Evictions }, func(s *eval.Summary) string { return figures.Number(s.Median, 2) })},
	{"NODES", "mean", false, summaryCell(func(x *eval.WhatIfRow) *eval.Figure { return &x.Nodes }, func(s *eval.Summary) string { return figures.Number(s.Median, 1) })},
	{"SPOT", "%", true, summaryCell(func(x *eval.WhatIfRow) *eval.Figure { return &x.SpotShare }, func(s *eval.Summary) string { return share(s.Median) })},
}

// changeInterval writes a change in dollars with its interval.
func changeInterval(s *eval.Summary) string {
	if i := s.MedianInterval; i != nil {
		return figures.Interval(s.Median, i.Low, i.High, figures.DollarChange)
	}
	return figures.DollarChange(s.Median) + " (" + NeedWords(s.Need, s.Over) + ")"
}

// whatIfTable returns the table of r, the scenario as it is first. The value at the knee of a sweep
// and else the cheapest variant is marked.
func whatIfTable(r *eval.WhatIf, wide bool) Grid {
	knee, bends := r.Knee()
	first := cheapest(r)
	if first >= 0 && r.Variants[first].Change.Median >= 0 {
		first = -1
	}
	if bends {
		first = knee
	}
	t := Grid{Headings: make([][]string, 2)}
	cols := slices.DeleteFunc(slices.Clone(whatIfColumns), func(c whatIfColumn) bool { return c.wide && !wide })
	for _, c := range cols {
		t.Headings[0], t.Headings[1] = append(t.Headings[0], c.top), append(t.Headings[1], c.under)
	}
	for i := -1; i < len(r.Variants); i++ {
		x := &r.AsIs
		if i >= 0 {
			x = &r.Variants[i]
		}
		row := Row{First: i == first && (i >= 0 || bends)}
		for _, c := range cols {
			row.Cells = append(row.Cells, c.cell(x))
		}
		if i < 0 {
			row.Cells[2], row.Cells[3] = "", ""
		} else if in := x.Change.MedianInterval; in != nil && in.Low > 0 {
			row.Tones = make([]Tone, len(cols))
			row.Tones[2], row.Tones[3] = Bad, Bad
		}
		if r.Sweep != "" {
			row.Cells[0] = markOf(i) + "  " + strings.TrimPrefix(row.Cells[0], r.Sweep+"=")
			if bends && i == knee {
				row.Cells[0] += " ← knee"
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// WriteWhatIf writes what changes of a scenario would cost as text, wide with all columns.
func WriteWhatIf(w io.Writer, r *eval.WhatIf, wide bool, o Options) error {
	a := Answer{Tables: []Grid{whatIfTable(r, wide || o.Details)}, About: whatIfTitle(r), Warnings: whatIfWarnings(r), Legend: []string{
		strings.TrimSpace(firstMark) + " is the cheapest, of a sweep the knee. $/MONTH is the bill of 730 hours with what is paid in advance, without the cost of outages.",
	}}
	tone := Plain
	if r.Judged != nil {
		a.Failed = FailedGates(r.Judged)
		if tone = Good; len(a.Failed) > 0 {
			tone = Bad
		}
		_, passed := gatesByResult(r.Judged)
		a.Details = append(a.Details, Section{Heading: "Gates that passed", Items: passed})
	}
	for _, line := range WhatIfWords(r) {
		a.Verdicts, tone = append(a.Verdicts, Verdict{tone, line}), Plain
	}
	if r.Sweep != "" {
		a.Details = append(a.Details, Section{Heading: "Frontier", Picture: frontier(r)})
	}
	a.Details = append(a.Details, Section{Heading: "Notes", Items: whatIfNotes(r)})
	a.Next = whatIfNext(r)
	return a.Write(w, o)
}

// whatIfNext is the one thing to do with the result.
func whatIfNext(r *eval.WhatIf) Step {
	again := r.Config.Invocation
	if again == "" {
		return Step{}
	}
	for i := range r.Variants {
		if x := &r.Variants[i].Change; x.Need > 0 && x.Over == eval.OverSeeds {
			return Step{"run as many seeds as intervals need", withFlag(again, "seeds", fmt.Sprint(x.Need))}
		}
	}
	return Step{"keep it for a review", again + " --out whatif.md"}
}

// whatIfTitle says what is compared, in one line.
func whatIfTitle(r *eval.WhatIf) string {
	cases := r.Config.Cases
	text := fmt.Sprintf("%s (%s, %s to %s) · %s · %s against %s · %s", cases[0].Scenario, figures.Count(len(cases), "window"),
		Instant(cases[0].Bound.Start), Instant(cases[len(cases)-1].End()), figures.Count(len(r.Config.Seeds), "seed"),
		figures.Count(len(r.Variants), "variant"), r.AsIs.Name, figures.Count(len(r.Runs), "run"))
	if r.Stopped {
		return "INCOMPLETE: stopped before the end · " + text
	}
	return text
}

// whatIfNotes say what the figures are, and what they do not hold for.
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
	interval := fmt.Sprintf("Intervals are of the median over %s, at %s each; the result holds for %s only.", over, levelWords(r.Level), windows)
	if need > 0 {
		interval = "There are no intervals, which " + NeedWords(need, over) + "."
	}
	lines := []string{
		"Changes are of runs with the same prices, weather and seed. $/MONTH is the bill of 730 hours with what was paid in advance, without the cost of outages. " + interval,
	}
	lines = append(lines, whatIfWarnings(r)...)
	if len(r.Config.Invocation) > 0 {
		lines = append(lines, "repeat with\n    "+r.Config.Invocation)
	}
	return lines
}

// whatIfWarnings are what to know before relying on r.
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
			lines = append(lines, x.Name+": the workloads ask for something else, so a smaller bill is no saving by itself.")
		}
	}
	return lines
}

// WhatIfWords says of each variant in a sentence what it does, and of a sweep where its knee is.
func WhatIfWords(r *eval.WhatIf) []string {
	if r.Sweep != "" {
		return sweepWords(r)
	}
	var out []string
	for i := range r.Variants {
		out = append(out, whatIfSentence(r, &r.Variants[i]))
	}
	return out
}

// sweepWords say what is best in a sweep.
func sweepWords(r *eval.WhatIf) []string {
	knee, bends := r.Knee()
	out := []string{"There is no knee: what a value saves more goes with what it evicts more, or chance explains it."}
	switch {
	case bends && knee < 0:
		out[0] = "The knee is " + r.AsIs.Name + ": no value saves more without many more evictions."
	case bends:
		out[0] = "The knee: " + whatIfSentence(r, &r.Variants[knee])
	}
	if best := cheapest(r); best >= 0 && !(bends && best == knee) && r.Variants[best].Change.Median < 0 {
		out = append(out, "Cheapest: "+whatIfSentence(r, &r.Variants[best]))
	}
	return out
}

// cheapest returns the place of the variant that costs least, −1 without one.
func cheapest(r *eval.WhatIf) int {
	best := -1
	for i := range r.Variants {
		if x := &r.Variants[i]; x.Change.N > 0 && (best < 0 || x.Change.Median < r.Variants[best].Change.Median) {
			best = i
		}
	}
	return best
}

func whatIfSentence(r *eval.WhatIf, x *eval.WhatIfRow) string {
	switch {
	case x.Change.N == 0:
		return x.Name + " cannot be judged: no run of it was finished."
	case x.Equal:
		return x.Name + " changes nothing: every run comes to the same."
	}
	parts := []string{x.Name + " " + costWords(x), evictionWords(&r.AsIs, x), incidentWords(&r.AsIs, x)}
	if d := x.OutageChange.Median; math.Abs(d) >= 0.5 {
		parts = append(parts, "outages cost "+moreOrLess(d)+" a month")
	}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "; ") + "."
}

// moreOrLess writes a change of dollars in words.
func moreOrLess(d float64) string {
	if d < 0 {
		return figures.Dollars(-d) + " less"
	}
	return figures.Dollars(d) + " more"
}

// costWords say what x saves or costs, and how sure that is.
func costWords(x *eval.WhatIfRow) string {
	d, in := x.Change.Median, x.Change.MedianInterval
	part := ""
	if x.ChangePct.N > 0 {
		part = figures.Percent(math.Abs(x.ChangePct.Median), 1)
	}
	if in != nil && in.Low <= 0 && in.High >= 0 {
		if figures.DollarChange(in.Low) == figures.DollarChange(in.High) {
			return "costs the same"
		}
		return fmt.Sprintf("costs the same as far as %d %s tell: between %s and %s a month", unitsOf(x), x.Change.Over, figures.DollarChange(in.Low), figures.DollarChange(in.High))
	}
	if in == nil && figures.Dollars(math.Abs(d)) == figures.Dollars(0) {
		return "costs the same"
	}
	verb, more := "saves ", ""
	if d > 0 {
		verb, more = "costs ", " more"
	}
	text := verb + figures.Dollars(math.Abs(d)) + " a month" + more + " (" + part
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

// unitsOf is how many units the intervals of x rest on.
func unitsOf(x *eval.WhatIfRow) int {
	if x.Change.Over == eval.OverWindows {
		return x.Change.Windows.N
	}
	return x.Change.N
}

// evictionWords say how often pods are moved or lost, where that changes.
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

// incidentWords say how many outages there are, where any.
func incidentWords(asIs, x *eval.WhatIfRow) string {
	a, b := &asIs.Incidents, &x.Incidents
	if a.Max == 0 && b.Max == 0 {
		return "no outage in any run"
	}
	return "outage incidents " + arrow(figures.Whole(a.Median), figures.Whole(b.Median)) + " in the median run and " + arrow(figures.Whole(a.Max), figures.Whole(b.Max)) + " in the worst"
}
