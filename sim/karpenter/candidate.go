package karpenter

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// A Candidate is a node that may be disrupted.
type Candidate struct {
	Node policy.NodeID
	Pool policy.PoolID

	// Price is what the node costs per hour.
	Price policy.Money

	// Cost is what disrupting it costs: 1 for the node, and for every pod that has
	// to find another place its eviction cost where that is above 0 (types.go,
	// computeRescheduleDisruptionCost).
	Cost float64

	// ratio is the price, in dollars, per unit of disruption (types.go,
	// SavingsRatio).
	ratio  float64
	market policy.MarketID
}

// Ratio is the price, in dollars, per unit of disruption, by which candidates are
// ordered.
func (x *Candidate) Ratio() float64 { return x.ratio }

// Empty reports whether no pod of the node costs anything to move (types.go,
// IsEmpty).
func (x *Candidate) Empty() bool { return x.Cost <= nodeCost }

// dollars is m as Karpenter reckons prices, so that quotients round as its do.
func dollars(m policy.Money) float64 { return float64(m) / 1e6 }

// nodeCost is the cost of disrupting any node (types.go, PerNodeBaseDisruptionCost).
const nodeCost = 1.0

// evictionCost is the cost of evicting p: 1, and a part of its deletion cost and
// its priority (pkg/utils/disruption/disruption.go, EvictionCost).
func evictionCost(p *policy.Pod, t *policy.Template) float64 {
	cost := 1.0
	cost += float64(p.DeletionCost) / (1 << 27)
	cost += float64(t.Priority) / (1 << 25)
	return min(max(cost, -10), 10)
}

// reschedulable reports whether p must find another place when its node goes: it
// is no DaemonSet's, and not ending unless a StatefulSet makes it anew
// (pkg/utils/pod/scheduling.go, IsReschedulable).
func (c *Cluster) reschedulable(p *policy.Pod) bool {
	t := &c.Templates[p.Template]
	return !t.DaemonSet && (p.Phase != policy.PodTerminating || c.Kinds[t.Workload] == policy.KindStatefulSet)
}

// cost is that of disrupting n.
func (c *Cluster) cost(n policy.NodeID) float64 {
	cost := nodeCost
	for _, id := range c.Space.Pods(n) {
		if p := &c.Pods[id]; c.reschedulable(p) {
			cost += max(0, evictionCost(p, &c.Templates[p.Template]))
		}
	}
	return cost
}

// Candidates returns the candidates of a method, in order. They are valid until the
// next call of a method of d.
func (d *Disruptor) Candidates(c *Cluster, m Method) []Candidate {
	d.gather(c)
	if m == Emptiness {
		return d.empty
	}
	return d.used
}

// A block is why a node is no candidate.
type block uint8

const (
	free      block = iota
	never           // not ours, not initialized, or going already
	nominated       // until a known time, or until the pod has come
	young           // until consolidateAfter has passed
)

// blocked says whether n itself may be disrupted by consolidation (state/statenode.go,
// ValidateNodeDisruptable; the condition Consolidatable,
// nodeclaim/disruption/consolidation.go).
func (c *Cluster) blocked(n *policy.Node) block {
	switch {
	case !c.managed(n.Pool) || n.Phase != policy.NodeInitialized || n.DoNotDisrupt ||
		n.ActedBy != policy.ActorNone || n.ReclaimAt != 0 || c.Consolidation[n.Pool] == policy.ConsolidateNever:
		return never
	case c.View.NominatedUntil(n.ID) > c.Now:
		return nominated
	case c.underConsolidateAfter(n):
		return young
	}
	return free
}

// A nodeCache is what the pods of a node mean for its disruption, as long as they are
// the same.
type nodeCache struct {
	version  uint64
	known    bool
	held     bool // a pod is never evicted
	cost     float64
	pdbs     []policy.PDBID   // those that must allow an eviction
	movers   []alike          // that must find another place
	need     policy.Resources // of these in all
	cpu      int64            // the smallest request of one of them
	starting bool             // one of them may come to nodes under consolidateAfter
}

// An alike is how many pods of one template there are.
type alike struct {
	template policy.TemplateID
	n        int32
}

// about returns what the pods of n mean.
func (d *Disruptor) about(c *Cluster, n policy.NodeID) *nodeCache {
	for len(d.cache) <= int(n) {
		d.cache = append(d.cache, nodeCache{})
	}
	x, version := &d.cache[n], c.View.PodsVersion(n)
	if x.known && x.version == version {
		return x
	}
	*x = nodeCache{version: version, known: true, cost: c.cost(n), pdbs: x.pdbs[:0], movers: x.movers[:0], cpu: math.MaxInt64}
	for _, id := range c.Space.Pods(n) {
		b, ok := c.evictable(&c.Pods[id])
		x.held = x.held || !ok
		if b >= 0 && !slices.Contains(x.pdbs, b) {
			x.pdbs = append(x.pdbs, b)
		}
		if p := &c.Pods[id]; c.reschedulable(p) {
			r := &c.Templates[p.Template].Requests
			x.cpu, x.need = min(x.cpu, r.CPU), x.need.Plus(*r)
			x.starting = x.starting || p.Phase == policy.PodStarting
			x.count(p.Template)
		}
	}
	return x
}

func (x *nodeCache) count(t policy.TemplateID) {
	for i := range x.movers {
		if x.movers[i].template == t {
			x.movers[i].n++
			return
		}
	}
	x.movers = append(x.movers, alike{t, 1})
}

// disruptable reports whether all pods of a node may be evicted now, one by one.
func (x *nodeCache) disruptable(c *Cluster) bool {
	return !x.held && !slices.ContainsFunc(x.pdbs, func(b policy.PDBID) bool { return c.PDBs[b].Allowed <= 0 })
}

// evictable reports whether p is ever evicted, and which budget must allow it, -1 for
// none (state/statenode.go, ValidatePodsDisruptable; pkg/utils/pdb, CanEvictPods). A pod
// that tolerates Karpenter's taint is not evicted, so that no budget keeps its node.
func (c *Cluster) evictable(p *policy.Pod) (policy.PDBID, bool) {
	if p.Phase == policy.PodTerminating {
		return -1, true
	}
	if p.DoNotDisrupt {
		return -1, false
	}
	t := &c.Templates[p.Template]
	switch {
	case len(t.PDBs) == 0 || toleratesDisrupted(t):
		return -1, true
	case len(t.PDBs) > 1:
		return -1, false // the eviction API refuses such pods
	case c.PDBs[t.PDBs[0]].AlwaysAllowUnhealthy && p.Phase != policy.PodReady:
		return -1, true
	}
	return t.PDBs[0], true
}

// taintDisrupted is what Karpenter puts on nodes that it disrupts, without a value
// and with effect NoSchedule.
const taintDisrupted = "karpenter.sh/disrupted"

func toleratesDisrupted(t *policy.Template) bool {
	return slices.ContainsFunc(t.Tolerations, func(l policy.Toleration) bool {
		return (l.Key == "" && l.Exists || l.Key == taintDisrupted) && (l.Exists || l.Value == "") &&
			(l.Effect == policy.EffectAny || l.Effect == policy.NoSchedule)
	})
}

// gather fills d with the candidates of consolidation: the empty ones and the
// others, those first that cost most for what their disruption costs
// (consolidation.go, sortCandidates). Equal ones stand by node.
func (d *Disruptor) gather(c *Cluster) {
	d.marks.next(len(c.Nodes))
	d.nodes = d.nodes[:0]
	if flipped := d.readBudgets(c); d.remembers(c) {
		d.changed(c, flipped)
	} else {
		d.empty, d.used = d.empty[:0], d.used[:0]
		for _, id := range c.Order {
			d.reread(id)
		}
		clear(d.kept)
	}
	gone := func(x Candidate) bool { return d.marks.has(x.Node) }
	d.empty, d.used = slices.DeleteFunc(d.empty, gone), slices.DeleteFunc(d.used, gone)
	d.waiting = d.waiting[:0] // all of them are read anew
	for len(d.kept) < len(c.Nodes) {
		d.kept = append(d.kept, false)
	}
	empty, used := len(d.empty), len(d.used)
	for _, id := range d.nodes {
		d.read(c, id)
	}
	d.merge(c, d.empty, empty)
	d.merge(c, d.used, used)
	d.due = [2]policy.Time{}
	for _, w := range d.waiting {
		if due := &d.due[w.method]; *due == 0 || w.at < *due {
			*due = w.at
		}
	}
	d.held = slices.Contains(d.kept, true)
}

// A wait is a node that is no candidate before a time: for emptiness, 0, or for the
// other methods, 1.
type wait struct {
	node   policy.NodeID
	at     policy.Time
	method uint8
}

// remembers reports whether what d knows of the nodes that did not change still stands,
// but for prices, PodDisruptionBudgets and time.
func (d *Disruptor) remembers(c *Cluster) bool {
	same := c.Tracked && c.Tie == nil && len(d.modes) == len(c.Pools)
	for p := range c.Pools {
		m := mode{c.managed(policy.PoolID(p)), c.Consolidation[p], c.Pools[p].ConsolidateAfter}
		same = same && d.modes[p] == m
		if p >= len(d.modes) {
			d.modes = append(d.modes, m)
		}
		d.modes[p] = m
	}
	return same
}

// A mode is what a pool asks of consolidation.
type mode struct {
	managed       bool
	consolidation policy.Consolidation
	after         time.Duration
}

// changed lists the nodes that may stand otherwise than they did.
func (d *Disruptor) changed(c *Cluster, flipped bool) {
	for _, id := range c.Changed {
		d.reread(id)
	}
	for _, w := range d.waiting {
		d.reread(w.node)
	}
	for _, list := range [...][]Candidate{d.used, d.empty} {
		for i := range list {
			if x := &list[i]; d.priceOf(c, x.market) != x.Price {
				d.reread(x.Node)
			}
		}
	}
	if !flipped {
		return
	}
	for _, id := range c.Order {
		if int(id) < len(d.cache) && slices.ContainsFunc(d.cache[id].pdbs, func(b policy.PDBID) bool { return d.flips[b] }) {
			d.reread(id)
		}
	}
}

// readBudgets notes which budgets allow nothing, and reports whether that changed.
func (d *Disruptor) readBudgets(c *Cluster) bool {
	flipped := false
	for b := range c.PDBs {
		if b >= len(d.spent) {
			d.spent, d.flips = append(d.spent, false), append(d.flips, false)
		}
		spent := c.PDBs[b].Allowed <= 0
		d.flips[b] = d.spent[b] != spent
		d.spent[b], flipped = spent, flipped || d.flips[b]
	}
	return flipped
}

// priceOf returns what a market costs, asked once a look.
func (d *Disruptor) priceOf(c *Cluster, m policy.MarketID) policy.Money {
	for len(d.prices) < len(c.Markets) {
		d.prices = append(d.prices, priceNow{})
	}
	x := &d.prices[m]
	if x.look != d.marks.turn {
		*x = priceNow{c.View.Price(m), d.marks.turn}
	}
	return x.price
}

type priceNow struct {
	price policy.Money
	look  uint32
}

// reread lists a node once.
func (d *Disruptor) reread(id policy.NodeID) {
	if !d.marks.has(id) {
		d.marks.set(id)
		d.nodes = append(d.nodes, id)
	}
}

// read puts a node where it belongs.
func (d *Disruptor) read(c *Cluster, id policy.NodeID) {
	n := &c.Nodes[id]
	d.kept[id] = false
	switch c.blocked(n) {
	case never:
	case nominated:
		d.wait(c, id, c.View.NominatedUntil(id))
	case young:
		d.wait(c, id, c.View.LastPodEvent(id).Add(c.Pools[n.Pool].ConsolidateAfter))
	case free:
		if x, ok := d.candidate(c, n); !ok {
			d.kept[id] = true
		} else if x.Empty() {
			d.empty = append(d.empty, x)
		} else if c.Consolidation[n.Pool] != policy.WhenEmpty {
			d.used = append(d.used, x)
		}
	}
}

// wait notes that node n is a candidate at t.
func (d *Disruptor) wait(c *Cluster, n policy.NodeID, t policy.Time) {
	w := wait{n, t, 1}
	if d.about(c, n).cost <= nodeCost {
		w.method = 0
	}
	d.waiting = append(d.waiting, w)
}

// candidate returns a node that is not blocked as a candidate, if its pods allow that.
func (d *Disruptor) candidate(c *Cluster, n *policy.Node) (Candidate, bool) {
	about := d.about(c, n.ID)
	if !about.disruptable(c) {
		return Candidate{}, false
	}
	x := Candidate{Node: n.ID, Pool: n.Pool, Price: c.View.Price(n.Market), Cost: about.cost, market: n.Market}
	x.ratio = dollars(x.Price) / x.Cost
	return x, true
}

// merge puts candidates in order, of which the first ones are.
func (d *Disruptor) merge(c *Cluster, list []Candidate, ordered int) {
	d.added = append(d.added[:0], list[ordered:]...)
	slices.SortFunc(d.added, c.byRatio)
	for at, i, j := len(list)-1, ordered-1, len(d.added)-1; j >= 0; at-- {
		if i >= 0 && c.byRatio(list[i], d.added[j]) > 0 {
			list[at], i = list[i], i-1
		} else {
			list[at], j = d.added[j], j-1
		}
	}
}

// byRatio orders candidates.
func (c *Cluster) byRatio(a, b Candidate) int {
	switch {
	case a.ratio > b.ratio:
		return -1
	case a.ratio < b.ratio:
		return 1
	case c.Tie != nil:
		return c.Tie(a.Node, b.Node)
	}
	return cmp.Compare(a.Node, b.Node)
}
