package report

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/policy/figures"
)

// A NamespaceCosts has what the nodes of runs cost, divided among namespaces. It is filled while
// runs are done, by several goroutines at once; its zero value is empty.
type NamespaceCosts struct {
	mu    sync.Mutex
	costs map[eval.Job]map[string]float64
}

// Idle stands for what no pod requested of the nodes.
const Idle = "(idle)"

// Add sets the costs of the run of j by namespace, in dollars.
func (n *NamespaceCosts) Add(j eval.Job, costs map[string]float64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.costs == nil {
		n.costs = map[eval.Job]map[string]float64{}
	}
	n.costs[j] = costs
}

// of returns the costs of the run of j, nil where they are not known.
func (n *NamespaceCosts) of(j eval.Job) map[string]float64 {
	if n == nil {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.costs[j]
}

// namespaces is the table of what each namespace costs under each policy of g; nothing where that
// is known of no run.
func namespaces(r *eval.Report, g *eval.Group, costs *NamespaceCosts) *table {
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
		means[p] = meanCosts(r, g, p, costs)
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
func meanCosts(r *eval.Report, g *eval.Group, p int, costs *NamespaceCosts) map[string]float64 {
	sum, runs := map[string]float64{}, 0.0
	months := monthsOf(r, g)
	for _, i := range runsOf(r, g, p) {
		of := costs.of(r.Runs[i].Job)
		if of == nil {
			continue
		}
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
