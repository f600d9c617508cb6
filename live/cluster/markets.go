package cluster

import "github.com/spotter-dev/spotter/policy"

// A marketView is the market data of the newest snapshot.
type marketView struct {
	book       Book
	generation uint64 // of the book's identifiers

	// view is the newest snapshot, which is the one that is being built while Observe
	// runs: it holds the identifiers that are in force. It is only read once it was
	// returned.
	view *policy.Snapshot
}

// listed returns m, or None while no snapshot has the market.
func (v *marketView) listed(m policy.MarketID) policy.MarketID {
	if int(m) >= len(v.view.Markets) {
		return policy.None
	}
	return m
}

func (v *marketView) isSpot(m policy.MarketID) bool {
	return int(m) < len(v.view.Markets) && v.view.Markets[m].Capacity == policy.Spot
}
