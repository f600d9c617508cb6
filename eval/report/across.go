package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/format"
	"github.com/spotter-dev/spotter/policy/figures"
)

// across has what can be said of each policy over several scenarios.
func across(r *eval.Report) *table {
	t := &table{
		Caption: format.AcrossTitle(r), Note: format.AcrossNote, Sortable: true,
		Head: []heading{{Text: "Policy", Words: true}, {Text: "First in", Unit: "scenarios"}, {Text: "Worst shortfall", Unit: "points"}, {Text: "Behind", Words: true},
			{Text: "Worst outage", Unit: "minutes"}, {Text: "Manifests not kept in", Unit: "scenarios"}},
	}
	for _, x := range r.Across() {
		row := []cell{{Text: x.Policy, Sub: role(r, x.Policy)}, number(float64(x.First), strconv.Itoa(x.First)+" of "+strconv.Itoa(x.Of)), unknown(), {Text: figures.Unknown, Class: "words"}, unknown(),
			number(float64(x.Marked), strconv.Itoa(x.Marked))}
		if x.Behind >= 0 {
			row[2] = number(x.Shortfall, figures.Number(x.Shortfall, 1))
			if g := &r.Groups[x.Behind]; x.Shortfall != 0 {
				row[3].Text = r.Config.Policies[r.Best(g)] + " in " + g.Scenario
			}
		}
		if i := x.WorstOutage; i >= 0 {
			run := &r.Runs[i]
			out := run.Value("outage_minutes").V
			if row[4] = number(out, figures.Whole(out)); out > 0 {
				row[4].Class, row[4].Sub = "bad", run.Scenario+", seed "+strconv.FormatUint(run.Seed, 10)
			}
		}
		if x.Marked > 0 {
			row[0].Text += mark
			row[5].Class = "bad"
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// worstOutages has the worst outage of each policy over several scenarios with the
// command that repeats it.
func worstOutages(r *eval.Report, l *weekList) *table {
	t := &table{
		Caption: "Worst outage of each policy over " + figures.Count(len(r.Groups), "scenario"),
		Note:    "The run with the most outage minutes. The worst runs of each scenario, measured to the baseline, stand there.",
		Head:    worstHead(),
	}
	for _, x := range r.Across() {
		if x.WorstOutage >= 0 {
			t.Rows = append(t.Rows, worstRow(r, x.WorstOutage, l))
		}
	}
	return t
}

// keepingWords names those that policies are first of, where some do not keep the manifests.
func keepingWords(all []eval.Across) string {
	if slices.ContainsFunc(all, func(x eval.Across) bool { return x.Marked > 0 }) {
		return "that keep the manifests "
	}
	return ""
}

// foundAcross says what was found over several scenarios; nothing where nothing ran.
func foundAcross(r *eval.Report) ([]string, []card) {
	all := r.Across()
	p := chosenAcross(r, all)
	if p < 0 {
		return nil, nil
	}
	x := &all[p]
	first := fmt.Sprintf("%d of %d", x.First, x.Of)
	lead := fmt.Sprintf("The policy %s saves the most of all %sin %s scenarios, %s", x.Policy, keepingWords(all), first, monthWords(r, p))
	run := &r.Runs[x.WorstOutage]
	out := monthCards(r, p)
	if most := run.Value("outage_minutes").V; run.Result.Incidents == 0 {
		lead += "; it has no outage in any run."
		out = append(out, card{"Worst outage", "0", "minutes"})
	} else {
		lead += fmt.Sprintf("; its worst run has %s (%s, seed %d).", figures.Count(int(most), "outage minute"), run.Scenario, run.Seed)
		out = append(out, card{"Worst outage", figures.Whole(most) + " min", run.Scenario + ", seed " + strconv.FormatUint(run.Seed, 10)})
	}
	found := []string{lead}
	if x.Behind >= 0 && x.Shortfall > 0 {
		g := &r.Groups[x.Behind]
		behind := r.Config.Policies[r.Best(g)] + " in " + g.Scenario
		found = append(found, fmt.Sprintf("At worst it saves %s points of the on-demand bill less than %s.", figures.Number(x.Shortfall, 1), behind))
		out = append(out, card{"Worst shortfall", figures.Number(x.Shortfall, 1) + " points", "behind " + behind})
	}
	if x.Policy != r.Config.Baseline {
		found = append(found, fmt.Sprintf("It saves more than the baseline %s in the median run of %d of %d scenarios.", r.Config.Baseline, aboveBaseline(r, p), x.Of))
	}
	if x.Marked > 0 {
		found = append(found, fmt.Sprintf("It does not do what the manifests say in %s.", figures.Count(x.Marked, "scenario")))
	}
	return found, append(out, gateCards(r)...)
}

// scenariosNamed is how many scenarios a summary has figures of, one by one.
const scenariosNamed = 3

// monthly returns the scenarios in which policy p has a result, and what it saves in
// each in dollars a month.
func monthly(r *eval.Report, p int) (names []string, month []float64) {
	for i := range r.Groups {
		g := &r.Groups[i]
		if x := &g.Policies[p]; x.Summary("net_savings_usd").N > 0 {
			names, month = append(names, g.Scenario), append(month, perMonth(r, g, x))
		}
	}
	return names, month
}

// monthWords says what policy p saves a month: in each scenario where these are few,
// else from the least to the most. It is never a sum.
func monthWords(r *eval.Report, p int) string {
	names, month := monthly(r, p)
	if len(names) > scenariosNamed {
		least, most := 0, 0
		for i := range month {
			if month[i] < month[least] {
				least = i
			}
			if month[i] > month[most] {
				most = i
			}
		}
		return fmt.Sprintf("between %s a month (%s) and %s (%s)", figures.Dollars(month[least]), names[least], figures.Dollars(month[most]), names[most])
	}
	var b strings.Builder
	for i := range names {
		switch {
		case i == 0:
			fmt.Fprintf(&b, "%s a month in %s", figures.Dollars(month[i]), names[i])
		case i == len(names)-1:
			fmt.Fprintf(&b, " and %s in %s", figures.Dollars(month[i]), names[i])
		default:
			fmt.Fprintf(&b, ", %s in %s", figures.Dollars(month[i]), names[i])
		}
	}
	return b.String()
}

// monthCards has what policy p saves a month in each scenario, where these are few.
func monthCards(r *eval.Report, p int) []card {
	names, month := monthly(r, p)
	if len(names) > scenariosNamed {
		return nil
	}
	var out []card
	for i := range names {
		out = append(out, card{names[i], figures.Dollars(month[i]), "saved a month by " + r.Config.Policies[p]})
	}
	return out
}

// chosenAcross returns the policy that the summary over several scenarios is about:
// of those that fail no gate and keep the manifests the one that is first in most
// scenarios, among equals the one with the least worst shortfall; else of all that
// were compared, else the baseline. -1 where nothing ran.
func chosenAcross(r *eval.Report, all []eval.Across) int {
	best, bestFails := -1, false
	for p := range all {
		x := &all[p]
		if x.Of == 0 || !r.Config.Trial(x.Policy) {
			continue
		}
		f := fails(r, p)
		if best < 0 || bestFails && !f || bestFails == f && (x.First > all[best].First || x.First == all[best].First && x.Shortfall < all[best].Shortfall) {
			best, bestFails = p, f
		}
	}
	if best >= 0 {
		return best
	}
	if base := slices.Index(r.Config.Policies, r.Config.Baseline); all[base].Of > 0 {
		return base
	}
	return -1
}

// aboveBaseline counts the scenarios in whose median run policy p saves more than
// the baseline.
func aboveBaseline(r *eval.Report, p int) int {
	n := 0
	for i := range r.Groups {
		if s := r.Groups[i].Policies[p].Summary("net_savings_delta_pct"); s.N > 0 && s.Median > 0 {
			n++
		}
	}
	return n
}
