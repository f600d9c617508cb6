package nodepools

import (
	"fmt"
	"slices"

	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/sim/karpenter"
)

// CheckAll checks the invariants of Karpenter's controllers.
func (k *Karpenter) CheckAll() error { return k.consolidation.checkOffers() }

// checkOffers checks that the cached offers for Karpenter's replacements are still current.
func (k *consolidation) checkOffers() error {
	if k.Clock.Now >= k.offers.until {
		return nil
	}
	now := k.replacements(nil)
	same := func(a, b placement.Offer) bool { return a.Market == b.Market && a.Price == b.Price && a.Pool == b.Pool }
	if !slices.EqualFunc(k.offers.list, now, same) {
		return fmt.Errorf("%d offers are kept for replacements, which are %d others now", len(k.offers.list), len(now))
	}
	return nil
}

// checkCandidates checks that the cached candidates for disruption equal the candidates that a
// controller without a cache finds.
func (k *consolidation) checkCandidates(c *karpenter.Cluster) {
	whole, fresh := *c, karpenter.Disruptor{}
	whole.Tracked = false
	for _, m := range [...]karpenter.Method{karpenter.Emptiness, karpenter.SingleNode} {
		kept, want := k.disruptor.Candidates(c, m), fresh.Candidates(&whole, m)
		if !slices.Equal(kept, want) {
			k.Fail(fmt.Errorf("%v are kept as candidates for disruption, which are %v", kept, want))
		}
	}
}
