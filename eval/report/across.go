package report

import (
	"fmt"
	"slices"
	"strconv"

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
		Note:    "The run with the most outage minutes. The worst runs of each scenario against the baseline are listed there.",
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
	month := monthly(r, p)
	lead := fmt.Sprintf("The policy %s saves the most of all %sin %d of %d scenarios, %s",
		x.Policy, keepingWords(all), x.First, x.Of, month.words())
	run := &r.Runs[x.WorstOutage]
	out := month.cards()
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

// A monthlySavings is what a policy saves in each scenario in which it has a result, in dollars a
// month: more than the baseline, or against on-demand where it is the baseline.
type monthlySavings struct {
	over   string
	names  []string
	amount []float64
	write  func(float64) string
}

func monthly(r *eval.Report, p int) monthlySavings {
	m := monthlySavings{over: r.Config.Baseline, write: figures.DollarChange}
	against := r.Config.Policies[p] != r.Config.Baseline
	if !against {
		m.over, m.write = eval.OnDemand, figures.Dollars
	}
	for i := range r.Groups {
		g := &r.Groups[i]
		d := r.OverBaseline(g, p)
		switch x := &g.Policies[p]; {
		case against && d.N > 0:
			m.names, m.amount = append(m.names, g.Scenario), append(m.amount, d.Median)
		case !against && x.Summary("net_savings_usd").N > 0:
			m.names, m.amount = append(m.names, g.Scenario), append(m.amount, perMonth(r, g, x))
		}
	}
	return m
}

// words says what a policy saves a month: in each scenario where these are few, else from the
// least to the most. It is never a sum.
func (m *monthlySavings) words() string {
	if len(m.names) == 0 {
		return "of which none can be compared with " + m.over
	}
	if len(m.names) > scenariosNamed {
		least, most := 0, 0
		for i, x := range m.amount {
			if x < m.amount[least] {
				least = i
			}
			if x > m.amount[most] {
				most = i
			}
		}
		return fmt.Sprintf("from %s a month over %s (%s) to %s (%s)",
			m.write(m.amount[least]), m.over, m.names[least], m.write(m.amount[most]), m.names[most])
	}
	text := fmt.Sprintf("%s a month over %s in %s", m.write(m.amount[0]), m.over, m.names[0])
	for i := 1; i < len(m.names); i++ {
		separator := ", "
		if i == len(m.names)-1 {
			separator = " and "
		}
		text += separator + m.write(m.amount[i]) + " in " + m.names[i]
	}
	return text
}

// cards has what a policy saves a month in each scenario, where these are few.
func (m *monthlySavings) cards() []card {
	if len(m.names) > scenariosNamed {
		return nil
	}
	var out []card
	for i := range m.names {
		out = append(out, card{m.names[i], m.write(m.amount[i]), "a month over " + m.over})
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
