// Package rescheduler is the policy that empties on-demand nodes onto Spot nodes: on-demand
// capacity is a fallback, and pods that fit on Spot return to Spot.
//
// It is a complete implementation of the K8s Spot Rescheduler. A node is emptied only if all of its
// pods fit elsewhere by every filter of the scheduler and their disruption budgets allow their
// eviction in time. A node that cannot be emptied does not block the others. If the Spot nodes are
// full, it buys new ones if that saves money.
package rescheduler

import (
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/replan"
)

// ReasonFreeCapacity is the reason for a drain of a node whose pods fit on existing Spot nodes.
const ReasonFreeCapacity policy.Reason = "room"

// A Policy empties on-demand nodes onto Spot nodes. It reuses its own memory, so only one goroutine
// may use it at a time.
type Policy struct {
	cfg   Config
	name  string
	space placement.Space // kept to reuse its memory
}

// New returns the policy, or an error that names the first parameter out of range.
func New(cfg Config) (*Policy, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Policy{cfg: cfg, name: cfg.name()}, nil
}

// Name returns "rescheduler" followed by the parameters that differ from the default.
func (e *Policy) Name() string { return e.name }

// Decide steers each pool to its target Spot share, and empties on-demand nodes onto Spot nodes.
func (e *Policy) Decide(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
	s = s.WithoutFees() // the K8s Spot Rescheduler considers only the prices of instances
	plan := policy.Plan{Drains: placement.Notices(s), Wake: policy.NextStep(s.Now, policy.DefaultStep)}
	wanted := func(p policy.PoolID) float64 { return replan.Wanted(&s.Pools[p]) }
	plan.Launches, plan.Holds = placement.Shortages(s, wanted)
	plan.Steers = replan.Steers(s, wanted, "Spot up to the pool's target share, with on-demand as the fallback")
	m = e.round(s, m, &plan)
	m.Decisions++
	return replan.Consolidate(s, plan, m, replan.ConsolidateOptions{Share: wanted})
}

// round adds a round of drains to plan if one is due, and returns m with the time of the move in
// the pools concerned.
func (e *Policy) round(s *policy.Snapshot, m policy.Memory, plan *policy.Plan) policy.Memory {
	sources := e.sources(s, &m)
	if len(sources) == 0 {
		return m
	}
	if next := e.due(s, &m); next > s.Now {
		plan.Wake = min(plan.Wake, next)
		plan.Holds = append(plan.Holds, clusterHold(policy.ReasonCooldown,
			"the drain delay after the last round has not passed"))
		return m
	}
	if unschedulable(s) {
		plan.Holds = append(plan.Holds, clusterHold(policy.ReasonShortage, "pods are waiting for a node and come first"))
		return m
	}
	if e.cfg.Drains == OneNode && e.moving(s) {
		plan.Holds = append(plan.Holds, clusterHold(policy.ReasonInProgress, "a node is being drained"))
		return m
	}
	drains := len(plan.Drains)
	b := e.newBoard(s, plan)
	placement.EmptiestFirst(s, &e.space, sources)
	b.empty(sources, m.Decisions)
	for _, d := range plan.Drains[drains:] {
		pool := m.Pool(s.Pools[s.Nodes[d.Node].Pool].Name)
		pool.Moved = s.Now
		m = m.With(pool)
	}
	return m
}

func clusterHold(reason policy.Reason, text string) policy.Hold {
	return policy.Hold{Pool: policy.None, Node: policy.None, Why: policy.Why{Reason: reason, Text: text}}
}

// due returns when the next round of drains may start. The delay applies to the whole cluster,
// except for pools that are off.
func (e *Policy) due(s *policy.Snapshot, m *policy.Memory) policy.Time {
	var last policy.Time
	for i := range s.Pools {
		if p := &s.Pools[i]; p.Mode != policy.ModeOff {
			pool := m.Pool(p.Name)
			last = max(last, pool.Moved)
		}
	}
	if last == 0 {
		return s.Now
	}
	return last.Add(e.cfg.DrainDelay)
}

// unschedulable reports whether a pod waits for a node. A pod with a negative priority only
// reserves capacity for others, and does not count.
func unschedulable(s *policy.Snapshot) bool {
	for p := range s.Pending() {
		if t := &s.Templates[p.Template]; !p.Gated && p.Nominated == policy.None && !t.DaemonSet && t.Priority >= 0 {
			return true
		}
	}
	return false
}

// moving reports whether Spotter is draining a node voluntarily, or a replacement that it bought is
// starting.
func (e *Policy) moving(s *policy.Snapshot) bool {
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.Live() && n.ActedBy == policy.ActorUs && n.ReclaimAt == 0 && n.Pool != policy.None &&
			s.Pools[n.Pool].Mode != policy.ModeOff {
			return true
		}
	}
	for i := range s.Pools {
		if s.Pools[i].Mode != policy.ModeOff && s.Pools[i].Provisioner != policy.ProvisionerNone &&
			placement.BalanceOf(s, policy.PoolID(i)).Moving > 0 {
			return true
		}
	}
	return false
}

// sources returns the on-demand nodes that may be emptied: nodes of managed pools that no other
// controller holds, and whose drain is not backed off.
func (e *Policy) sources(s *policy.Snapshot, m *policy.Memory) (nodes []policy.NodeID) {
	memories, filters := make([]policy.PoolMemory, len(s.Pools)), make([]*policy.BackoffFilter, len(s.Pools))
	for i := range s.Pools {
		if memories[i] = m.Pool(s.Pools[i].Name); len(memories[i].Backoff) > 0 {
			filters[i] = memories[i].Filter(s.Now)
		}
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Pool == policy.None || s.Pools[n.Pool].Mode == policy.ModeOff || !replan.MayLeave(n) || !e.cfg.isOnDemand(s, n) {
			continue
		}
		if f := filters[n.Pool]; f == nil || !f.May(n.Name) || !memories[n.Pool].BackedOff(n.Name, s.Now) {
			nodes = append(nodes, n.ID)
		}
	}
	return nodes
}
