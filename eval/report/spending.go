package report

import (
	"cmp"
	"maps"
	"slices"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/policy/figures"
)

// Idle stands for what no pod requested of the nodes.
const Idle = "(idle)"

// namespaces is the table of what each namespace costs under each policy of g; nothing where that
// is known of no run.
func namespaces(r *eval.Report, g *eval.Group) *table {
	t := &table{
		Caption: "Cost by namespace over " + g.Scenario, Sortable: true,
		Note: "Dollars a month, means over runs: the price of each node divided among its pods by what they request, as OpenCost does. " +
			Idle + " is what no pod requested. The cost of outages is not in it.",
		Head: []heading{{Text: "Namespace", Words: true}},
	}
	order, winner := ranked(r, g)
	means := make([]map[string]float64, len(g.Policies))
	total := map[string]float64{}
	for _, p := range order {
		means[p] = meanCosts(r, g, p)
		h := heading{Text: g.Policies[p].Policy, Unit: role(r, g.Policies[p].Policy)}
		if p == winner {
			h.Text = "★ " + h.Text
		}
		t.Head = append(t.Head, h)
		for name, x := range means[p] {
			total[name] = max(total[name], x)
		}
	}
	names := slices.SortedFunc(maps.Keys(total), func(a, b string) int {
		return cmp.Or(cmp.Compare(total[b], total[a]), cmp.Compare(a, b))
	})
	if len(names) == 0 {
		return nil
	}
	base := means[slices.Index(r.Config.Policies, r.Config.Baseline)]
	for _, name := range names {
		row := []cell{{Text: name}}
		for _, p := range order {
			x, known := means[p][name]
			if !known {
				row = append(row, unknown())
				continue
			}
			c := number(x, figures.Dollars(x))
			if other, known := base[name]; known && r.Config.Trial(g.Policies[p].Policy) {
				c.Sub = figures.DollarChange(x - other)
			}
			row = append(row, c)
		}
		t.Rows = append(t.Rows, row)
	}
	t.Note += " Below each figure is its difference from the baseline's."
	return t
}

// meanCosts returns what namespaces cost a month under policy p, the mean over the runs of which
// that is known.
func meanCosts(r *eval.Report, g *eval.Group, p int) map[string]float64 {
	sum, runs := map[string]float64{}, 0.0
	months := monthsOf(r, g)
	for _, i := range runsOf(r, g, p) {
		if r.Runs[i].Result == nil || r.Runs[i].Result.NamespaceCosts == nil {
			continue
		}
		of := r.Runs[i].Result.NamespaceCosts
		runs++
		for name, x := range of {
			sum[name] += float64(x * months)
		}
	}
	for name := range sum {
		sum[name] /= runs
	}
	return sum
}
