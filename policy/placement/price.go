package placement

import (
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
)

// freePart divides the list price of a node that commitments pay for. Such a node is ranked at this
// small price rather than zero, so that of two packings that cost nothing the one with fewer and
// smaller nodes is preferred, which leaves more of the commitment unused.
const freePart = 1000

// offered returns the price by which a node of pool in market m is ranked: the marginal cost per
// hour after commitments, including fees. It applies to one node; the next one may cost more.
func offered(cover *billing.Coverage, s *policy.Snapshot, pool policy.PoolID, m policy.MarketID) policy.Money {
	if !cover.Covers(m) {
		return Added(cover, s, pool, m)
	}
	return max(cover.Marginal(m), s.Markets[m].OnDemand/freePart, 1) + s.Fees(pool, m)
}

// Added returns the marginal cost per hour of one more node of pool in market m after commitments,
// including fees.
func Added(cover *billing.Coverage, s *policy.Snapshot, pool policy.PoolID, m policy.MarketID) policy.Money {
	return cover.Marginal(m) + s.Fees(pool, m)
}

// Saved returns the savings per hour when n is removed, including its fees.
func Saved(cover *billing.Coverage, s *policy.Snapshot, n *policy.Node) policy.Money {
	return cover.Saving(n.Market) + s.Fees(n.Pool, n.Market)
}
