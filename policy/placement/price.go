package placement

import (
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
)

// freePart divides the list price of a node that commitments pay for: it is ranked at
// that small price and not at zero, so that of two packings that cost nothing the one
// with fewer and smaller nodes is preferred and leaves more of the commitment unused.
const freePart = 1000

// offered returns the price by which a node of pool in market m is ranked: what one more
// costs beyond commitments, fees included. It holds for one node; the next may cost more.
func offered(cover *billing.Coverage, s *policy.Snapshot, pool policy.PoolID, m policy.MarketID) policy.Money {
	if !cover.Covers(m) {
		return Added(cover, s, pool, m)
	}
	return max(cover.Marginal(m), s.Markets[m].OnDemand/freePart, 1) + s.Fees(pool, m)
}

// Added returns what one more node of pool in market m costs per hour, with its fees and
// beyond what commitments pay.
func Added(cover *billing.Coverage, s *policy.Snapshot, pool policy.PoolID, m policy.MarketID) policy.Money {
	return cover.Marginal(m) + s.Fees(pool, m)
}

// Saved returns what is saved per hour when n goes, its fees included.
func Saved(cover *billing.Coverage, s *policy.Snapshot, n *policy.Node) policy.Money {
	return cover.Saving(n.Market) + s.Fees(n.Pool, n.Market)
}
