package karpenter

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/portable"
)

// A Candidate is a node that may be disrupted.
type Candidate struct {
	Node policy.NodeID
	Pool policy.PoolID

	// Price is the price of the node per hour.
	Price policy.Money

	// Cost is the disruption cost: 1 for the node, plus the eviction cost, if positive, of every
	// pod that must be rescheduled (types.go, computeRescheduleDisruptionCost).
	Cost float64

	// rank orders candidates, the greatest first: the hourly price in dollars per unit of
	// disruption cost (types.go, SavingsRatio), or, before 1.14, the negated disruption cost
	// (consolidation.go, sortCandidates).
	rank   float64
	empty  bool
	market policy.MarketID
}

// Rank returns the sort key of candidates, the greatest first.
func (x *Candidate) Rank() float64 { return x.rank }

// Empty reports whether no pod of the node has a positive eviction cost (types.go, IsEmpty), or,
// before 1.14, whether no pod must be rescheduled.
func (x *Candidate) Empty() bool { return x.empty }

// dollars converts m to dollars, in which Karpenter computes prices, so that quotients are rounded
// as in Karpenter.
func dollars(m policy.Money) float64 { return float64(m) / 1e6 }

// nodeCost is the cost of disrupting any node (types.go, PerNodeBaseDisruptionCost).
const nodeCost = 1.0

// evictionCost returns the cost of evicting p, in [-10, 10]: 1 plus fractions of its deletion cost
// and its priority (pkg/utils/disruption/disruption.go, EvictionCost).
func evictionCost(p *policy.Pod, t *policy.Template) float64 {
	cost := 1.0
	cost += float64(p.DeletionCost) / (1 << 27)
	cost += float64(t.Priority) / (1 << 25)
	return min(max(cost, -10), 10)
}

// reschedulable reports whether p must be rescheduled when its node is removed: it does not belong
// to a DaemonSet, and is not terminating unless a StatefulSet creates it again
// (pkg/utils/pod/scheduling.go, IsReschedulable).
func (c *Cluster) reschedulable(p *policy.Pod) bool {
	t := &c.Templates[p.Template]
	return reschedulable(p, t, c.Kinds[t.Workload])
}

func reschedulable(p *policy.Pod, t *policy.Template, kind policy.WorkloadKind) bool {
	return !t.DaemonSet && (p.Phase != policy.PodTerminating || kind == policy.KindStatefulSet)
}

// cost returns the disruption cost of n.
func (c *Cluster) cost(n policy.NodeID) float64 {
	cost := nodeCost
	for _, id := range c.Space.Pods(n) {
		if p := &c.Pods[id]; c.reschedulable(p) {
			cost += max(0, evictionCost(p, &c.Templates[p.Template]))
		}
	}
	return cost
}

// costLeft returns the disruption cost of n before 1.14: the sum over all its pods, scaled by the
// remaining fraction of the node's lifetime (types.go, NewCandidate;
// pkg/utils/disruption/disruption.go, LifetimeRemaining).
func (c *Cluster) costLeft(n *policy.Node) float64 {
	cost := 0.0
	for _, id := range c.Space.Pods(n.ID) {
		p := &c.Pods[id]
		cost += evictionCost(p, &c.Templates[p.Template])
	}
	if life := c.Pools[n.Pool].ExpireAfter; life > 0 {
		left := life.Seconds() - c.Now.Sub(n.Launched).Seconds()
		cost *= min(max(left/life.Seconds(), 0), 1)
	}
	return cost
}

// Candidates returns the candidates of a method, in order. The slice is valid until the next call
// of a method of d.
func (d *Disruptor) Candidates(c *Cluster, m Method) []Candidate {
	d.candidates.gather(c)
	if m == Emptiness {
		return d.candidates.empty
	}
	return d.candidates.used
}

// A block is the reason why a node is not a candidate.
type block uint8

const (
	free      block = iota
	never           // not managed by Karpenter, not initialized, already leaving, or protected
	nominated       // until NominatedUntil
	young           // until consolidateAfter has passed
)

// blocked returns the reason why consolidation may not disrupt n, apart from its pods
// (state/statenode.go, ValidateNodeDisruptable; the condition Consolidatable,
// nodeclaim/disruption/consolidation.go).
func (c *Cluster) blocked(n *policy.Node) block {
	switch {
	case !c.managed(n.Pool) || n.Phase != policy.NodeInitialized || n.DoNotDisrupt ||
		n.ActedBy != policy.ActorNone || n.ReclaimAt != 0 || c.Consolidation[n.Pool] == policy.ConsolidateNever,
		c.Shifted != nil && c.Shifted[c.Markets[n.Market].Zone]:
		return never
	case c.View.NominatedUntil(n.ID) > c.Now:
		return nominated
	case c.underConsolidateAfter(n):
		return young
	}
	return free
}

// A nodeCache contains the properties of a node's pods that affect its disruption. It is valid
// while the version of the pods is unchanged.
type nodeCache struct {
	version  uint64
	known    bool
	held     bool // a pod can never be evicted
	cost     float64
	pdbs     []policy.PDBID // PodDisruptionBudgets that must allow an eviction
	queue    []queuedPod    // pods that must be rescheduled, in the order in which they are tried
	cpu      int64          // CPU requests of queue, in milli-CPU
	starting bool           // a pod of queue is starting, so it may be placed on nodes under consolidateAfter
	single   bool           // simulations depend on more than queue
}

// about returns the cached properties of the pods of n, and updates them if needed.
func (cl *candidateList) about(c *Cluster, n policy.NodeID) *nodeCache {
	for len(cl.cache) <= int(n) {
		cl.cache = append(cl.cache, nodeCache{})
	}
	x, version := &cl.cache[n], c.View.PodsVersion(n)
	if x.known && x.version == version {
		return x
	}
	*x = nodeCache{version: version, known: true, cost: c.cost(n), pdbs: x.pdbs[:0], queue: x.queue[:0]}
	for _, id := range c.Space.Pods(n) {
		b, ok := c.evictable(&c.Pods[id])
		x.held = x.held || !ok
		if b >= 0 && !slices.Contains(x.pdbs, b) {
			x.pdbs = append(x.pdbs, b)
		}
		if p := &c.Pods[id]; c.reschedulable(p) {
			x.cpu += c.Templates[p.Template].Requests.CPU
			x.starting = x.starting || p.Phase == policy.PodStarting
			x.queue = append(x.queue, queuedPod{p.Template, placement.QueueKeyOf(&c.Templates[p.Template], p)})
			x.single = x.single || x.starting || p.VolumeZone >= 0 || len(c.Templates[p.Template].Volumes) > 0
		}
	}
	slices.SortFunc(x.queue, queuedPod.compare)
	return x
}

// empty reports whether the node counts as empty.
func (x *nodeCache) empty(c *Cluster) bool {
	if c.Version.Before(14) {
		return len(x.queue) == 0
	}
	return x.cost <= nodeCost
}

// disruptable reports whether all pods of a node may be evicted now, one by one.
func (x *nodeCache) disruptable(c *Cluster) bool {
	return !x.held && !slices.ContainsFunc(x.pdbs, func(b policy.PDBID) bool { return c.PDBs[b].Allowed <= 0 })
}

// evictable reports whether p can be evicted at all, and returns the PodDisruptionBudget that must
// allow it, or -1 without one (state/statenode.go, ValidatePodsDisruptable; pkg/utils/pdb,
// CanEvictPods). Karpenter does not evict a pod that tolerates its taint, so no PodDisruptionBudget
// of such a pod protects the node.
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

// taintDisrupted is the key of the taint that Karpenter adds to nodes that it disrupts, without a
// value and with the effect NoSchedule.
const taintDisrupted = "karpenter.sh/disrupted"

func toleratesDisrupted(t *policy.Template) bool {
	return slices.ContainsFunc(t.Tolerations, func(l policy.Toleration) bool {
		return (l.Key == "" && l.Exists || l.Key == taintDisrupted) && (l.Exists || l.Value == "") &&
			(l.Effect == policy.EffectAny || l.Effect == policy.NoSchedule)
	})
}

// gather updates the candidates of consolidation: the empty nodes and the others, both in
// descending order of rank (consolidation.go, sortCandidates). Candidates of equal rank are ordered
// by node.
func (cl *candidateList) gather(c *Cluster) {
	cl.marks.next(len(c.Nodes))
	cl.nodes = cl.nodes[:0]
	repriced := cl.readPrices(c)
	if flipped := cl.readPDBs(c); cl.remembers(c) {
		cl.changed(c, flipped, repriced)
	} else {
		cl.empty, cl.used, cl.digest = cl.empty[:0], cl.used[:0], 0
		for _, id := range c.Order {
			cl.reread(id)
		}
		clear(cl.kept)
	}
	cl.empty = slices.DeleteFunc(cl.empty, func(x Candidate) bool { return cl.marks.has(x.Node) })
	cl.used = slices.DeleteFunc(cl.used, func(x Candidate) bool {
		gone := cl.marks.has(x.Node)
		if gone {
			cl.digest -= x.digest()
		}
		return gone
	})
	cl.waiting = cl.waiting[:0] // all nodes that wait are read again
	for len(cl.kept) < len(c.Nodes) {
		cl.kept = append(cl.kept, false)
	}
	empty, used := len(cl.empty), len(cl.used)
	for _, id := range cl.nodes {
		cl.readNode(c, id)
	}
	cl.merge(c, cl.empty, empty)
	cl.merge(c, cl.used, used)
	cl.due = [2]policy.Time{}
	for _, w := range cl.waiting {
		if due := &cl.due[w.method]; *due == 0 || w.at < *due {
			*due = w.at
		}
	}
	cl.held = slices.Contains(cl.kept, true)
}

// A wait is a node that is not a candidate before a time. method is 0 for emptiness and 1 for the
// other methods.
type wait struct {
	node   policy.NodeID
	at     policy.Time
	method uint8
}

// remembers reports whether the candidates that did not change are still valid, apart from prices,
// PodDisruptionBudgets and time.
func (cl *candidateList) remembers(c *Cluster) bool {
	same := c.Tracked && c.Tie == nil && len(cl.modes) == len(c.Pools) && !c.Version.Before(14) // ranks depend on time
	for p := range c.Pools {
		m := mode{c.managed(policy.PoolID(p)), c.Consolidation[p], c.Pools[p].ConsolidateAfter}
		same = same && cl.modes[p] == m
		if p >= len(cl.modes) {
			cl.modes = append(cl.modes, m)
		}
		cl.modes[p] = m
	}
	return same
}

// A mode is the consolidation settings of a pool.
type mode struct {
	managed       bool
	consolidation policy.Consolidation
	after         time.Duration
}

// changed lists the nodes whose status as candidates may have changed.
func (cl *candidateList) changed(c *Cluster, flipped, repriced bool) {
	for _, id := range c.Changed {
		cl.reread(id)
	}
	for _, w := range cl.waiting {
		cl.reread(w.node)
	}
	if repriced {
		for _, list := range [...][]Candidate{cl.used, cl.empty} {
			for i := range list {
				if x := &list[i]; c.View.Price(x.Pool, x.market) != x.Price {
					cl.reread(x.Node)
				}
			}
		}
	}
	if !flipped {
		return
	}
	for _, id := range c.Order {
		if int(id) < len(cl.cache) && slices.ContainsFunc(cl.cache[id].pdbs,
			func(b policy.PDBID) bool { return cl.flips[b] }) {
			cl.reread(id)
		}
	}
}

// readPDBs records which PodDisruptionBudgets allow no disruption, and reports whether that
// changed.
func (cl *pdbChanges) readPDBs(c *Cluster) bool {
	flipped := false
	for b := range c.PDBs {
		if b >= len(cl.spent) {
			cl.spent, cl.flips = append(cl.spent, false), append(cl.flips, false)
		}
		spent := c.PDBs[b].Allowed <= 0
		cl.flips[b] = cl.spent[b] != spent
		cl.spent[b], flipped = spent, flipped || cl.flips[b]
	}
	return flipped
}

// readPrices updates the prices of candidates' nodes, and reports whether any changed.
func (cl *priceList) readPrices(c *Cluster) (changed bool) {
	for i := range cl.prices {
		x := &cl.prices[i]
		if price := c.View.Price(x.pool, x.market); price != x.price {
			x.price, changed = price, true
		}
	}
	return changed
}

// A nodePrice is the price of a node of a pool in a market, as last read.
type nodePrice struct {
	pool   policy.PoolID
	market policy.MarketID
	price  policy.Money
}

// price returns the price of a node of p in market m. From then on, readPrices updates it.
func (cl *priceList) price(c *Cluster, p policy.PoolID, m policy.MarketID) policy.Money {
	for len(cl.priced) < len(c.Pools)*len(c.Markets) {
		cl.priced = append(cl.priced, false)
	}
	price := c.View.Price(p, m)
	if at := &cl.priced[int(p)*len(c.Markets)+int(m)]; !*at {
		cl.prices, *at = append(cl.prices, nodePrice{p, m, price}), true
	}
	return price
}

// reread adds a node to the list of nodes to read, without duplicates.
func (cl *rereads) reread(id policy.NodeID) {
	if !cl.marks.has(id) {
		cl.marks.set(id)
		cl.nodes = append(cl.nodes, id)
	}
}

// readNode reads a node and adds it to the matching list.
func (cl *candidateList) readNode(c *Cluster, id policy.NodeID) {
	n := &c.Nodes[id]
	cl.kept[id] = false
	switch c.blocked(n) {
	case never:
	case nominated:
		cl.wait(c, id, c.View.NominatedUntil(id))
	case young:
		cl.wait(c, id, c.View.LastPodEvent(id).Add(c.Pools[n.Pool].ConsolidateAfter))
	case free:
		if x, ok := cl.candidate(c, n); !ok {
			cl.kept[id] = c.Consolidation[n.Pool] != policy.WhenEmpty || cl.about(c, id).empty(c)
		} else if x.Empty() {
			cl.empty = append(cl.empty, x)
		} else if c.Consolidation[n.Pool] != policy.WhenEmpty {
			cl.used = append(cl.used, x)
			cl.digest += x.digest()
		}
	}
}

// digest returns a digest of the fields of x that a search reads.
func (x *Candidate) digest() uint64 {
	return portable.Mix(portable.Mix(uint64(x.Node), uint64(x.Price)), math.Float64bits(x.Cost))
}

// wait records that node n may become a candidate at t.
func (cl *candidateList) wait(c *Cluster, n policy.NodeID, t policy.Time) {
	w := wait{n, t, 1}
	if cl.about(c, n).empty(c) {
		w.method = 0
	}
	cl.waiting = append(cl.waiting, w)
}

// candidate returns n, which must not be blocked, as a candidate. It returns false if its pods
// prevent that.
func (cl *candidateList) candidate(c *Cluster, n *policy.Node) (Candidate, bool) {
	about := cl.about(c, n.ID)
	if !about.disruptable(c) {
		return Candidate{}, false
	}
	x := Candidate{Node: n.ID, Pool: n.Pool, Price: cl.price(c, n.Pool, n.Market), Cost: about.cost,
		empty: about.empty(c), market: n.Market}
	x.rank = dollars(x.Price) / x.Cost
	if c.Version.Before(14) {
		x.rank = -c.costLeft(n)
	}
	return x, true
}

// merge sorts a list of candidates whose first ordered ones are already in order.
func (cl *candidateList) merge(c *Cluster, list []Candidate, ordered int) {
	cl.added = append(cl.added[:0], list[ordered:]...)
	slices.SortFunc(cl.added, c.byRank)
	for at, i, j := len(list)-1, ordered-1, len(cl.added)-1; j >= 0; at-- {
		if i >= 0 && c.byRank(list[i], cl.added[j]) > 0 {
			list[at], i = list[i], i-1
		} else {
			list[at], j = cl.added[j], j-1
		}
	}
}

// byRank compares candidates by descending rank.
func (c *Cluster) byRank(a, b Candidate) int {
	switch {
	case a.rank > b.rank:
		return -1
	case a.rank < b.rank:
		return 1
	case c.Tie != nil:
		return c.Tie(a.Node, b.Node)
	}
	return cmp.Compare(a.Node, b.Node)
}

// inTurn returns the candidates of single-node consolidation. Before 1.14 they include the empty
// ones, which have a turn but are skipped (singlenodeconsolidation.go, ComputeCommands).
func (cl *candidateList) inTurn(c *Cluster) []Candidate {
	if !c.Version.Before(14) {
		return cl.used
	}
	list := slices.Concat(cl.used, cl.empty)
	slices.SortFunc(list, c.byRank)
	return list
}

// A candidateList keeps the candidates of consolidation, in order, between evaluations. For nodes
// that did not change, only prices, PodDisruptionBudgets and the time are read again.
type candidateList struct {
	empty, used []Candidate
	digest      uint64         // sum of the digests of used
	due         [2]policy.Time // earliest end of a wait, by method as in wait; 0 for none
	held        bool           // a node is not a candidate only because of its pods
	waiting     []wait
	kept        []bool // by node, whether it would be a candidate without the restrictions of its pods
	modes       []mode // by pool
	added       []Candidate
	cache       []nodeCache

	rereads
	pdbChanges
	priceList
}

// The nodes that an evaluation reads, without duplicates.
type rereads struct {
	nodes []policy.NodeID
	marks marks
}

// The state of PodDisruptionBudgets, by id: spent reports whether one allows no disruption, and
// flips whether that changed since the last evaluation.
type pdbChanges struct{ spent, flips []bool }

// A priceList contains the prices of the nodes that have been candidates.
type priceList struct {
	prices []nodePrice
	priced []bool // by pool and market, whether it is in prices
}
