package cluster

import "github.com/spotter-dev/spotter/policy"

// A marketView contains the market data of the newest snapshot.
type marketView struct {
	book       Book
	generation uint64 // generation of the identifiers of the book

	// view is the newest snapshot; while Observe runs, the one that is being built. It contains the
	// current identifiers. It must not be modified once Observe has returned it.
	view *policy.Snapshot
}

// listed returns m, or None if no snapshot has the market yet.
func (v *marketView) listed(m policy.MarketID) policy.MarketID {
	if int(m) >= len(v.view.Markets) {
		return policy.None
	}
	return m
}

func (v *marketView) isSpot(m policy.MarketID) bool {
	return int(m) < len(v.view.Markets) && v.view.Markets[m].Capacity == policy.Spot
}
