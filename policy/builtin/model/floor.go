package model

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/scratch"
	"github.com/spotter-dev/spotter/policy/share"
	"github.com/spotter-dev/spotter/policy/workload"
)

// The weights of one pod more than a service can spare in a group of Spot nodes that are lost
// together. Smaller groups are lost more often, so they have a higher weight.
const (
	nodeWeight   = 4
	marketWeight = 2
	kindWeight   = 1
	zoneWeight   = 1
)

// borne is the number of pods of any service that may be lost together: one of two can be moved
// within the two minutes of a notice, and the other is replaced soon after.
const borne = 2

// raisedMost is the maximum number of nodes that move to on-demand at once.
const raisedMost = 6

// shareSteps is the number of steps to which the minimum Spot share below the floor is rounded, so
// that it does not change with every pod.
const shareSteps = 20

// A footing counts the pods of services on Spot.
type footing struct {
	// By workload: how many pods may be lost together, and how many pods are in the Spot market
	// that has the most of them.
	spare, fullest []int32

	// By workload and type, and by workload and zone: the number of pods on Spot.
	kinds, zone  []int32
	types, zones int
}

// read counts the pods of s. e must have read s.
func (f *footing) read(s *policy.Snapshot, e *workload.Exposure) {
	f.types, f.zones = len(s.Types), len(s.Zones)
	f.spare, f.fullest = scratch.Zeroed(f.spare, len(s.Workloads)), scratch.Zeroed(f.fullest, len(s.Workloads))
	f.kinds, f.zone = scratch.Zeroed(f.kinds, len(s.Workloads)*f.types), scratch.Zeroed(f.zone, len(s.Workloads)*f.zones)
	for i := range s.Workloads {
		if w := policy.WorkloadID(i); e.Tracks(w) {
			l := e.Loss(w)
			f.spare[w] = max(borne, min(l.Desired, l.Bound)-l.Required)
			f.fullest[w] = l.Market.Pods
		}
	}
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.Live() && onSpot(s, n) {
			f.stand(s, e, n)
		}
	}
}

// stand counts the pods of n as Spot pods. The node must have a market.
func (f *footing) stand(s *policy.Snapshot, e *workload.Exposure, n *policy.Node) {
	m := &s.Markets[n.Market]
	e.On(n.ID, func(w policy.WorkloadID, pods int32) {
		f.kinds[int(w)*f.types+int(m.Type)] += pods
		f.zone[int(w)*f.zones+int(m.Zone)] += pods
	})
}

func onSpot(s *policy.Snapshot, n *policy.Node) bool {
	return n.Market >= 0 && s.Markets[n.Market].Capacity == policy.Spot
}

// harm returns the weighted number of pods beyond what services can spare that would be lost with
// n, its market, its type or its zone, compared with n on-demand. An on-demand node is assumed to
// move to the Spot market that has the most pods of each service.
func (e *Policy) harm(s *policy.Snapshot, n *policy.Node) int32 {
	f, m, spot := &e.footing, &s.Markets[n.Market], onSpot(s, n)
	sum := int32(0)
	e.exposure.On(n.ID, func(w policy.WorkloadID, pods int32) {
		over := func(there int32) int32 {
			if !spot {
				there += pods
			}
			return max(0, there-f.spare[w]) - max(0, there-pods-f.spare[w])
		}
		market := f.fullest[w]
		if spot {
			market = e.exposure.Pods(w, workload.Group{Market: n.Market, Zone: policy.None})
		}
		sum += nodeWeight*max(0, pods-f.spare[w]) + marketWeight*over(market) +
			kindWeight*over(f.kinds[int(w)*f.types+int(m.Type)]) + zoneWeight*over(f.zone[int(w)*f.zones+int(m.Zone)])
	})
	return sum
}

// A post is a node with the harm of its loss and its size in units of the pool's share.
type post struct {
	node  policy.NodeID
	harm  int32
	units int64
}

// posts returns, for spot, the Spot nodes of a pool whose loss does harm, and otherwise its
// on-demand nodes, sorted by descending harm per unit of capacity.
func (e *Policy) posts(s *policy.Snapshot, pool policy.PoolID, spot bool) []post {
	list := e.list[:0]
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Pool != pool || !n.Usable() || n.ActedBy != policy.ActorNone || n.Market < 0 || onSpot(s, n) != spot ||
			n.DoNotDisrupt {
			continue
		}
		if harm := e.harm(s, n); harm > 0 || !spot {
			list = append(list, post{n.ID, harm, max(1, share.Units(s, pool, n.Market))})
		}
	}
	slices.SortFunc(list, func(a, b post) int {
		return cmp.Or(cmp.Compare(int64(b.harm)*a.units, int64(a.harm)*b.units),
			cmp.Compare(s.Nodes[a.node].Name, s.Nodes[b.node].Name))
	})
	e.list = list
	return list
}

// look reads the distribution of services, once per turn.
func (e *Policy) look(t *turn) {
	if t.read {
		return
	}
	t.read = true
	e.exposure.Read(t.s)
	if e.cfg.Floor > 0 {
		e.footing.read(t.s, &e.exposure)
	}
}

// floor returns how many units of a pool's share may be on-demand to protect services, within the
// limits of the pool's minimum share.
func (e *Policy) floor(p *policy.Pool, at placement.Balance) int64 {
	if !p.Levers.Launch {
		return 0
	}
	return int64(min(e.cfg.Floor, 1-p.Share.Min) * float64(at.Total))
}

// given returns the snapshot for the placer, in which the share of each pool is fixed to its
// target.
func (e *Policy) given(t *turn) *policy.Snapshot {
	e.pools = append(e.pools[:0], t.s.Pools...)
	for i := range t.courses {
		if c := &t.courses[i]; c.pool != nil && !c.pool.Share.Exact {
			e.pools[i].Share = policy.ShareRange{Min: c.memory.Target, Max: c.memory.Target, Target: c.memory.Target,
				HasTarget: true}
		}
	}
	view := *t.s
	view.Pools = e.pools
	if e.cfg.Floor > 0 {
		e.look(t)
		e.nodes = append(e.nodes[:0], t.s.Nodes...)
		e.keep(t, e.nodes)
		view.Nodes = e.nodes
	}
	return &view
}

// restore resets the targets in the memory, since the placer may have stored lower Spot shares
// because of the floor.
func (t *turn) restore() {
	for i := range t.courses {
		c := &t.courses[i]
		if c.pool == nil || c.pool.Share.Exact {
			continue
		}
		if m := t.memory.Pool(c.pool.Name); m.Target != c.memory.Target {
			m.Target, m.HasTarget = c.memory.Target, c.memory.HasTarget
			t.memory = t.memory.With(m)
		}
	}
}

// keep excludes on-demand nodes that protect services from the placer's moves, up to the floor, and
// lowers the minimum share of the pool accordingly. The placer can then move all other nodes to
// Spot, and no expensive node has to stay to keep the share. nodes and e.pools are the ones given
// to the placer. A node that would do no harm, with the nodes before it also on Spot, may move
// there.
func (e *Policy) keep(t *turn, nodes []policy.Node) {
	for i := range t.courses {
		c := &t.courses[i]
		if c.pool == nil {
			continue
		}
		at := placement.BalanceOf(t.s, c.pool.ID)
		slack := e.floor(c.pool, at)
		if slack == 0 {
			continue
		}
		kept := int64(0)
		for _, x := range slices.Backward(e.posts(t.s, c.pool.ID, false)) {
			n := &t.s.Nodes[x.node]
			if e.harm(t.s, n) == 0 {
				e.footing.stand(t.s, &e.exposure, n)
			} else if kept+x.units <= slack {
				nodes[n.ID].DoNotDisrupt = true
				kept += x.units
			}
		}
		c.kept = float64(kept) / float64(at.Total)
		x := &e.pools[i].Share
		x.Min = min(x.Min, max(c.pool.Share.Min, math.Round(shareSteps*(1-c.kept))/shareSteps))
	}
	e.footing.read(t.s, &e.exposure)
}

// raise plans on-demand replacements of the Spot nodes whose loss would do most harm, a few at a
// time, until the floor is reached.
func (e *Policy) raise(s *policy.Snapshot, p *policy.Pool, plan *policy.Plan) {
	at := placement.BalanceOf(s, p.ID)
	slack := e.floor(p, at) - (at.Total - at.Spot)
	if slack <= 0 {
		return
	}
	var offers []placement.Offer
	left := raisedMost
	e.moving = scratch.Zeroed(e.moving, len(s.Workloads))
	for _, x := range e.posts(s, p.ID, true) {
		if left == 0 {
			return
		}
		if x.units > slack || !e.movable(x.node) || slices.ContainsFunc(plan.Drains,
			func(d policy.Drain) bool { return d.Node == x.node }) {
			continue
		}
		if offers == nil {
			offers = placement.Offers(s, p.ID, policy.OnDemand)
		}
		if e.lift(s, p, x.node, offers, plan) {
			slack -= x.units
			left--
			e.exposure.On(x.node, func(w policy.WorkloadID, pods int32) { e.moving[w] += pods })
		}
	}
}

// movable reports whether node id may move together with the nodes already planned: no service has
// more pods moving than it can spare. Otherwise its disruption budget would let the pods move only
// one after another, and meanwhile no pod of the service could be evicted from a node under notice.
func (e *Policy) movable(id policy.NodeID) bool {
	ok := true
	e.exposure.On(id, func(w policy.WorkloadID, pods int32) {
		ok = ok && (e.moving[w] == 0 || e.moving[w]+pods <= e.footing.spare[w])
	})
	return ok
}

// lift plans to replace node id with the cheapest on-demand node in its zone that fits its pods,
// and reports whether there is one.
func (e *Policy) lift(s *policy.Snapshot, p *policy.Pool, id policy.NodeID, offers []placement.Offer,
	plan *policy.Plan) bool {
	n := &s.Nodes[id]
	own := &s.Markets[n.Market]
	need := policy.Resources{}
	for i := range s.Pods {
		if q := &s.Pods[i]; q.Node == id && q.Phase != policy.PodGone {
			need = need.Plus(s.Templates[q.Template].Requests)
		}
	}
	var good []*placement.Offer
	for i := range offers {
		if o := &offers[i]; s.Markets[o.Market].Zone == own.Zone && s.Markets[o.Market].Region == own.Region &&
			need.Within(o.Allocatable) {
			good = append(good, o)
		}
	}
	if len(good) == 0 {
		return false
	}
	slices.SortFunc(good, func(a, b *placement.Offer) int {
		return cmp.Or(cmp.Compare(a.Price, b.Price), cmp.Compare(a.Market, b.Market))
	})
	var markets []policy.MarketID
	for _, o := range good[:min(len(good), spreadMarkets)] {
		if float64(o.Price) <= float64(good[0].Price)*spreadDearer {
			markets = append(markets, o.Market)
		}
	}
	why := policy.Why{
		Reason: policy.ReasonRisk, Before: own.Charge() + s.Fees(p.ID, own.ID), After: good[0].Price, RunnerUp: "stay",
		Text: fmt.Sprintf("this node of %s could be lost together with others, taking more pods than their services can spare", own.Name),
	}
	token := policy.Token(s.Now, p.Name, n.Name, 0)
	plan.Launches = append(plan.Launches, policy.Launch{Token: token, Pool: p.ID, Markets: markets, Replaces: id,
		Bid: placement.BidIn(&s.Markets[markets[0]]), Why: why})
	plan.Drains = append(plan.Drains, policy.Drain{Node: id, After: []string{token}, Gentle: true, Why: why})
	return true
}
