package record

import (
	"fmt"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// The kinds of plan entries, as stored in the column kind.
const (
	kindSteer  = "steer"
	kindLaunch = "launch"
	kindDrain  = "drain"
	kindGate   = "gate"
	kindPause  = "pause"
	kindEvict  = "evict"
	kindHold   = "hold"

	kindDeletionCost = "deletion-cost"
)

// A planRow is one entry of a plan. Each kind uses some of the columns. IDs refer to the step's
// snapshot and are -1 if they do not apply; the names are stored next to them. Two entries are
// equal if their rows are.
type planRow struct {
	Step       int64     `parquet:"step,delta"`
	Position   int32     `parquet:"position"` // among the entries of its kind
	Kind       string    `parquet:"kind,dict"`
	PoolID     int32     `parquet:"pool_id"`
	Pool       string    `parquet:"pool,dict"`
	NodeID     int32     `parquet:"node_id"` // for a launch: the node that it replaces
	Node       string    `parquet:"node,dict"`
	PodID      int32     `parquet:"pod_id"`
	Pod        string    `parquet:"pod,dict"`
	Markets    string    `parquet:"market_ids,json,dict"`
	Market     string    `parquet:"first_market,dict"`
	Token      string    `parquet:"token,dict"`
	After      string    `parquet:"after_tokens,json,dict"`
	Share      float64   `parquet:"share"`
	Exact      bool      `parquet:"exact"`
	Fallback   bool      `parquet:"fallback"`
	Mixed      bool      `parquet:"mixed"`
	EmptyOnly  bool      `parquet:"empty_only"`
	Gentle     bool      `parquet:"gentle"`
	Limits     resources `parquet:"limits"`
	Bid        int64     `parquet:"bid,decimal(6:18)"`
	Deadline   int64     `parquet:"deadline,optional,timestamp(millisecond)"`
	Budget     string    `parquet:"budget,dict"`
	Closed     bool      `parquet:"closed"` // for a pause: the Job is suspended
	WorkloadID int32     `parquet:"workload_id"`
	Workload   string    `parquet:"workload,dict"`
	Grace      int64     `parquet:"grace_ns"`
	HasGrace   bool      `parquet:"has_grace"`
	Cost       int32     `parquet:"deletion_cost"`
	Reason     string    `parquet:"reason,dict"`
	Text       string    `parquet:"text,dict"`
	CostBefore int64     `parquet:"cost_before,decimal(6:18)"`
	CostAfter  int64     `parquet:"cost_after,decimal(6:18)"`
	RunnerUp   string    `parquet:"runner_up,dict"`
}

// toPlanRows returns the entries of p in the order of execution.
func toPlanRows(step int64, s *policy.Snapshot, p *policy.Plan) ([]planRow, error) {
	b := planRows{step: step, snapshot: s}
	for i := range p.Steers {
		x := &p.Steers[i]
		r := b.add(kindSteer, i, x.Pool, policy.None, policy.None, &x.Why)
		r.Share, r.Exact, r.Fallback, r.Bid = x.Share, x.Exact, x.Fallback, int64(x.Bid)
		r.Limits, r.EmptyOnly, r.Mixed = toResources(x.Limits), x.EmptyOnly, x.Mixed
		b.markets(r, x.Markets)
	}
	for i := range p.Launches {
		x := &p.Launches[i]
		r := b.add(kindLaunch, i, x.Pool, x.Replaces, policy.None, &x.Why)
		r.Token, r.Bid = x.Token, int64(x.Bid)
		b.markets(r, x.Markets)
	}
	for i := range p.Drains {
		x := &p.Drains[i]
		r := b.add(kindDrain, i, policy.None, x.Node, policy.None, &x.Why)
		r.Deadline, r.Gentle = int64(x.Deadline), x.Gentle
		r.After = b.json(x.After)
	}
	for i := range p.DeletionCosts {
		x := &p.DeletionCosts[i]
		b.add(kindDeletionCost, i, policy.None, x.Node, policy.None, &x.Why).Cost = x.Cost
	}
	for i := range p.Gates {
		x := &p.Gates[i]
		r := b.add(kindGate, i, policy.None, policy.None, policy.None, &x.Why)
		r.Budget, r.Closed = x.Budget, x.Closed
	}
	for i := range p.Pauses {
		x := &p.Pauses[i]
		r := b.add(kindPause, i, policy.None, policy.None, policy.None, &x.Why)
		r.Budget, r.Closed, r.WorkloadID = x.Budget, x.Paused, int32(x.Workload)
		if in(int(x.Workload), len(s.Workloads)) {
			r.Workload = s.Workloads[x.Workload].Name
		}
	}
	for i := range p.Evicts {
		x := &p.Evicts[i]
		r := b.add(kindEvict, i, policy.None, policy.None, x.Pod, &x.Why)
		r.Budget, r.Grace, r.HasGrace = x.Budget, int64(x.Grace), x.HasGrace
	}
	for i := range p.Holds {
		b.add(kindHold, i, p.Holds[i].Pool, p.Holds[i].Node, policy.None, &p.Holds[i].Why)
	}
	return b.rows, b.err
}

// planRows collects the rows of one plan.
type planRows struct {
	step     int64
	snapshot *policy.Snapshot
	rows     []planRow
	err      error
}

func (b *planRows) add(kind string, i int, pool policy.PoolID, node policy.NodeID, pod policy.PodID,
	why *policy.Why) *planRow {
	s := b.snapshot
	r := planRow{
		Step: b.step, Position: int32(i), Kind: kind,
		PoolID: int32(pool), NodeID: int32(node), PodID: int32(pod), WorkloadID: policy.None,
		Reason: string(why.Reason), Text: why.Text, RunnerUp: why.RunnerUp,
		CostBefore: int64(why.Before), CostAfter: int64(why.After),
	}
	if in(int(pool), len(s.Pools)) {
		r.Pool = s.Pools[pool].Name
	}
	if in(int(node), len(s.Nodes)) {
		r.Node = s.Nodes[node].Name
	}
	if in(int(pod), len(s.Pods)) {
		r.Pod = s.Pods[pod].Name
	}
	b.rows = append(b.rows, r)
	return &b.rows[len(b.rows)-1]
}

func (b *planRows) markets(r *planRow, ids []policy.MarketID) {
	r.Markets = b.json(ids)
	if len(ids) > 0 && in(int(ids[0]), len(b.snapshot.Markets)) {
		r.Market = b.snapshot.Markets[ids[0]].Name
	}
}

func (b *planRows) json(v any) string {
	s, err := toJSON(v)
	if err != nil && b.err == nil {
		b.err = err
	}
	return s
}

func in(i, n int) bool { return i >= 0 && i < n }

// addTo appends the entry in r to p.
func (r *planRow) addTo(p *policy.Plan) error {
	why := policy.Why{
		Reason: policy.Reason(r.Reason), Text: r.Text, RunnerUp: r.RunnerUp,
		Before: policy.Money(r.CostBefore), After: policy.Money(r.CostAfter),
	}
	pool, node := policy.PoolID(r.PoolID), policy.NodeID(r.NodeID)
	var markets []policy.MarketID
	if err := fromJSON(r.Markets, &markets); err != nil {
		return fmt.Errorf("markets of a %s: %w", r.Kind, err)
	}
	switch r.Kind {
	case kindSteer:
		p.Steers = append(p.Steers, policy.Steer{
			Pool: pool, Share: r.Share, Exact: r.Exact, Markets: markets, Fallback: r.Fallback,
			Limits: r.Limits.resources(), Bid: policy.Money(r.Bid), EmptyOnly: r.EmptyOnly, Mixed: r.Mixed, Why: why,
		})
	case kindLaunch:
		p.Launches = append(p.Launches, policy.Launch{
			Token: r.Token, Pool: pool, Markets: markets, Replaces: node, Bid: policy.Money(r.Bid), Why: why,
		})
	case kindDrain:
		d := policy.Drain{Node: node, Deadline: policy.Time(r.Deadline), Gentle: r.Gentle, Why: why}
		if err := fromJSON(r.After, &d.After); err != nil {
			return fmt.Errorf("tokens of a drain: %w", err)
		}
		p.Drains = append(p.Drains, d)
	case kindDeletionCost:
		p.DeletionCosts = append(p.DeletionCosts, policy.DeletionCost{Node: node, Cost: r.Cost, Why: why})
	case kindEvict:
		p.Evicts = append(p.Evicts, policy.Evict{
			Pod: policy.PodID(r.PodID), Budget: r.Budget, Grace: time.Duration(r.Grace), HasGrace: r.HasGrace, Why: why,
		})
	case kindGate:
		p.Gates = append(p.Gates, policy.Gate{Budget: r.Budget, Closed: r.Closed, Why: why})
	case kindPause:
		p.Pauses = append(p.Pauses, policy.Pause{Workload: policy.WorkloadID(r.WorkloadID), Budget: r.Budget,
			Paused: r.Closed, Why: why})
	case kindHold:
		p.Holds = append(p.Holds, policy.Hold{Pool: pool, Node: node, Why: why})
	default:
		return fmt.Errorf("kind %q is unknown", r.Kind)
	}
	return nil
}
