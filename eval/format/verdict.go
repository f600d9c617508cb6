package format

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/policy/figures"
)

// verdictOf says in one sentence what was found, and what became of what was demanded.
func verdictOf(r *eval.Report) Verdict {
	v := Verdict{Text: found(r) + "."}
	demands := demandsOf(r)
	if demands != "" {
		v.Text += " " + strings.ToUpper(demands[:1]) + demands[1:] + "."
	}
	if r.Stopped {
		v.Text = Incomplete(r) + ". " + v.Text
	}
	switch c := r.Comparison; {
	case r.ExitCode() != 0:
		v.Tone = Bad
	case c != nil && (c.Outcome == eval.Undecided || c.Outcome == eval.NotComparable):
		v.Tone = Unsure
	case demands != "":
		v.Tone = Good
	}
	return v
}

// demandsOf says which runs broke, how many gates hold, and how the comparison with another side
// ends; nothing where nothing was demanded.
func demandsOf(r *eval.Report) string {
	var parts []string
	if n := r.Missing(); n > 0 {
		parts = append(parts, fmt.Sprintf("%s of %s broke", figures.Integer(n), figures.Count(len(r.Runs), "run")))
	}
	switch failed, _ := gatesByResult(r); {
	case len(failed) > 0:
		parts = append(parts, fmt.Sprintf("%s of %s failed", figures.Integer(len(failed)), figures.Count(len(r.Gates), "gate")))
	case len(r.Gates) > 0:
		parts = append(parts, figures.Count(len(r.Gates), "gate")+" passed")
	}
	if c := r.Comparison; c != nil {
		parts = append(parts, "against "+c.Other+": "+string(c.Outcome)+", "+Headline(c))
	}
	return strings.Join(parts, "; ")
}

// found says which policy saves most, in dollars a month against the baseline, and how long its
// worst outage is beside the baseline's.
func found(r *eval.Report) string {
	if len(r.Groups) > 1 {
		return foundAcross(r)
	}
	g := &r.Groups[0]
	best, base := r.Best(g), slices.Index(r.Config.Policies, r.Config.Baseline)
	if best < 0 {
		return "No run has a result that can be compared"
	}
	x := &g.Policies[best]
	metric, of := r.Config.Savings()
	if best != base {
		text := fmt.Sprintf("%s saves %s of %s", x.Policy, figures.Percent(x.Summary(metric).Median, 1), of)
		if over := r.OverBaseline(g, best); over.N > 0 && r.Config.Today == nil {
			text += ", " + monthly(&over, false) + " than " + r.Config.Baseline + between(&over, false)
		}
		return text + worstWords(x, &g.Policies[base])
	}
	next := r.RunnerUp(g)
	if next < 0 && x.Policy == eval.OnDemand {
		return "Nothing but " + x.Policy + " was run" + worstWords(x, nil)
	}
	if next < 0 {
		return fmt.Sprintf("%s saves %s of %s%s", x.Policy, figures.Percent(x.Summary(metric).Median, 1), of, worstWords(x, nil))
	}
	text := "No policy saves more than " + x.Policy + ", the baseline"
	if over := r.OverBaseline(g, next); over.N > 0 {
		text += ": the next, " + g.Policies[next].Policy + ", saves " + monthly(&over, true) + between(&over, true)
	}
	return text + worstWords(&g.Policies[next], x)
}

// monthly writes what is saved a month more, or less.
func monthly(s *eval.Summary, less bool) string {
	if less {
		return figures.Dollars(-s.Median) + " a month less"
	}
	return figures.Dollars(s.Median) + " a month more"
}

// between writes the interval of [monthly], nothing without one.
func between(s *eval.Summary, less bool) string {
	i := s.MedianInterval
	if i == nil {
		return ""
	}
	low, high := i.Low, i.High
	if less {
		low, high = -high, -low
	}
	text := " (" + figures.Dollars(low) + " to " + figures.Dollars(high)
	if low <= 0 && high >= 0 {
		text += ", which chance explains"
	}
	return text + ")"
}

// worstWords says how many outage minutes the worst run of x has, and that of the baseline, nil for
// none.
func worstWords(x, base *eval.PolicyReport) string {
	s := x.Summary("outage_minutes")
	if s.N == 0 {
		return ""
	}
	text := "; its worst run has " + figures.Whole(s.Max) + " outage minutes"
	if base == nil || base.Summary("outage_minutes").N == 0 {
		return text
	}
	return text + ", " + base.Policy + "'s " + figures.Whole(base.Summary("outage_minutes").Max)
}

// foundAcross is what was found over several scenarios.
func foundAcross(r *eval.Report) string {
	x := r.FirstAcross()
	if x == nil {
		return "No scenario has policies that can be compared"
	}
	text := fmt.Sprintf("%s saves most in %d of %s", x.Policy, x.First, figures.Count(len(r.Groups), "scenario"))
	if x.Behind >= 0 && x.Shortfall > 0 {
		text += ", at worst " + percent(x.Shortfall) + " points less than the first in " + r.Groups[x.Behind].Scenario
	}
	if x.WorstOutage < 0 {
		return text
	}
	text += "; its worst run has " + figures.Whole(outageOf(r, x.WorstOutage)) + " outage minutes"
	base := r.Across()[slices.Index(r.Config.Policies, r.Config.Baseline)]
	if base.WorstOutage >= 0 && base.Policy != x.Policy {
		text += ", " + base.Policy + "'s " + figures.Whole(outageOf(r, base.WorstOutage))
	}
	return text
}

// withFlag returns a command with a flag set to a value, in place of its own.
func withFlag(command, name, value string) string {
	own := regexp.MustCompile(` --` + name + `(=| +)\S+`)
	return own.ReplaceAllString(command, "") + " --" + name + " " + value
}
