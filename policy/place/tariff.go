package place

import "github.com/spotter-dev/spotter/policy"

// freePart is the part of its list price at which a node is offered that costs
// nothing more, since it was paid for in advance: of two ways to do without money
// the one with fewer and smaller nodes is then the cheaper one, and it leaves more
// of what was paid for to others.
const freePart = 1000

// offered returns the price at which a node of market m is offered when nodes are
// ranked: what one more costs beyond what was paid for in advance. It holds for
// one node; when that is bought the next may cost more.
func offered(cover *policy.Coverage, s *policy.Snapshot, m policy.MarketID) policy.Money {
	if !cover.Covers(m) {
		return cover.Marginal(m)
	}
	return max(cover.Marginal(m), s.Markets[m].OnDemand/freePart, 1)
}
