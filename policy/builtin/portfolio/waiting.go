package portfolio

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// A waiting decides whether the pool buys nothing on demand while spot is refused, since
// its jobs have time to wait for it.
type waiting struct {
	*poolContext
	jobs     *jobs
	reclaims *reclaims
	choice   *shareChoice
	waits    bool
}

// read finds whether all that the pool is asked for is work of jobs that can wait: those
// with pods that have no node, or where there are none those at work, for whom the next
// node would be bought.
func (w *waiting) read() {
	p := w.pool
	w.waits = w.choice.share >= 1 && p.OnDemandFallback && p.Provisioner != policy.ProvisionerClusterAutoscaler && w.canWait()
}

// canWait reports whether every pod that a node would be bought for can wait for one.
func (w *waiting) canWait() bool {
	placed, pending := make([]bool, len(w.s.Templates)), make([]bool, len(w.s.Templates))
	for i := range w.e.pods.all {
		x := &w.e.pods.all[i]
		switch {
		case x.daemon || x.phase == policy.PodGone || x.phase == policy.PodTerminating:
		case x.at < 0:
			pending[x.template] = true
		case w.s.Nodes[x.at].Pool == w.pool.ID:
			placed[x.template] = true
		}
	}
	asked := pending
	if !slices.Contains(asked, true) {
		asked = placed
	}
	for i := range w.s.Templates {
		t := &w.s.Templates[i]
		if (placed[i] || pending[i]) && !ofJob(w.s, t) || asked[i] && w.jobs.slack(t) <= w.reserve(t) {
			return false
		}
	}
	return slices.Contains(asked, true)
}

// reserve returns the hours of slack that a job does not spend on waiting: for a decision
// that comes late, for one change to a node on demand and one back, and for the restarts
// expected if all that is left is done on spot. A job without slack has to stay on demand
// to its end also where spot is back, so that the restarts, which are what lets it use
// spot, go before waiting (Wu et al., Can't Be Late, NSDI 2024).
func (w *waiting) reserve(t *policy.Template) float64 {
	x := w.jobs.changeover(t)
	return policy.DefaultStep.Sub(0).Hours() + 2*x + float64(w.reclaims.hazard*float64(w.jobs.rest(t)*x))
}

// anySpot returns the spot markets of the pool of which a node costs less for the demand
// than the best on demand, also those that have refused: capacity comes back.
func (w *waiting) anySpot() []policy.MarketID {
	s, need := w.s, w.jobs.demand.orIdle()
	unit := func(id policy.MarketID) float64 {
		return w.e.costs[id] * need.LargestShare(s.Types[s.Markets[id].Type].Allocatable)
	}
	fixed := 0.0
	for _, id := range w.pool.Markets {
		if m := &s.Markets[id]; m.Capacity != policy.Spot && m.Offered {
			if x := unit(id); fixed == 0 || x < fixed {
				fixed = x
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(w.pool.Markets), func(id policy.MarketID) bool {
		m := &s.Markets[id]
		return m.Capacity != policy.Spot || !m.Offered || fixed > 0 && unit(id) >= fixed
	})
}

// withheld returns s with no fallback to on demand in the pools that wait.
func withheld(s *policy.Snapshot, states []*planState) *policy.Snapshot {
	if !slices.ContainsFunc(states, func(d *planState) bool { return d != nil && d.waiting.waits }) {
		return s
	}
	x := *s
	x.Pools = slices.Clone(s.Pools)
	for i, d := range states {
		if d != nil && d.waiting.waits {
			x.Pools[i].OnDemandFallback = false
		}
	}
	return &x
}
