package format

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/eval"
)

// levelWords formats a confidence level like 99.3%, with enough digits that it does not round to
// 100%.
func levelWords(level float64) string {
	for digits := 3; ; digits++ {
		if s := fmt.Sprintf("%.*g", digits, level*100); s != "100" || level >= 1 {
			return s + "%"
		}
	}
}

// NeedWords describes the number of units that an interval requires, as in "need ≥ 8 seeds". over
// is the plural of the unit. It is empty for n = 0.
func NeedWords(n int, over string) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("need ≥ %d %s", n, over)
}

// IntervalNote explains the intervals of g.
func IntervalNote(r *eval.Report, g *eval.Group) string {
	over, level := g.IntervalsOver, levelWords(r.Level)
	holds := "the result holds for this window only"
	if over == eval.OverWindows {
		holds = "the result holds for these windows only"
	}
	switch need := r.Lacks(g); {
	case need > 0:
		return fmt.Sprintf("There are no intervals, which %s at %s: %s.", NeedWords(need, over), level, holds)
	case over == eval.OverWindows:
		return fmt.Sprintf("Intervals are of the median over windows, each with the median over its seeds, and hold at %s each, whatever the distribution (order statistics).", level)
	}
	return fmt.Sprintf("Intervals are of the median over the seeds of one window and hold at %s each, whatever the distribution (order statistics): %s.", level, holds)
}

// intervalNotes returns the distinct notes on the intervals of all scenarios, with the names of the
// scenarios if the notes differ.
func intervalNotes(r *eval.Report) []string {
	return byScenario(r, func(g *eval.Group) string { return IntervalNote(r, g) })
}

// intervalWarnings warns about scenarios without intervals.
func intervalWarnings(r *eval.Report) []string {
	return byScenario(r, func(g *eval.Group) string {
		need := r.Lacks(g)
		if need == 0 {
			return ""
		}
		return fmt.Sprintf("there are no intervals: %s for %s", NeedWords(need, g.IntervalsOver), levelWords(r.Level))
	})
}

// byScenario returns the texts of say for the scenarios, each text once, in the order of the
// scenarios. If the texts differ, each is preceded by the names of its scenarios.
func byScenario(r *eval.Report, say func(*eval.Group) string) []string {
	var texts []string
	var names [][]string
	for i := range r.Groups {
		g := &r.Groups[i]
		text := say(g)
		if text == "" {
			continue
		}
		at := slices.Index(texts, text)
		if at < 0 {
			at = len(texts)
			texts, names = append(texts, text), append(names, nil)
		}
		names[at] = append(names[at], g.Scenario)
	}
	for i := range texts {
		if len(names[i]) < len(r.Groups) {
			texts[i] = strings.Join(names[i], ", ") + ": " + texts[i]
		}
	}
	return texts
}
