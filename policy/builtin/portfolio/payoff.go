package portfolio

import (
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/workload"
)

// A payoff computes what moves save and what they cost, in dollars over the time that a saving
// lasts. It has no side effects.
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

// pays reports whether the saving of t exceeds its costs and the required edge.
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

// savings returns the saving of t in dollars while it lasts. The part of it that is the premium of
// the node's market over the best market lasts long, the rest until the demand changes.
func (p *payoff) savings(t *trial) float64 {
	return p.lasts(t.node, (t.before - t.after - t.risk).Float())
}

// lasts returns the total in dollars of a saving, in dollars per hour, at node n while it lasts.
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

// settled is how long Spot is assumed to stay cheaper than on-demand.
const settled = 72 * time.Hour

// overlapHours is how long both a node and its replacement are paid for.
const overlapHours = 0.05

// recommended returns the saving in dollars of leaving a node now that the provider recommends
// leaving: the fraction of recommendations that come true times the cost of suddenly losing its
// pods.
func (p *payoff) recommended(n *policy.Node, pods []policy.Pod) float64 {
	if n.Recommended == 0 || p.s.Now.Sub(n.Recommended) > recommendedFor {
		return 0
	}
	return p.lossTogether(pods) * cometrue
}

// lossTogether returns the cost in dollars of suddenly losing pods that run on one node: each is
// missing, and a workload pays the penalty of an outage for those that it cannot spare.
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

// recommendedFor is how long a recommendation is relevant, and cometrue the fraction of
// recommendations that the provider follows with a reclaim in that time: users report many more
// recommendations than reclaims.
const (
	recommendedFor = time.Hour
	cometrue       = 0.25
)

// moving returns the cost of moving pods, in dollars.
func (p *payoff) moving(pods []policy.Pod) float64 {
	cost := 0.0
	for i := range pods {
		if w := p.s.Templates[pods[i].Template].Workload; w >= 0 {
			cost += p.costs.each[w]
		}
	}
	return cost
}

// A moveCosts contains the costs of moving pods, in dollars. Slices are by workload.
type moveCosts struct {
	each    []float64 // cost of moving a pod
	slack   []int32   // number of pods that may be missing
	penalty []float64 // for each pod that is missing beyond slack
}

// moveCostsOf returns the costs of moving pods that are ready now. A pod is missing until it is
// ready elsewhere, and if its workload can spare none that is an outage.
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
		case s.Workloads[w].Kind == policy.KindJob: // its work counts; see redone
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

// restartDelay is the time, in addition to its start-up, until an evicted pod is ready elsewhere.
const restartDelay = 20 * time.Second

// What is lost with a market or a zone is priced, not forbidden: a workload pays the penalty of an
// outage for each pod there that it cannot spare, as often as such a loss is expected. So a small
// pool may run on two nodes, but not after it has had shocks.

// A moveRisk computes the risk that tentative moves add, at the cost of missing pods. since and
// instead leave the tentative moves as they were.
type moveRisk struct {
	*poolContext
	reclaims *reclaims
	costs    *moveCosts
}

// An addedRisk is the additional expected loss, in dollars per hour, and the group and the workload
// with the largest part of it; the workload is None if no part is positive.
type addedRisk struct {
	sum      float64
	group    workload.Group
	workload policy.WorkloadID
	most     float64
}

// add adds the given dollars per hour, which w is expected to lose with g.
func (a *addedRisk) add(dollars float64, w policy.WorkloadID, g workload.Group) {
	a.sum += dollars
	if dollars > a.most {
		a.most, a.group, a.workload = dollars, g, w
	}
}

// since returns the risk that the tentative moves from the n-th on add.
func (r *moveRisk) since(n int) addedRisk {
	moves := slices.Clone(r.e.moved[n:])
	r.e.undo(n)
	return r.of(moves)
}

// of moves pods tentatively, and returns the risk that this adds.
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

// between adds the change of risk when a pod of w moves from one group to another.
func (r *moveRisk) between(a *addedRisk, w policy.WorkloadID, from, to workload.Group) {
	slack := max(0, r.costs.slack[w])
	if pen := float64(r.costs.penalty[w] * r.reclaims.losses(from)); pen > 0 && r.e.exposure.Pods(w, from) > slack {
		a.add(-pen, w, from)
	}
	if pen := float64(r.costs.penalty[w] * r.reclaims.losses(to)); pen > 0 && r.e.exposure.Pods(w, to) >= slack {
		a.add(pen, w, to)
	}
}

// instead returns the additional risk, in dollars per hour, if the pods of there, which have moved
// tentatively, moved to market id instead.
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
	r.e.moved = r.e.moved[:began] // the moves of there are already in it
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

// A podMove is a pod with its tentative market.
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

// undo undoes all moves except the first n.
func (e *Policy) undo(n int) {
	for k := len(e.moved) - 1; k >= n; k-- {
		x := &e.moved[k]
		e.exposure.MoveOf(x.workload, -1, x.from, x.to)
		e.spread.move(*x, -1)
	}
	e.moved = e.moved[:n]
}
