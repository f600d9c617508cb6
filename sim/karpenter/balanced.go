package karpenter

import "github.com/spotter-dev/spotter/policy"

// A pool that is Balanced lets a command pass if the part of the pool's cost that it
// saves is at least half the part of the pool's disruption cost that it takes
// (balanced.go; v1.BalancedK is 2).
const balancedK = 2

// totals are the sums over all nodes of a pool.
type totals struct{ price, cost float64 }

// totalsOf sums over the nodes of pool p, including those that are not candidates (balanced.go,
// computeNodePoolTotals).
func (c *Cluster) totalsOf(p policy.PoolID) totals {
	var t totals
	for i := range c.Nodes {
		n := &c.Nodes[i]
		if n.Pool != p || !n.Live() {
			continue
		}
		t.price += dollars(c.View.Price(n.Pool, n.Market))
		t.cost += c.cost(n.ID)
	}
	return t
}

// score reports whether savings pay for cost in a pool.
func score(savings, cost float64, t totals) bool {
	if t.price <= 0 || t.cost <= 0 || savings <= 0 {
		return false
	}
	return savings/t.price/(cost/t.cost) >= 1.0/balancedK
}

// canPass reports whether removing x outright would pass: else nothing will
// (balanced.go, CanPassThreshold).
func (c *Cluster) canPass(x *Candidate) bool {
	if c.Consolidation[x.Pool] != policy.Balanced {
		return true
	}
	t := c.totalsOf(x.Pool)
	return t.price <= 0 || score(dollars(x.Price), x.Cost, t)
}

// approved reports whether every balanced pool lets cmd pass. What it saves is
// shared among the pools by what their nodes cost (balanced.go,
// EvaluateBalancedMove).
func (c *Cluster) approved(cmd *Command) bool {
	var whole float64
	for i := range cmd.Candidates {
		whole += dollars(cmd.Candidates[i].Price)
	}
	savings := whole
	if cmd.Replacement != nil {
		savings -= dollars(cmd.Replacement.Price)
	}
	for p := range c.Pools {
		if c.Consolidation[p] != policy.Balanced {
			continue
		}
		var price, cost float64
		n := 0
		for i := range cmd.Candidates {
			if x := &cmd.Candidates[i]; x.Pool == policy.PoolID(p) {
				price, cost, n = price+dollars(x.Price), cost+x.Cost, n+1
			}
		}
		if n == 0 {
			continue
		}
		part := savings
		if whole > 0 && n < len(cmd.Candidates) {
			part = float64(savings * (price / whole))
		}
		if !score(part, cost, c.totalsOf(policy.PoolID(p))) {
			return false
		}
	}
	return true
}
