package format

import (
	"fmt"
	"slices"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/stats"
	"github.com/spotter-dev/spotter/policy/figures"
)

// OracleLine describes the bound of g in words. It is empty if no on-demand run succeeded.
func OracleLine(r *eval.Report, g *eval.Group) string {
	least, saved, savedPct, ok := boundOf(r, g)
	if !ok {
		return ""
	}
	line := fmt.Sprintf("No policy can cost less than %s (%s): %s or %s saved at the most. Regret is the distance to it, in percent of the on-demand bill.",
		figures.Dollars(least), eval.OracleName, figures.Dollars(saved), figures.Percent(savedPct, 1))
	line += slotsSentence(r, g, least)
	for i := range g.Policies {
		p := &g.Policies[i]
		if s := p.Summary("packing_overhead"); p.Policy == eval.OnDemand && s.N > 0 {
			line += fmt.Sprintf(" With on-demand markets only it is %s: on-demand's bill is %s times that, since nodes are whole and take time.",
				figures.Dollars(p.Summary("oracle_on_demand_usd").Median), figures.Number(s.Median, 2))
		}
	}
	if budgeted(r, g) {
		line += " It knows no budgets: what these keep out might be served in it, so no policy may come near."
	}
	return line
}

// slotsSentence describes the bound that respects slots, and names the policy that is closest to
// it. It is empty if slots do not change the bound least.
func slotsSentence(r *eval.Report, g *eval.Group, least float64) string {
	var nearest *eval.PolicyReport
	bound := least
	for i := range g.Policies {
		p := &g.Policies[i]
		if s := p.Summary("oracle_slots_usd"); p.Policy == eval.OnDemand && s.N > 0 {
			bound = s.Median
		}
		if s := p.Summary("regret_slots"); s.N > 0 && (nearest == nil || s.Median < nearest.Summary("regret_slots").Median) {
			nearest = p
		}
	}
	if nearest == nil || figures.Dollars(bound) == figures.Dollars(least) {
		return ""
	}
	return fmt.Sprintf(" With no more nodes in a market than it has slots it is %s: the nearest, %s, is %s of the on-demand bill above that (regret_slots).",
		figures.Dollars(bound), nearest.Policy, figures.Share(nearest.Summary("regret_slots").Median, 1))
}

// boundOf returns the medians of the cost and the savings of the oracle over the cases of g. It
// returns false if no on-demand run succeeded.
func boundOf(r *eval.Report, g *eval.Group) (cost, saved, savedPct float64, ok bool) {
	var costs, savings, percents []float64
	p := slices.Index(r.Config.Policies, eval.OnDemand)
	for _, i := range r.RunsOf(g, p) {
		run := &r.Runs[i]
		bill, least, extra := run.Value("on_demand_bill_usd"), run.Value("oracle_usd"), run.Value("on_demand_outage_cost_usd")
		if !bill.Known || bill.V <= 0 || !least.Known {
			continue
		}
		most, of := bill.V+extra.V-least.V, bill.V
		if t := r.Config.Today; t != nil {
			of = t.Month / t.PerMonth(run.Bound.Duration)
			most = of - least.V
		}
		costs, savings, percents = append(costs, least.V), append(savings, most), append(percents, most/of*100)
	}
	if len(costs) == 0 {
		return 0, 0, 0, false
	}
	return stats.Median(costs), stats.Median(savings), stats.Median(percents), true
}

// budgeted reports whether a case of g has GPU budgets.
func budgeted(r *eval.Report, g *eval.Group) bool {
	return slices.ContainsFunc(g.Cases, func(k int) bool { return len(r.Config.Cases[k].Bound.GPUBudgets) > 0 })
}
