package placement

import (
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
)

// freePart divides the list price of a node that commitments pay for: it is ranked at
// that small price and not at zero, so that of two packings that cost nothing the one
// with fewer and smaller nodes is preferred and leaves more of the commitment unused.
const freePart = 1000

// offered returns the price by which a node of market m is ranked: what one more
// costs beyond commitments. It holds for one node; the next may cost more.
func offered(cover *billing.Coverage, s *policy.Snapshot, m policy.MarketID) policy.Money {
	if !cover.Covers(m) {
		return cover.Marginal(m)
	}
	return max(cover.Marginal(m), s.Markets[m].OnDemand/freePart, 1)
}
