package report

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/policy/figures"
)

// Idle is the name for the capacity of nodes that no pod requested.
const Idle = "(idle)"

// namespaces returns the table of the cost of each namespace with each policy of g; nil if no run
// has such costs.
func namespaces(r *eval.Report, g *eval.Group) *table {
	t := &table{
		Caption: "Cost by namespace over " + g.Scenario, Sortable: true,
		Note: "Dollars a month, means over runs: the price of each node divided among its pods by what they request, as OpenCost does. " +
			Idle +
			" is what no pod requested. The cost of outages is not in it. Below each figure is its difference from the baseline's.",
		Head: headings("'Namespace"),
	}
	rows, most := policyRows(r, g), map[string]float64{}
	means := make([]map[string]float64, len(g.Policies))
	for _, x := range rows {
		means[x.p] = meanCosts(r, g, x.p)
		t.Head = append(t.Head, heading{Text: strings.TrimSuffix(x.name().Text, mark), Unit: role(r, x.Policy)})
		for name, cost := range means[x.p] {
			most[name] = max(most[name], cost)
		}
	}
	if len(most) == 0 {
		return nil
	}
	base := means[slices.Index(r.Config.Policies, r.Config.Baseline)]
	for _, name := range slices.SortedFunc(maps.Keys(most), func(a, b string) int {
		return cmp.Or(cmp.Compare(most[b], most[a]), cmp.Compare(a, b))
	}) {
		row := texts(name)
		for _, x := range rows {
			c := unknown
			if cost, known := means[x.p][name]; known {
				c.Text = figures.Dollars(cost)
				if other, known := base[name]; known && r.Config.Trial(x.Policy) {
					c.Sub = figures.DollarChange(cost - other)
				}
			}
			row = append(row, c)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// meanCosts returns the monthly cost of each namespace with policy p, as the mean over the runs
// with known costs.
func meanCosts(r *eval.Report, g *eval.Group, p int) map[string]float64 {
	sum, runs := map[string]float64{}, 0.0
	for _, i := range runsOf(r, g, p) {
		if r.Runs[i].Result == nil || r.Runs[i].Result.NamespaceCosts == nil {
			continue
		}
		of := r.Runs[i].Result.NamespaceCosts
		runs++
		for name, x := range of {
			sum[name] += float64(x * months(r, g))
		}
	}
	for name := range sum {
		sum[name] /= runs
	}
	return sum
}
