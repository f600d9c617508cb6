package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/format"
	"github.com/spotter-dev/spotter/policy/figures"
)

// A summary is what a reader who reads nothing else should know.
type summary struct {
	// State is "passed", "failed", "incomplete" or "none", Badge it in words.
	State, Badge string

	Sentences []string
	Cards     []card
}

// A card is one figure in large type.
type card struct{ Label, Value, Sub string }

func newSummary(r *eval.Report, running bool) summary {
	v := summary{State: "passed", Badge: "Gates passed"}
	switch {
	case running:
		v.State, v.Badge = "none", fmt.Sprintf("Running: %d of %s done", r.Done(), figures.Count(len(r.Runs), "run"))
	case r.Stopped:
		v.State, v.Badge = "incomplete", "Stopped before its end"
	case r.Missing() > 0:
		v.State, v.Badge = "incomplete", "Runs are missing"
	case r.Failed():
		v.State, v.Badge = "failed", "Gates failed"
	case r.Comparison != nil && r.Comparison.Outcome == eval.Worse:
		v.State, v.Badge = "failed", "Worse than what it was compared with"
	case len(r.Gates) == 0:
		v.State, v.Badge = "none", "No gate was set"
	}
	found, cards := foundIn(r)
	if found == nil {
		if v.Sentences = []string{"No run has a result that could be compared."}; !running {
			v.Sentences = append(v.Sentences, gateSentence(r))
		}
		return v
	}
	v.Sentences, v.Cards = found, cards
	if running {
		v.Sentences = append(v.Sentences, "These are the figures so far; load the page again for more.")
	} else if r.Stopped {
		v.Sentences = append(v.Sentences, sentence(format.Incomplete(r)))
	}
	if r.Missing() > 0 {
		v.Sentences = append(v.Sentences, fmt.Sprintf("%s of %s broke, so these figures are incomplete.", figures.Integer(r.Missing()), figures.Count(len(r.Runs), "run")))
	}
	if !running {
		v.Sentences = append(v.Sentences, gateSentence(r))
	}
	if r.Comparison != nil {
		v.Sentences = append(v.Sentences, buildSentence(r.Comparison))
	}
	return v
}

// foundIn says what was found, in sentences and figures; nothing where nothing
// ran.
func foundIn(r *eval.Report) ([]string, []card) {
	if len(r.Groups) > 1 {
		return foundAcross(r)
	}
	g := &r.Groups[0]
	p := chosen(r, g)
	if p < 0 {
		return nil, nil
	}
	x := &g.Policies[p]
	var found []string
	lead, versus := versusBaseline(r, g, p)
	if lead != "" {
		found = append(found, lead)
	}
	saved := savedSentence(r, g, x)
	if lead == "" {
		saved += worstWords(x)
	}
	found = append(found, saved+".")
	found = append(found, changeSentence(r, g, x)...)
	found = append(found, outageSentence(r, x))
	if x.Marked() {
		found = append(found, "It does not do what the manifests say: "+format.ViolationWords(x)+".")
	}
	return found, append(versus, cards(r, g, x)...)
}

// versusBaseline returns the headline, which compares policy p with the baseline, and its
// figures; nothing where p is the baseline, where the two have no run in common, or where all is
// measured against the cost of a cluster as it is.
func versusBaseline(r *eval.Report, g *eval.Group, p int) (string, []card) {
	x, base := &g.Policies[p], r.Config.Baseline
	d := r.OverBaseline(g, p)
	if x.Policy == base || d.N == 0 || r.Config.Today != nil {
		return "", nil
	}
	mine, theirs := x.Summary("outage_minutes"), g.Policies[slices.Index(r.Config.Policies, base)].Summary("outage_minutes")
	against := func(of func(*eval.Summary) float64) string {
		return figures.Whole(of(mine)) + " against " + figures.Whole(of(theirs))
	}
	usual := against(func(s *eval.Summary) float64 { return s.Median })
	worst := against(func(s *eval.Summary) float64 { return s.Max })
	interval := ""
	if i := d.MedianInterval; i != nil {
		interval = between(i, figures.DollarChange)
	}
	lead := fmt.Sprintf("%s: %s a month over %s", x.Policy, figures.DollarChange(d.Median), base)
	if interval != "" {
		lead += " (" + interval + ")"
	}
	lead += fmt.Sprintf(", %s outage minutes in the median run, %s in the worst.", usual, worst)
	return lead, []card{
		{"Over " + base, figures.DollarChange(d.Median), strings.TrimSuffix("a month, "+interval, ", ")},
		{"Outage minutes", usual, worst + " in the worst run"},
	}
}

// fails reports whether policy p fails a gate or does not keep the manifests in
// any scenario, so that one which does neither is spoken of instead.
func fails(r *eval.Report, p int) bool {
	name := r.Config.Policies[p]
	return slices.ContainsFunc(r.Gates, func(x eval.GateResult) bool { return x.Policy == name && !x.Pass }) ||
		slices.ContainsFunc(r.Groups, func(g eval.Group) bool { return g.Policies[p].Marked() })
}

// chosen returns the policy that the summary is about: of those that fail no
// gate and keep the manifests the one that saves most in the median run, else of
// all that were compared, else the baseline. -1 where nothing ran.
func chosen(r *eval.Report, g *eval.Group) int {
	best, bestFails := -1, false
	metric, _ := r.Config.Savings()
	for i := range g.Policies {
		p := &g.Policies[i]
		s := p.Summary(metric)
		if s.N == 0 || !r.Config.Trial(p.Policy) {
			continue
		}
		f := fails(r, i)
		better := best < 0 || bestFails && !f ||
			bestFails == f && s.Median > g.Policies[best].Summary(metric).Median
		if better {
			best, bestFails = i, f
		}
	}
	if best >= 0 {
		return best
	}
	base := slices.Index(r.Config.Policies, r.Config.Baseline)
	if g.Policies[base].Summary(metric).N == 0 {
		return -1
	}
	return base
}

// savedSentence says what p saves, without a full stop.
func savedSentence(r *eval.Report, g *eval.Group, p *eval.PolicyReport) string {
	metric, of := r.Config.Savings()
	s := p.Summary(metric)
	month := perMonth(r, g, p)
	text := fmt.Sprintf("The policy %s saves %s a month in the median run, %s of %s", p.Policy, figures.Dollars(month), percent(s.Median), of)
	switch t := r.Config.Today; {
	case t != nil && s.Median < 0:
		text = fmt.Sprintf("The policy %s costs %s a month in the median run, %s above %s of %s", p.Policy, figures.Dollars(t.Month-month), percent(-s.Median), of, figures.Dollars(t.Month))
	case t != nil:
		text = fmt.Sprintf("The policy %s costs %s a month in the median run, %s below %s of %s", p.Policy, figures.Dollars(t.Month-month), percent(s.Median), of, figures.Dollars(t.Month))
	case s.Median < 0:
		text = fmt.Sprintf("The policy %s costs %s a month more than on-demand in the median run, %s of its bill", p.Policy, figures.Dollars(-month), percent(-s.Median))
	}
	if p.Policy == eval.OnDemand && r.Config.Today == nil {
		text = "Nothing but on-demand was run, the reference that savings are measured against"
	}
	return text
}

// worstWords says what the worst outage of p is, to end a sentence.
func worstWords(p *eval.PolicyReport) string {
	if p.Outages.Count == 0 {
		return "; it has no outage in any run"
	}
	return fmt.Sprintf("; its worst run has %s", figures.Count(int(p.Summary("outage_minutes").Max), "outage minute"))
}

// perMonth returns what p saves in dollars a month: its net savings in the median run, for
// as many windows as a month has, or what its bill is below that of today.
func perMonth(r *eval.Report, g *eval.Group, p *eval.PolicyReport) float64 {
	if t := r.Config.Today; t != nil {
		return t.Month - p.Summary("bill_usd").Median*monthsOf(r, g)
	}
	return p.Summary("net_savings_usd").Median * monthsOf(r, g)
}

// changeSentence compares p with the baseline, nothing where it is that.
func changeSentence(r *eval.Report, g *eval.Group, p *eval.PolicyReport) []string {
	if p.Policy == r.Config.Baseline || p.Policy == eval.OnDemand || r.Config.Today != nil {
		return nil
	}
	return []string{sentence(changeWords(r, g, p))}
}

// changeWords compares p with the baseline.
func changeWords(r *eval.Report, g *eval.Group, p *eval.PolicyReport) string {
	d := p.Summary("net_savings_delta_pct")
	if d.N == 0 {
		return "against the baseline " + r.Config.Baseline + " nothing could be estimated"
	}
	text := fmt.Sprintf("that is %s points of the on-demand bill more than the baseline %s", figures.Number(d.Median, 1), r.Config.Baseline)
	switch {
	case d.Median < 0:
		text = fmt.Sprintf("that is %s points of the on-demand bill less than the baseline %s", figures.Number(-d.Median, 1), r.Config.Baseline)
	case figures.Number(d.Median, 1) == "0.0":
		text = "that is as much as the baseline " + r.Config.Baseline
	}
	i := d.MedianInterval
	if i == nil {
		if d.Need > 0 {
			text += " (no interval: " + format.NeedWords(d.Need, d.Over) + ")"
		}
		return text
	}
	only := ""
	if len(g.Cases) == 1 {
		only = ", for this window only"
	}
	text += fmt.Sprintf(" (%s interval %s to %s%s)", figures.Share(r.Level, figures.Few), figures.Signed(i.Low, 1), figures.Signed(i.High, 1), only)
	if i.Low <= 0 && i.High >= 0 {
		text += ", which may be chance"
	}
	return text
}

// outageSentence says what outages p has.
func outageSentence(r *eval.Report, p *eval.PolicyReport) string {
	s, d := p.Summary("outage_minutes"), p.Summary("outage_delta")
	text := "It has no outage in any run"
	if p.Outages.Count > 0 {
		text = fmt.Sprintf("It has %s outage minutes in the median run and %s in the worst, the longest incident %v, %s", figures.Whole(s.Median), figures.Whole(s.Max),
			p.Outage.Longest.Outage.Round(time.Second), p.Outage.Sources())
	} else if p.Outages.Of > 1 {
		text = fmt.Sprintf("It has no outage in any of %s (with 95%% certainty in at most %s of such runs)", figures.Count(p.Outages.Of, "run"), figures.Share(p.Outages.Bound, 1))
	}
	switch {
	case p.Policy == r.Config.Baseline || d.N == 0:
		return text + "."
	case d.Max > 0:
		return fmt.Sprintf("%s, and in %d of %s more than the baseline, by up to %s.", text, p.Worse.Count, figures.Count(p.Worse.Of, "run"), figures.Count(int(d.Max), "minute"))
	}
	return text + ", never more than the baseline under the same weather."
}

// gateSentence says how many gates held.
func gateSentence(r *eval.Report) string {
	failed := 0
	for i := range r.Gates {
		if !r.Gates[i].Pass {
			failed++
		}
	}
	switch {
	case len(r.Gates) == 0:
		return "No gate was set, so nothing was demanded of it."
	case failed == 0 && len(r.Gates) == 1:
		return "The one gate passed."
	case failed == 0:
		return fmt.Sprintf("All %d gates passed.", len(r.Gates))
	}
	return fmt.Sprintf("%s of %s failed.", figures.Integer(failed), figures.Count(len(r.Gates), "gate"))
}

// cards are the figures of p in large type that need no baseline, and its outage minutes
// where it is the baseline.
func cards(r *eval.Report, g *eval.Group, p *eval.PolicyReport) []card {
	metric, of := r.Config.Savings()
	saved := p.Summary(metric)
	interval := intervalOf(saved, percent)
	out := []card{
		{"Saved by " + p.Policy, figures.Dollars(perMonth(r, g, p)), "a month, in the median run"},
		{"Of " + of, percent(saved.Median), interval},
	}
	if p.Policy == r.Config.Baseline || r.Config.Today != nil {
		s := p.Summary("outage_minutes")
		incidents := figures.Count(int(p.Outage.Incidents), "incident") + " in all"
		out = append(out, card{"Outage minutes", figures.Whole(s.Median), figures.Whole(s.Max) + " in the worst run, " + incidents})
	}
	out = append(out, card{"Available", availability(p.Summary("availability").Median), "mean over workloads"})
	if a := p.Summary("attainable_share"); a.N > 0 && r.Config.Today == nil {
		out = append(out, card{"Of the attainable", share(a.Median), "what a bound over all policies leaves"})
	}
	return append(out, gateCards(r)...)
}

// gateCards has how many gates passed, nothing without gates.
func gateCards(r *eval.Report) []card {
	passed := 0
	for i := range r.Gates {
		if r.Gates[i].Pass {
			passed++
		}
	}
	if n := len(r.Gates); n > 0 {
		return []card{{"Gates", fmt.Sprintf("%d of %d", passed, n), "passed"}}
	}
	return nil
}
