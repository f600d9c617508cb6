package karpenter

import "github.com/spotter-dev/spotter/policy"

// balancedK is the divisor in the rule of the Balanced mode: a command passes if the fraction of
// the pool's cost that it saves is at least 1/balancedK of the fraction of the pool's disruption
// cost that it causes (balanced.go; v1.BalancedK is 2).
const balancedK = 2

// totals are the sums of price and disruption cost over all nodes of a pool.
type totals struct{ price, cost float64 }

// totalsOf returns the sums over the nodes of pool p, including nodes that are not candidates
// (balanced.go, computeNodePoolTotals).
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

// score reports whether savings justify the disruption cost in a pool with totals t.
func score(savings, cost float64, t totals) bool {
	if t.price <= 0 || t.cost <= 0 || savings <= 0 {
		return false
	}
	return savings/t.price/(cost/t.cost) >= 1.0/balancedK
}

// canPass reports whether the removal of x without a replacement would pass. If it does not, no
// command for x does (balanced.go, CanPassThreshold).
func (c *Cluster) canPass(x *Candidate) bool {
	if c.Consolidation[x.Pool] != policy.Balanced {
		return true
	}
	t := c.totalsOf(x.Pool)
	return t.price <= 0 || score(dollars(x.Price), x.Cost, t)
}

// approved reports whether every Balanced pool approves cmd. The savings are divided among the
// pools in proportion to the prices of their nodes (balanced.go, EvaluateBalancedMove).
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
