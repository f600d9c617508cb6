package portfolio

import (
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/workload"
)

// A payoff holds what moves save and what they cost, in dollars over the time that a saving
// lasts. It changes nothing.
type payoff struct {
	*poolContext
	prices  *prices
	demand  *demand
	jobs    *jobs
	perPod  *podLosses
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

// lasts returns the total of a saving, in dollars an hour, at node n while it lasts.
func (p *payoff) lasts(n *policy.Node, saving float64) float64 {
	if saving < 0 {
		return float64(saving * p.e.cfg.Holding.Hours())
	}
	lasting, spot := p.e.cfg.Lasting, p.balance.spotFor(n)
	if !p.balance.isSpot(n) && spot {
		lasting = settled
	}
	value := p.prices.evaluate(spot)
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
			loss += p.perPod.of(p.s, &pods[i])
			continue
		}
		loss += p.perPod.missed(p.perPod.values[t.ID], p.perPod.minutes[t.ID])
		if count[t.Workload]++; count[t.Workload] > max(0, p.costs.slack[t.Workload]) {
			loss += float64(p.perPod.values[t.ID] * t.PenaltyHours())
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

// moveCosts is what it costs in dollars that pods of a workload are moved. Slices are by
// workload, and as long as there are workloads.
type moveCosts struct {
	each    []float64 // what the move of a pod costs
	slack   []int32   // pods that may be missing
	penalty []float64 // for a pod that may not be missing and is
}

// moveCostsOf reads what it costs that pods are moved which are ready now. A pod is missed
// until it serves elsewhere, and where its workload can spare none that is an outage.
func moveCostsOf(s *policy.Snapshot, e *Policy, perPod *podLosses) moveCosts {
	n := len(s.Workloads)
	c := moveCosts{each: make([]float64, n), slack: make([]int32, n), penalty: make([]float64, n)}
	minutes, ready, unstated := make([]float64, n), make([]int32, n), false
	for i, pods := range e.pods.ready {
		if t := &s.Templates[i]; t.Workload >= 0 {
			ready[t.Workload] += pods
			unstated = unstated || t.Startup == 0 && pods > 0
		}
	}
	for i := 0; unstated && i < len(e.pods.all); i++ {
		p := &e.pods.all[i]
		if !p.bound || p.daemon || p.phase != policy.PodReady {
			continue
		}
		if t := &s.Templates[p.template]; t.Workload >= 0 && t.Startup == 0 {
			minutes[t.Workload] = max(minutes[t.Workload], (s.Pods[i].ReadySince.Sub(s.Pods[i].Bound) + restartDelay).Minutes())
		}
	}
	for i := range s.Templates {
		t := &s.Templates[i]
		w := t.Workload
		if w < 0 {
			continue
		}
		value := perPod.values[t.ID]
		if t.Startup > 0 {
			minutes[w] = (t.Startup + restartDelay).Minutes()
		}
		switch {
		case s.Workloads[w].Kind == policy.KindJob: // its work counts, see redone
		case t.OutageCost > 0:
			c.penalty[w] = float64(t.OutageCost.Float()*minutes[w]) / 60
		default:
			c.penalty[w] = float64(value * t.PenaltyHours())
		}
		c.slack[w] = ready[w] - workload.Required(s, t, s.Workloads[w].Replicas)
		c.each[w] = perPod.missed(value, minutes[w])
		if s.Workloads[w].Kind == policy.KindJob {
			c.each[w] = float64(perPod.redo[t.ID]*minutes[w]) / 60 // only its node is paid for while it starts
		}
		if c.slack[w] < 1 {
			c.each[w] += c.penalty[w]
		}
	}
	return c
}

// restartDelay is the time, in addition to its start-up, until an evicted pod serves again
// elsewhere.
const restartDelay = 20 * time.Second

// What is lost with a market or a zone is priced, not forbidden: a workload pays the
// penalty of an outage for each pod there that it cannot spare, as often as such a loss is
// expected. So a small pool may stand on two nodes, and one that has met shocks may not.

// A moveRisk holds what tentative moves put at risk, at the cost of missed pods. When since and
// instead return, the tentative moves are those from before.
type moveRisk struct {
	*poolContext
	reclaims *reclaims
	costs    *moveCosts
}

// An addedRisk is what is expected to be lost more, in dollars an hour, and where most of
// it: a group and a workload there, or None.
type addedRisk struct {
	sum      float64
	group    workload.Group
	workload policy.WorkloadID
	most     float64
}

// add counts dollars an hour that w is expected to lose more with g.
func (a *addedRisk) add(dollars float64, w policy.WorkloadID, g workload.Group) {
	a.sum += dollars
	if dollars > a.most {
		a.most, a.group, a.workload = dollars, g, w
	}
}

// since returns what is put at risk by the tentative moves from the n-th on.
func (r *moveRisk) since(n int) addedRisk {
	moves := slices.Clone(r.e.moved[n:])
	r.e.undo(n)
	return r.of(moves)
}

// of moves pods tentatively, and returns what that puts at risk.
func (r *moveRisk) of(moves []podMove) addedRisk {
	a := addedRisk{workload: policy.None}
	for _, x := range moves {
		if w := x.workload; r.e.exposure.Tracks(w) {
			from, to := r.s.Nodes[x.from].Market, x.to
			if from != to {
				r.between(&a, w, workload.Group{Market: from, Zone: policy.None}, workload.Group{Market: to, Zone: policy.None})
			}
			if f, t := zoneOf(r.s, from), zoneOf(r.s, to); f != t {
				r.between(&a, w, workload.Group{Market: policy.None, Zone: f}, workload.Group{Market: policy.None, Zone: t})
			}
		}
		r.e.move(x)
	}
	return a
}

// between adds what is put at risk when a pod of w goes from one group to another.
func (r *moveRisk) between(a *addedRisk, w policy.WorkloadID, from, to workload.Group) {
	slack := max(0, r.costs.slack[w])
	if pen := float64(r.costs.penalty[w] * r.reclaims.losses(from)); pen > 0 && r.e.exposure.Pods(w, from) > slack {
		a.add(-pen, w, from)
	}
	if pen := float64(r.costs.penalty[w] * r.reclaims.losses(to)); pen > 0 && r.e.exposure.Pods(w, to) >= slack {
		a.add(pen, w, to)
	}
}

// instead returns the additional risk, in dollars an hour, if the pods of there, which have moved
// tentatively, went to market id.
func (r *moveRisk) instead(there []podMove, id policy.MarketID) float64 {
	began := len(r.e.moved)
	instead := slices.Clone(there)
	for i, x := range there {
		r.e.exposure.MoveOf(x.workload, -1, x.from, x.to)
		instead[i].to = id
	}
	sum := r.of(instead).sum
	r.e.undo(began)
	sum -= r.of(there).sum
	r.e.moved = r.e.moved[:began] // those of there are already in it
	return sum
}

// inGroup reports whether a node of market id is lost with g.
func inGroup(s *policy.Snapshot, g workload.Group, id policy.MarketID) bool {
	if g.Market >= 0 {
		return id == g.Market
	}
	return s.Markets[id].Zone == g.Zone
}

// zoneOf returns the zone of market id, or None.
func zoneOf(s *policy.Snapshot, id policy.MarketID) policy.ZoneID {
	if id < 0 {
		return policy.None
	}
	return s.Markets[id].Zone
}

// A podMove is a pod with a new tentative place.
type podMove struct {
	workload policy.WorkloadID
	from     policy.NodeID
	to       policy.MarketID
}

// move moves a pod tentatively.
func (e *Policy) move(x podMove) {
	e.exposure.MoveOf(x.workload, 1, x.from, x.to)
	e.spread.move(x, 1)
	e.moved = append(e.moved, x)
}

// undo takes back all moves but the first n.
func (e *Policy) undo(n int) {
	for k := len(e.moved) - 1; k >= n; k-- {
		x := &e.moved[k]
		e.exposure.MoveOf(x.workload, -1, x.from, x.to)
		e.spread.move(*x, -1)
	}
	e.moved = e.moved[:n]
}
