package record

import (
	"fmt"
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// A PlanEntry is one entry of a plan for use by programs. Fields that do not apply are empty.
type PlanEntry struct {
	Kind     string  `json:"kind"`
	Pool     string  `json:"pool,omitempty"`
	Node     string  `json:"node,omitempty"`
	Pod      string  `json:"pod,omitempty"`
	Workload string  `json:"workload,omitempty"`
	Budget   string  `json:"budget,omitempty"`
	Market   string  `json:"market,omitempty"`
	Share    float64 `json:"share,omitempty"`

	// Reason is the reason in one word, Text the reason in a sentence, and RunnerUp the second-best
	// alternative.
	Reason   string `json:"reason"`
	Text     string `json:"text,omitempty"`
	RunnerUp string `json:"runner_up,omitempty"`

	// Before and After are the dollars per hour without and with the entry.
	Before float64 `json:"usd_per_hour_before,omitempty"`
	After  float64 `json:"usd_per_hour_after,omitempty"`
}

// Entries returns the entries of the plan of s about the node or pool in q, or all entries if q
// names neither, in the order of execution.
func (q *Query) Entries(s *Step) ([]PlanEntry, error) {
	rows, err := q.rows(s)
	if err != nil {
		return nil, err
	}
	out := []PlanEntry{}
	for i := range rows {
		out = append(out, rows[i].entry())
	}
	return out, nil
}

// rows returns the rows of the plan of s about the subject of q.
func (q *Query) rows(s *Step) ([]planRow, error) {
	rows, err := toPlanRows(s.Number, s.Snapshot, &s.Plan)
	if err != nil {
		return nil, fmt.Errorf("step %d: %w", s.Number, err)
	}
	if q.Node == "" && q.Pool == "" {
		return rows, nil
	}
	pool, node := q.subject(s.Snapshot)
	if pool == policy.None && node == policy.None {
		return nil, nil
	}
	return slices.DeleteFunc(rows, func(r planRow) bool { return !own(&r, s.Snapshot, pool, node) }), nil
}

// entry returns the row as a PlanEntry.
func (r *planRow) entry() PlanEntry {
	return PlanEntry{
		Kind: r.Kind, Pool: r.Pool, Node: r.Node, Pod: r.Pod, Workload: r.Workload, Budget: r.Budget, Market: r.Market, Share: r.Share,
		Reason: r.Reason, Text: r.Text, RunnerUp: r.RunnerUp, Before: policy.Money(r.CostBefore).Float(), After: policy.Money(r.CostAfter).Float(),
	}
}
