package portfolio

import (
	"math"
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// A waiting decides what a pool whose pods are all of jobs buys while they have time, and
// when they have none. waits says that nothing is bought on demand while spot is refused,
// urgent that no more spot is bought. Other pools do neither.
type waiting struct {
	*poolContext
	jobs          *jobs
	reclaims      *reclaims
	choice        *shareChoice
	waits, urgent bool
}

// read finds whether the jobs that the next node would be bought for have time: those with
// pods that have no node, or where there are none all at work.
func (w *waiting) read() {
	p := w.pool
	if w.choice.share < 1 || !p.OnDemandFallback || p.Provisioner == policy.ProvisionerClusterAutoscaler {
		return
	}
	n := len(w.s.Templates)
	placed, pending, stays := make([]int, n), make([]int, n), make([]bool, n)
	for i := range w.e.pods.all {
		x := &w.e.pods.all[i]
		switch {
		case x.daemon || x.phase == policy.PodGone || x.phase == policy.PodTerminating:
			continue
		case x.at < 0:
			pending[x.template]++
		case w.s.Nodes[x.at].Pool == w.pool.ID:
			placed[x.template]++
		default:
			continue
		}
		if !ofJob(w.s, &w.s.Templates[x.template]) {
			return
		}
		stays[x.template] = stays[x.template] || x.doNotDisrupt
	}
	asked := pending
	if !slices.ContainsFunc(asked, func(n int) bool { return n > 0 }) {
		asked = placed
	}
	w.waits = slices.ContainsFunc(asked, func(n int) bool { return n > 0 })
	for i := range w.s.Templates {
		if t := &w.s.Templates[i]; asked[i] > 0 {
			spare := w.jobs.spare(t)
			if pending[i] == 0 {
				spare -= w.jobs.changeover(t) // the next node is bought for what is lost
			}
			w.waits = w.waits && spare > w.reserve(t, stays[i]) && !w.idles(t, placed[i], pending[i])
			w.urgent = w.urgent || t.Checkpoint > 0 && spare < 0 && !math.IsInf(spare, -1)
		}
	}
}

// idles reports whether an hour of waiting for the pending pods of a gang costs more than it
// saves: the nodes of the others are paid for and do nothing.
func (w *waiting) idles(t *policy.Template, placed, pending int) bool {
	spot, fixed := w.e.losses.redo[t.ID], w.e.losses.values[t.ID]
	return t.Gang > 0 && pending > 0 && float64(float64(placed)*spot) > float64(float64(pending)*(fixed-spot))
}

// step is how late a decision may come, in hours.
var step = policy.DefaultStep.Sub(0).Hours()

// reserve returns the hours that a job could spare and does not spend on waiting. One that may
// be moved keeps what it loses if all that is left is done on spot, a change to a node on
// demand and one back for each loss: without them it would have to stay on demand to its end
// also where spot is back (Wu et al., Can't Be Late, NSDI 2024). One that stays where it is
// does so anyway.
func (w *waiting) reserve(t *policy.Template, stays bool) float64 {
	if stays {
		return 0
	}
	return float64(2*w.jobs.hazard()*w.jobs.losses(t)) * float64(w.jobs.rest(t)*w.jobs.changeover(t))
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
