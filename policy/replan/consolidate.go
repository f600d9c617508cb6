package replan

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
)

// replacementGrace is the time for which an empty node that has just joined is kept while other
// nodes of its pool are being drained, because their pods may move there.
const replacementGrace = 20 * time.Minute

// triesMax is the maximum number of nodes per pool and step that are tried without a replacement.
// cheaperMax is the maximum number for which a cheaper replacement is sought.
const (
	triesMax   = 24
	cheaperMax = 8
)

// ScaleDownUtilization is the requested fraction of a node below which the Cluster Autoscaler
// removes it by default (scale-down-utilization-threshold).
const ScaleDownUtilization = 0.5

// ConsolidateOptions restrict Consolidate.
type ConsolidateOptions struct {
	// Share returns the target Spot share of a pool. Consolidation does not move the pool further
	// away from it.
	Share func(policy.PoolID) float64

	// UsedBelow is the threshold for the mean of the requested fractions of CPU and memory: a node
	// below it is drained if its pods fit on other nodes. 0 means no threshold.
	UsedBelow float64

	// Keep reports whether nodes must not be replaced by cheaper ones.
	Keep bool

	// Space returns a space with the snapshot and the changes of the plan. If it is nil, a space is
	// built when needed.
	Space func() *placement.Space

	// Tight reports whether a node is drained whenever its pods fit on other nodes, however full
	// these become. It is for policies without guardrails; guardrails would hold such drains.
	Tight bool
}

// Consolidate adds the drains and launches to plan that a provisioner would make to save money, for
// the pools without a provisioner, according to their consolidation policies. It drains empty
// nodes, then nodes whose pods fit on other nodes, then replaces one or several nodes by cheaper
// ones of the same capacity type. The memory records since when nodes are empty. Plan.Wake is set
// to the time when the next empty node is due.
func Consolidate(s *policy.Snapshot, plan policy.Plan, m policy.Memory, o ConsolidateOptions) (policy.Plan,
	policy.Memory) {
	if o.Space == nil {
		o.Space = sync.OnceValue(func() *placement.Space { return placement.FromSnapshot(s) })
	}
	for i := range s.Pools {
		p := &s.Pools[i]
		if !p.SelfProvisioned() || p.Consolidation == policy.ConsolidateNever {
			continue
		}
		c := consolidator{
			rebalance: newRebalance(s, nil, RebalanceOptions{Pool: p.ID, Share: o.Share(p.ID),
				Reason: policy.ReasonCheaper}, &plan),
			may: o, memory: m.Pool(p.Name),
		}
		c.readPods()
		c.readNodes()
		if !slices.Equal(c.idle, c.memory.Idle) {
			c.memory.Idle = c.idle
			m = m.With(c.memory)
		}
		if c.dropEmpty() == 0 && p.Consolidation == policy.WhenEmptyOrUnderutilized && !p.Share.Exact && c.dropUsed() {
			c.memory.Packed = s.Now
			m = m.With(c.memory)
		}
	}
	return plan, m
}

// A consolidator plans the consolidation of one pool.
type consolidator struct {
	rebalance
	may    ConsolidateOptions
	memory policy.PoolMemory

	idle []policy.Idle // current state, ascending by node

	pods    []int32       // by node, without pods of DaemonSets; see readPods
	bound   []policy.Time // by node: time when the last of them was bound
	pinned  []bool        // by node: one of them must stay, or cannot move now
	moving  bool          // pods of the pool are moving between nodes
	arrives bool          // a node of the pool is launching or joining
}

// readPods reads which pods run on which nodes.
func (c *consolidator) readPods() {
	s := c.S
	c.pods, c.bound, c.pinned = make([]int32, len(s.Nodes)), make([]policy.Time, len(s.Nodes)), make([]bool, len(s.Nodes))
	for i := range s.Pods {
		p := &s.Pods[i]
		if t := &s.Templates[p.Template]; p.Phase == policy.PodGone || t.DaemonSet {
			continue
		}
		switch {
		case p.Node >= 0:
			// A terminating pod still uses its requests.
			c.pods[p.Node]++
			c.bound[p.Node] = max(c.bound[p.Node], p.Bound)
			c.pinned[p.Node] = c.pinned[p.Node] || p.Phase != policy.PodTerminating && c.stays(p)
		case p.Nominated >= 0:
			c.pods[p.Nominated]++
		}
	}
}

// readNodes reads since when nodes are empty, and whether nodes are arriving or pods are moving.
func (c *consolidator) readNodes() {
	s := c.S
	left := make([]policy.Idle, 0, len(s.Ended))
	for i := range s.Ended {
		left = append(left, policy.Idle{Node: s.Ended[i].Node, Since: s.Ended[i].End})
	}
	slices.SortFunc(left, func(a, b policy.Idle) int {
		return cmp.Or(strings.Compare(a.Node, b.Node), cmp.Compare(b.Since, a.Since)) // latest of each node first
	})
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Pool != c.Pool.ID || n.Phase == policy.NodeGone {
			continue
		}
		going := n.ActedBy != policy.ActorNone || n.Phase > policy.NodeInitialized || n.ReclaimAt != 0
		c.moving = c.moving || going && c.pods[i] > 0
		c.arrives = c.arrives || n.Phase < policy.NodeInitialized
		if !going && n.Usable() && c.pods[i] == 0 {
			ended, _ := since(left, n.Name)
			c.idle = append(c.idle, policy.Idle{Node: n.Name, Since: max(n.Initialized, ended)})
		}
	}
	slices.SortFunc(c.idle, func(a, b policy.Idle) int { return strings.Compare(a.Node, b.Node) })
	for i := range c.idle {
		// The pods may have ended in an earlier snapshot.
		known, _ := since(c.memory.Idle, c.idle[i].Node)
		c.idle[i].Since = max(c.idle[i].Since, known)
	}
}

// since returns the time of the first entry for node in list, which is ascending by node, and
// reports whether there is one.
func since(list []policy.Idle, node string) (policy.Time, bool) {
	k, known := slices.BinarySearchFunc(list, node, func(x policy.Idle,
		name string) int {
		return strings.Compare(x.Node, name)
	})
	if !known {
		return 0, false
	}
	return list[k].Since, true
}

// stays reports whether p must not be moved to save money, or cannot be moved now.
func (c *consolidator) stays(p *policy.Pod) bool {
	t := &c.S.Templates[p.Template]
	return c.mustStay(p, t) != "" || t.Critical || t.GracefulOnly ||
		len(t.PDBs) > 1 || len(t.PDBs) == 1 && c.S.PDBs[t.PDBs[0]].Allowed == 0
}

// mayGo reports whether node n may be drained by choice.
func (c *consolidator) mayGo(n *policy.Node) bool {
	return n.Pool == c.Pool.ID && MayLeave(n) && n.Market != policy.None && !c.memory.BackedOff(n.Name, c.S.Now) &&
		!c.inWave(n) &&
		!slices.ContainsFunc(c.Plan.Drains, func(d policy.Drain) bool { return d.Node == n.ID })
}

// inWave reports whether n is part of a wave in progress, whose new nodes stay empty until the old
// nodes are drained.
func (c *consolidator) inWave(n *policy.Node) bool {
	w := &c.memory.Wave
	return w.Since != 0 && (slices.Contains(w.Nodes, n.Name) || n.Token != "" && slices.Contains(w.Tokens, n.Token))
}

// dropEmpty drains the nodes that have been empty for long enough. It returns their number.
func (c *consolidator) dropEmpty() (dropped int) {
	if len(c.idle) == 0 {
		return 0
	}
	left := c.Disruptable(policy.Empty)
	awaited := placement.Awaited(c.S, c.Pool.ID, func(n policy.NodeID) bool { return c.pods[n] == 0 })
	for i := range c.S.Nodes {
		n := &c.S.Nodes[i]
		empty, idle := since(c.idle, n.Name)
		if n.Name == "" || !idle || !c.mayGo(n) || slices.Contains(awaited, n.ID) {
			continue
		}
		if c.moving && c.S.Now.Sub(n.Initialized) < replacementGrace {
			continue
		}
		if due := empty.Add(c.Pool.ConsolidateAfter); due > c.S.Now {
			c.Plan.Wake = min(c.Plan.Wake, due)
			continue
		}
		if dropped >= left {
			break
		}
		before := c.S.Markets[n.Market].Charge() + c.S.Fees(c.Pool.ID, n.Market)
		c.Drain(n.ID, nil, policy.Why{Reason: policy.ReasonEmpty, Text: "nothing runs on the node", Before: before})
		dropped++
	}
	return dropped
}

// dropUsed drains nodes whose pods fit on other nodes, or else replaces nodes by cheaper ones. It
// reports whether it replaces several together. It does not move pods to empty nodes, because those
// are drained too, and does nothing while other moves are in progress.
func (c *consolidator) dropUsed() (replacesMany bool) {
	if c.moving || c.arrives || c.memory.Wave.Since != 0 || len(c.Plan.Launches) > 0 || len(c.Plan.Drains) > 0 {
		return false
	}
	nodes := c.candidates()
	if c.Left <= 0 || len(nodes) == 0 {
		return false
	}
	c.Space = c.may.Space() // nothing is planned yet, so the space equals the snapshot
	c.read()
	c.tight = c.may.Tight
	c.targets = usable(c.S, func(n *policy.Node) bool { return c.pods[n.ID] > 0 || n.Pool != c.Pool.ID })
	if c.may.UsedBelow > 0 {
		nodes = slices.DeleteFunc(nodes, func(n policy.NodeID) bool { return used(c.Space, n) >= c.may.UsedBelow })
	}
	placement.EmptiestFirst(c.S, c.Space, nodes)
	c.o.Text = "its pods fit on other nodes"
	for _, id := range nodes[:min(len(nodes), triesMax)] {
		if c.Left > 0 && c.without(id) {
			c.targets = c.others([]policy.NodeID{id})
		}
	}
	if len(c.Plan.Drains) > 0 || c.may.Keep || c.replaceOne(nodes) {
		return false
	}
	c.Allowed = Evictions(c.S)
	return (c.memory.Packed == 0 || c.memory.Packed.Add(replaceManyEvery) <= c.S.Now) && c.replaceMany(nodes)
}

// used returns the mean of the fractions of CPU and memory that are requested on n.
func used(sp *placement.Space, n policy.NodeID) float64 {
	have, asked := sp.Allocatable(n), sp.Requested(n)
	if have.CPU <= 0 || have.Memory <= 0 {
		return 1
	}
	return (float64(asked.CPU)/float64(have.CPU) + float64(asked.Memory)/float64(have.Memory)) / 2
}

// candidates returns the nodes whose pods may be moved and have been bound for at least
// consolidateAfter.
func (c *consolidator) candidates() []policy.NodeID {
	var nodes []policy.NodeID
	for i := range c.S.Nodes {
		n := &c.S.Nodes[i]
		if c.pods[i] > 0 && !c.pinned[i] && c.mayGo(n) && c.S.Now.Sub(max(n.Initialized,
			c.bound[i])) >= c.Pool.ConsolidateAfter {
			nodes = append(nodes, n.ID)
		}
	}
	return nodes
}

// without plans to drain n without a replacement, if its pods fit on other nodes, enough capacity
// stays free, and the pool stays close to its share. It reports whether it did; the pods are then
// bound to the other nodes in the space.
func (c *consolidator) without(n policy.NodeID) bool {
	nodes := []policy.NodeID{n}
	if !c.keepsShare(nodes, nil) || !c.enoughFree(nodes, nil) {
		return false
	}
	pods, _, hold := c.Leaving(n)
	if hold.Reason != "" || len(pods) == 0 {
		return false
	}
	c.Lift(pods)
	if !c.displace(n, pods, c.others(nodes)) {
		c.SetDown(pods)
		return false
	}
	return true
}

// others returns the targets that are not in nodes.
func (c *consolidator) others(nodes []policy.NodeID) []policy.NodeID {
	return slices.DeleteFunc(slices.Clone(c.targets), func(n policy.NodeID) bool { return slices.Contains(nodes, n) })
}

// keepsShare reports whether the distance of the pool from its share, after nodes are removed and
// bought ones added, is at most the current distance or half of the largest of nodes.
func (c *consolidator) keepsShare(nodes []policy.NodeID, bought [][]policy.MarketID) bool {
	near := c.At.Away(c.o.Share)
	for _, n := range nodes {
		near = max(near, c.half(n))
	}
	return c.After(nodes, bought).Away(c.o.Share) <= near
}

// replaceOne plans to replace the most expensive node whose pods fit on cheaper new nodes of the
// same capacity type. It reports whether there is one.
func (c *consolidator) replaceOne(nodes []policy.NodeID) bool {
	slices.SortStableFunc(nodes, func(a, b policy.NodeID) int { return cmp.Compare(c.Saved(b), c.Saved(a)) })
	c.o.Text = "its pods fit elsewhere at lower cost"
	for _, id := range nodes[:min(len(nodes), cheaperMax)] {
		at, most := c.S.Nodes[id].Market, c.Saved(id).Times(1-Threshold(c.Pool))
		c.sell(c.Pool.Markets, func(m policy.MarketID) bool {
			// A node in the same market costs the same, even if commitments seem to pay for one
			// more.
			return m != at && c.S.Markets[m].Capacity == c.S.Markets[at].Capacity &&
				placement.Added(c.Cover, c.S, c.Pool.ID, m) <= most
		})
		pods, _, hold := c.Leaving(id)
		if hold.Reason != "" || len(c.markets) == 0 {
			continue
		}
		c.Lift(pods)
		bought := c.replacements(pods, true)
		c.SetDown(pods)
		if len(bought) > 0 && c.Added(bought) <= most {
			c.order([]policy.NodeID{id}, bought)
			return true
		}
	}
	return false
}

// replaceManyMax is the maximum number of nodes that are replaced together. replaceManyEvery is the
// minimum time between two such replacements in a pool, because each moves many pods and demand may
// rise again within hours.
const (
	replaceManyMax   = 8
	replaceManyEvery = time.Hour
)

// replaceMany plans to replace the most wasteful nodes by fewer or cheaper ones of the same
// capacity type, in the number that saves most. It reports whether it did. The pods use the free
// capacity of other nodes first.
func (c *consolidator) replaceMany(nodes []policy.NodeID) bool {
	var best Group
	for _, capacity := range [...]policy.CapacityType{policy.OnDemand, policy.Spot} {
		other := func(n policy.NodeID) bool { return c.S.Markets[c.S.Nodes[n].Market].Capacity != capacity }
		group := slices.DeleteFunc(slices.Clone(nodes), other)
		if len(group) < 2 {
			continue
		}
		c.sell(c.Pool.Markets, func(m policy.MarketID) bool { return c.S.Markets[m].Capacity == capacity })
		offers := make([]placement.Offer, len(c.markets))
		for i := range offers {
			offers[i] = c.offer(i)
		}
		floor := placement.FloorOf(offers)
		placement.WastefulFirst(c.S, c.Space, group, floor, func(n *policy.Node) policy.Money { return c.Saved(n.ID) })
		if g, ok := BestGroup(group, min(c.Left, replaceManyMax), c.tryGroup); ok && g.saves() > best.saves() {
			best = g
		}
	}
	if len(best.Nodes) == 0 {
		return false
	}
	c.o.Text = "its pods and those of other nodes fit on cheaper nodes"
	c.order(best.Nodes, best.Bought)
	return true
}

// tryGroup returns the joint replacement of nodes, and reports whether it saves enough. It restores
// the space.
func (c *consolidator) tryGroup(nodes []policy.NodeID) (g Group, ok bool) {
	var pods []policy.Pod
	for _, id := range nodes {
		mine, _, hold := c.Leaving(id)
		if hold.Reason != "" {
			return g, false
		}
		pods = append(pods, mine...)
	}
	if c.evictable(pods).Reason != "" {
		return g, false
	}
	g = Group{Nodes: nodes, Before: c.Saved(nodes...)}
	g.Purchase, ok = c.Regroup(pods, c.others(nodes), func(rest []policy.Pod) (Purchase, bool) {
		bought := c.replacements(rest, true)
		return Purchase{Bought: bought, Cost: c.Added(bought)}, len(bought) > 0
	})
	return g, ok && c.pays(&g) && c.keepsShare(nodes, g.Bought) && c.enoughFree(nodes, g.Bought)
}

// pays reports whether g saves at least the threshold, as a fraction of the on-demand price of its
// nodes, because the cost of moving pods does not depend on the price of their nodes.
func (c *consolidator) pays(g *Group) bool {
	onDemand := policy.Money(0)
	for _, id := range g.Nodes {
		onDemand += max(c.S.Markets[c.S.Nodes[id].Market].OnDemand, c.Saved(id))
	}
	return g.saves() >= onDemand.Times(Threshold(c.Pool))
}
