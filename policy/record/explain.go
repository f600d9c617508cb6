package record

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
)

// ErrNoSuch means that a step has neither a node nor a pool with the given name.
var ErrNoSuch = errors.New("no such node or pool")

// String returns the entry on one line: the action, its subject, the reason, and the dollars per
// hour before and after.
func (r *planRow) String() string {
	var b strings.Builder
	if r.Kind == kindPause && !r.Closed {
		b.WriteString("resume")
	} else {
		b.WriteString(r.Kind)
	}
	for _, name := range []string{r.Pool, r.Node, r.Pod, r.Workload} {
		if name != "" {
			b.WriteString(" " + name)
		}
	}
	switch r.Kind {
	case kindPause, kindEvict:
		if r.Budget != "" {
			b.WriteString(" for " + r.Budget)
		}
	case kindSteer:
		fmt.Fprintf(&b, " share=%v", r.Share)
		if r.Exact {
			b.WriteString(" exact")
		}
		if r.Markets != "" {
			fmt.Fprintf(&b, " markets=%s", r.Markets)
		}
	case kindLaunch:
		fmt.Fprintf(&b, " in %s, or another of %s, token %s", r.Market, r.Markets, r.Token)
	case kindDeletionCost:
		fmt.Fprintf(&b, " %d", r.Cost)
	case kindGate:
		fmt.Fprintf(&b, " of %s %s", r.Budget, map[bool]string{true: "closes", false: "opens"}[r.Closed])
	}
	if r.After != "" {
		fmt.Fprintf(&b, " after=%s", r.After)
	}
	if r.Deadline != 0 {
		fmt.Fprintf(&b, " by %v", policy.Time(r.Deadline))
	}
	return b.String() + r.why()
}

// why returns the reason, the dollars per hour before and after, and the runner-up.
func (r *planRow) why() string {
	text := ": " + r.Reason
	if r.Text != "" {
		text += ", " + r.Text
	}
	if r.CostBefore != 0 || r.CostAfter != 0 {
		text += fmt.Sprintf(" (%s/h → %s/h)", policy.Money(r.CostBefore).Short(), policy.Money(r.CostAfter).Short())
	}
	if r.RunnerUp != "" {
		text += "; runner-up: " + r.RunnerUp
	}
	return text
}

// explain writes the known data about a node, or about a pool if node is None, and the entries of
// the plan about it.
func explain(b *strings.Builder, s *Step, pool policy.PoolID, node policy.NodeID) error {
	snap := s.Snapshot
	header(b, s)
	if node != policy.None {
		explainNode(b, snap, &snap.Nodes[node])
	} else {
		explainPool(b, snap, pool)
		remembered(b, s, pool)
	}
	rows, err := toPlanRows(s.Number, snap, &s.Plan)
	if err != nil {
		return err
	}
	said := false
	for i := range rows {
		if own(&rows[i], snap, pool, node) {
			fmt.Fprintf(b, "  %s\n", line(&rows[i], snap))
			said = true
		}
	}
	switch {
	case said:
	case node != policy.None:
		quietNode(b, s, &snap.Nodes[node])
	default:
		quietPool(b, s, pool)
	}
	around := false
	for i := range rows {
		if node != policy.None && !own(&rows[i], snap, pool, node) && ofPool(&rows[i], pool) {
			if !around {
				fmt.Fprintf(b, "  in its pool, %s:\n", snap.Pools[pool].Name)
				around = true
			}
			fmt.Fprintf(b, "    %s\n", line(&rows[i], snap))
		}
	}
	return nil
}

// line returns the entry on one line with the names of its markets instead of their IDs.
func line(r *planRow, s *policy.Snapshot) string {
	var ids []policy.MarketID
	if err := fromJSON(r.Markets, &ids); err != nil || len(ids) == 0 {
		return r.String()
	}
	const most = 3
	var names []string
	for _, id := range ids {
		if in(int(id), len(s.Markets)) {
			names = append(names, s.Markets[id].Name)
		}
	}
	named := *r
	named.Markets = strings.Join(names[:min(most, len(names))], ", ")
	if rest := len(names) - most; rest > 0 {
		named.Markets += fmt.Sprintf(" and %d more", rest)
	}
	return named.String()
}

// header writes the number and the times of the step.
func header(b *strings.Builder, s *Step) {
	fmt.Fprintf(b, "step %d at %v, the next at %v or sooner\n", s.Number, s.Snapshot.Now, s.Plan.Wake)
	if m := s.Meta; m != nil && m.Bundle != "" {
		fmt.Fprintf(b, "model bundle %s, SHA-256 %s\n", m.Bundle, m.BundleSHA256)
	}
}

// own reports whether an entry is about the node or a pod on it, or suspends a Job with a pod on
// it. If node is None, it reports the same for the pool, its nodes and their pods.
func own(r *planRow, s *policy.Snapshot, pool policy.PoolID, node policy.NodeID) bool {
	if r.Kind == kindPause {
		return slices.ContainsFunc(s.Pods, func(p policy.Pod) bool {
			job := in(int(p.Template), len(s.Templates)) && int32(s.Templates[p.Template].Workload) == r.WorkloadID
			return job && in(int(p.Node), len(s.Nodes)) && (p.Node == node ||
				node == policy.None && s.Nodes[p.Node].Pool == pool)
		})
	}
	at := policy.NodeID(r.NodeID)
	if in(int(r.PodID), len(s.Pods)) {
		at = s.Pods[r.PodID].Node
	}
	if node != policy.None {
		return at == node
	}
	return r.PoolID == int32(pool) || in(int(at), len(s.Nodes)) && s.Nodes[at].Pool == pool
}

// ofPool reports whether an entry is about a pool as a whole, or launches a node for it.
func ofPool(r *planRow, pool policy.PoolID) bool {
	return pool != policy.None && r.NodeID == policy.None && r.PoolID == int32(pool)
}

func explainNode(b *strings.Builder, s *policy.Snapshot, n *policy.Node) {
	fmt.Fprintf(b, "node %s is %v", n.Name, n.Phase)
	if n.ActedBy != policy.ActorNone {
		fmt.Fprintf(b, ", %v is acting on it", n.ActedBy)
	}
	pods := 0
	for i := range s.Pods {
		if s.Pods[i].Phase != policy.PodGone && s.Pods[i].Node == n.ID {
			pods++
		}
	}
	fmt.Fprintf(b, ", %s, launched %v\n", figures.Count(pods, "pod"), n.Launched)
	if n.ReclaimAt != 0 {
		fmt.Fprintf(b, "  notice at %v: the provider reclaims it at %v\n", n.NoticeAt, n.ReclaimAt)
	}
	if n.Market == policy.None {
		return
	}
	m := &s.Markets[n.Market]
	price := "not offered"
	if m.Offered {
		price = m.Price.Short() + "/h"
	}
	fmt.Fprintf(b, "  market %s: %s, on-demand %s/h, hazard %.5f per node-hour (%v, confidence %.2f)\n",
		m.Name, price, m.OnDemand.Short(), m.Forecast.Hazard, m.Forecast.Source, m.Forecast.Confidence)
}

func explainPool(b *strings.Builder, s *policy.Snapshot, pool policy.PoolID) {
	p := &s.Pools[pool]
	counts := [2]int{}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Live() && n.Pool == pool && n.Market != policy.None {
			if s.Markets[n.Market].Capacity == policy.Spot {
				counts[0]++
			} else {
				counts[1]++
			}
		}
	}
	fmt.Fprintf(b, "pool %s: %s, %s, Spot share allowed %v…%v",
		p.Name, figures.Count(counts[0], "Spot node"), figures.Count(counts[1], "on-demand node"), p.Share.Min, p.Share.Max)
	if p.Steer.Set {
		fmt.Fprintf(b, ", steered to %.3f at %v", p.Steer.Share, p.Steer.Since)
	}
	b.WriteString("\n")
}

// explainBudgets writes the known data about every budget: its usage as of the previous decision,
// its gate, and the Jobs that were suspended for it.
func explainBudgets(b *strings.Builder, s *Step) {
	for i := range s.Snapshot.Budgets {
		x := &s.Snapshot.Budgets[i]
		fmt.Fprintf(b, "budget %s (%v)", x.Name, x.Action)
		if m := s.Memory.Budget(x.Name); m != nil {
			fmt.Fprintf(b, ": %.2f device-hours and %s used in the %d h before %v", float64(m.Used)/3.6e9, m.Cost.Short(),
				int64(x.Window.Hours()), m.Counted)
			if m.Over != 0 {
				fmt.Fprintf(b, ", spent since %v", m.Over)
			}
		}
		if x.Closed {
			b.WriteString(", gate closed")
		}
		for k := range s.Snapshot.Workloads {
			if w := &s.Snapshot.Workloads[k]; w.Suspended && w.PausedBy == x.Name {
				fmt.Fprintf(b, ", %s suspended", w.Name)
			}
		}
		b.WriteString("\n")
	}
}
