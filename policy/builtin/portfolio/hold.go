package portfolio

import (
	"fmt"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/workload"
)

// tellEvery is how often it is said what the loss of a group would do, besides
// when a pool is steered anew.
const tellEvery = policy.Time(time.Hour / time.Millisecond)

// addExposed adds a hold for every workload that the loss of one market or zone would
// leave with less than it must have, and says whether nodes allow better.
func (e *Policy) addExposed(s *policy.Snapshot, plan *policy.Plan) {
	if s.Now%tellEvery != 0 && len(plan.Steers) == 0 {
		return
	}
	for w := range s.Workloads {
		if !e.exposure.Tracks(policy.WorkloadID(w)) {
			continue
		}
		l := e.exposure.Loss(policy.WorkloadID(w))
		for _, x := range [...]workload.Exposed{l.Market, l.Zone} {
			if l.Short(x) > 0 {
				plan.Holds = append(plan.Holds, policy.Hold{Pool: policy.None, Node: policy.None, Why: e.exposed(s, &l, x)})
			}
		}
	}
}

// exposed returns the account of a workload that the loss of x would leave short.
func (e *Policy) exposed(s *policy.Snapshot, l *workload.Loss, x workload.Exposed) policy.Why {
	group := "no group"
	switch {
	case x.Group.Market >= 0:
		group = "market " + s.Markets[x.Group.Market].Name
	case x.Group.Zone >= 0:
		group = "zone " + s.Zones[x.Group.Zone]
	}
	why := policy.Why{Reason: policy.ReasonRisk, Text: fmt.Sprintf(
		"%s would fall %d below the %d ready pods that it must have with the loss of %s", s.Workloads[l.Workload].Name, l.Short(x), l.Required, group)}
	switch {
	case l.Mendable(x) <= 0:
		why.Reason = policy.ReasonInfeasible
		why.Text += ": no spread over the nodes that the pool may have avoids it"
	case l.Unavoidable(x) > 0:
		why.Text += fmt.Sprintf(": %d of these no spread avoids", l.Unavoidable(x))
	default:
		why.Text += ": a wider spread avoids it"
	}
	return why
}

// recommended returns what it saves in dollars to leave a node now that the
// provider recommends to leave: the part of recommendations that come true times
// what the sudden loss of its pods would cost.
func (m *rebalance) recommended(n *policy.Node, pods []policy.Pod) float64 {
	if n.Recommended == 0 || m.s.Now.Sub(n.Recommended) > recommendedFor {
		return 0
	}
	return m.lossTogether(pods) * cometrue
}

// lossTogether returns what the sudden loss of pods that stand on one node costs in
// dollars: each is missed, and a workload pays the penalty of an outage for those that it
// cannot spare.
func (m *rebalance) lossTogether(pods []policy.Pod) float64 {
	count := make([]int32, len(m.s.Workloads))
	loss := 0.0
	for i := range pods {
		t := &m.s.Templates[pods[i].Template]
		if t.Workload < 0 {
			continue
		}
		if m.s.Workloads[t.Workload].Kind == policy.KindJob {
			loss += m.e.losses.of(m.s, &pods[i])
			continue
		}
		loss += m.e.losses.missed(m.e.losses.values[t.ID], m.e.losses.minutes[t.ID])
		if count[t.Workload]++; count[t.Workload] > max(0, m.costs.slack[t.Workload]) {
			loss += float64(m.e.losses.values[t.ID] * penaltyHours(t))
		}
	}
	return loss
}

// recommendedFor is how long a recommendation says something of a node, and
// cometrue the part of recommendations that the provider follows with a reclaim in
// that time: users report many more than reclaims.
const (
	recommendedFor = time.Hour
	cometrue       = 0.25
)

// weigh adds a hold for every node that the provider recommends to leave and that
// the plan keeps, with the dollars on both sides.
func (m *rebalance) weigh() {
	s := m.s
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Pool != m.pool.ID || n.Recommended == 0 || s.Now.Sub(n.Recommended) > recommendedFor || !n.Usable() || n.ActedBy != policy.ActorNone {
			continue
		}
		leaves := slices.ContainsFunc(m.out.Drains, func(d policy.Drain) bool { return d.Node == n.ID })
		if leaves || s.Now.Sub(n.Recommended) > tellFor {
			continue
		}
		var pods []policy.Pod
		for k := range s.Pods {
			if p := &s.Pods[k]; p.Node == n.ID && !s.Templates[p.Template].DaemonSet {
				pods = append(pods, *p)
			}
		}
		stay, move := m.recommended(n, pods), m.moving(pods)
		if stay > move {
			continue
		}
		m.out.Holds = append(m.out.Holds, policy.Hold{Pool: n.Pool, Node: n.ID, Why: policy.Why{
			Reason: policy.ReasonNoEdge, Before: policy.Dollars(stay), After: policy.Dollars(move), RunnerUp: "drain it now",
			Text: fmt.Sprintf("the provider recommends to leave: to stay is expected to cost %s, to move %s", policy.Dollars(stay).Short(), policy.Dollars(move).Short()),
		}})
	}
}

// tellFor is how long after a recommendation it is said that the node is kept.
const tellFor = 10 * time.Minute

// moving returns what it costs in dollars to move pods.
func (m *rebalance) moving(pods []policy.Pod) float64 {
	cost := 0.0
	for i := range pods {
		if w := m.s.Templates[pods[i].Template].Workload; w >= 0 {
			cost += m.costs.each[w]
		}
	}
	return cost
}
