package portfolio

import (
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// A payoff holds what moves save and what they cost, in dollars over the time that a saving
// lasts. It changes nothing.
type payoff struct {
	*poolContext
	prices  *prices
	demand  *demand
	jobs    *jobs
	offers  *marketOffers
	balance *poolBalance
	costs   *moveCosts
}

// pays reports whether the saving of t is worth its disturbance.
func (p *payoff) pays(t *trial) bool {
	edge := p.e.cfg.Edge
	if p.pool.SavingsThreshold > 0 {
		edge = p.pool.SavingsThreshold
	}
	saving := t.before - t.after - t.risk
	if saving < t.before.Times(edge) && p.recommended(t.node, t.pods) == 0 || p.jobs.tight(t.pods) {
		return false
	}
	cost := t.moving + t.after.Float()*overlapHours + p.jobs.redone(t.pods)
	return p.jobs.within(p.savings(t), saving.Float(), t.pods)+p.recommended(t.node, t.pods) > cost
}

// savings returns what t saves while the saving lasts, in dollars. What the
// node's market asks above the best one is saved for long, the rest until the
// demand is another.
func (p *payoff) savings(t *trial) float64 {
	return p.lasts(t.node, (t.before - t.after - t.risk).Float())
}

// lasts returns what a saving of so many dollars an hour at node n comes to while
// it lasts.
func (p *payoff) lasts(n *policy.Node, saving float64) float64 {
	if saving < 0 {
		return float64(saving * p.e.cfg.Holding.Hours())
	}
	lasting, spot := p.e.cfg.Lasting, p.balance.spotFor(n)
	if !p.balance.isSpot(n) && spot {
		lasting = settled
	}
	value := p.offers.valueFor(spot)
	premium := min(max(0, p.prices.keeping(n)-value.of(n.Allocatable.Minus(p.demand.daemons))), saving)
	return float64(premium*lasting.Hours()) + float64((saving-premium)*p.e.cfg.Holding.Hours())
}

// settled is how long it lasts that spot costs less than on demand.
const settled = 72 * time.Hour

// overlapHours is how long a node and its replacement are paid for both.
const overlapHours = 0.05

// recommended returns what it saves in dollars to leave a node now that the
// provider recommends to leave: the part of recommendations that come true times
// what the sudden loss of its pods would cost.
func (p *payoff) recommended(n *policy.Node, pods []policy.Pod) float64 {
	if n.Recommended == 0 || p.s.Now.Sub(n.Recommended) > recommendedFor {
		return 0
	}
	return p.lossTogether(pods) * cometrue
}

// lossTogether returns what the sudden loss of pods that stand on one node costs in
// dollars: each is missed, and a workload pays the penalty of an outage for those that it
// cannot spare.
func (p *payoff) lossTogether(pods []policy.Pod) float64 {
	count := make([]int32, len(p.s.Workloads))
	loss := 0.0
	for i := range pods {
		t := &p.s.Templates[pods[i].Template]
		if t.Workload < 0 {
			continue
		}
		if p.s.Workloads[t.Workload].Kind == policy.KindJob {
			loss += p.e.losses.of(p.s, &pods[i])
			continue
		}
		loss += p.e.losses.missed(p.e.losses.values[t.ID], p.e.losses.minutes[t.ID])
		if count[t.Workload]++; count[t.Workload] > max(0, p.costs.slack[t.Workload]) {
			loss += float64(p.e.losses.values[t.ID] * t.PenaltyHours())
		}
	}
	return loss
}

// recommendedFor is how long a recommendation says something of a node, and
// cometrue the part of recommendations that the provider follows with a reclaim in
// that time: users report many more than reclaims.
const (
	recommendedFor = time.Hour
	cometrue       = 0.25
)

// moving returns what it costs in dollars to move pods.
func (p *payoff) moving(pods []policy.Pod) float64 {
	cost := 0.0
	for i := range pods {
		if w := p.s.Templates[pods[i].Template].Workload; w >= 0 {
			cost += p.costs.each[w]
		}
	}
	return cost
}
