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

// replacementGrace is how long an empty node that just joined is kept while other
// nodes of its pool are being drained, since their pods are coming.
const replacementGrace = 20 * time.Minute

// The most nodes per pool and step that are tried without a replacement, and for
// which a cheaper replacement is sought.
const (
	triesMax   = 24
	cheaperMax = 8
)

// ScaleDownUtilization is the requested part of a node below which the Cluster
// Autoscaler removes it by default (scale-down-utilization-threshold).
const ScaleDownUtilization = 0.5

// ConsolidateOptions bound what Consolidate does.
type ConsolidateOptions struct {
	// Share gives the wanted Spot share of a pool, from which consolidation moves the pool no
	// further away.
	Share func(policy.PoolID) float64

	// UsedBelow is the mean of the requested shares of CPU and memory below which a
	// node is drained if its pods fit on others; 0 sets no limit.
	UsedBelow float64

	// Keep says that no node is replaced by cheaper ones.
	Keep bool

	// Space returns a space of the snapshot that is as the plan leaves it. With nil one is
	// built where it is needed.
	Space func() *placement.Space

	// Tight says that a node is drained whenever its pods fit on others, however full
	// these become. It is for policies without guardrails, which would hold such drains.
	Tight bool
}

// Consolidate adds to plan what a provisioner would do to save money in the pools
// that none serves, as their consolidation policies say: it drains empty nodes, then
// nodes whose pods fit on others, then replaces one or several by cheaper ones of
// their capacity type. Memory keeps since when nodes are empty, and the policy wakes
// when one of them is due.
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

	idle []policy.Idle // as of now, ascending by node

	pods    []int32       // by node, those of DaemonSets and terminating ones left out
	bound   []policy.Time // by node, when the last of them came
	pinned  []bool        // by node: one of them must stay, or may not go now
	moving  bool          // pods of the pool are on their way from node to node
	arrives bool          // a node is on its way
}

// readPods reads what runs where.
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

// readNodes reads since when nodes are empty, and whether any is on its way in or out.
func (c *consolidator) readNodes() {
	s := c.S
	left := make([]policy.Idle, 0, len(s.Ended))
	for i := range s.Ended {
		left = append(left, policy.Idle{Node: s.Ended[i].Node, Since: s.Ended[i].End})
	}
	slices.SortFunc(left, func(a, b policy.Idle) int {
		return cmp.Or(strings.Compare(a.Node, b.Node), cmp.Compare(b.Since, a.Since)) // the latest of a node first
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

// since returns the first instant that list, ascending by node, has for node,
// and whether it has one.
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

// inWave reports whether n is part of a wave under way: its new nodes stay empty
// until the old nodes are drained.
func (c *consolidator) inWave(n *policy.Node) bool {
	w := &c.memory.Wave
	return w.Since != 0 && (slices.Contains(w.Nodes, n.Name) || n.Token != "" && slices.Contains(w.Tokens, n.Token))
}

// dropEmpty drains the nodes that have been empty for long enough, and returns
// their number.
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

// dropUsed drains nodes whose pods fit on others, or else replaces nodes by cheaper ones, and
// reports whether it replaces several together. No pod is moved to an empty node, which will be
// drained itself. It waits while anything else moves.
func (c *consolidator) dropUsed() (replacesMany bool) {
	if c.moving || c.arrives || c.memory.Wave.Since != 0 || len(c.Plan.Launches) > 0 || len(c.Plan.Drains) > 0 {
		return false
	}
	nodes := c.candidates()
	if c.Left <= 0 || len(nodes) == 0 {
		return false
	}
	c.Space = c.may.Space() // nothing is planned yet, so that it is as the snapshot is
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

// used returns the mean of the shares of CPU and memory that are requested of n.
func used(sp *placement.Space, n policy.NodeID) float64 {
	have, asked := sp.Allocatable(n), sp.Requested(n)
	if have.CPU <= 0 || have.Memory <= 0 {
		return 1
	}
	return (float64(asked.CPU)/float64(have.CPU) + float64(asked.Memory)/float64(have.Memory)) / 2
}

// candidates returns the nodes whose pods may be moved and have been bound for at
// least consolidateAfter.
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

// without plans to drain n without a replacement, if its pods fit on other nodes,
// enough stays free, and the pool stays as near to its share as it is. It reports
// whether it did; then the pods are bound to the other nodes in the space.
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

// others returns the targets that are not of nodes.
func (c *consolidator) others(nodes []policy.NodeID) []policy.NodeID {
	return slices.DeleteFunc(slices.Clone(c.targets), func(n policy.NodeID) bool { return slices.Contains(nodes, n) })
}

// keepsShare reports whether the pool stays as near to its share as it is, or within half of
// the largest of nodes, once these are gone and bought ones have come.
func (c *consolidator) keepsShare(nodes []policy.NodeID, bought [][]policy.MarketID) bool {
	near := c.At.Away(c.o.Share)
	for _, n := range nodes {
		near = max(near, c.half(n))
	}
	return c.After(nodes, bought).Away(c.o.Share) <= near
}

// replaceOne plans to replace the most expensive node whose pods fit on cheaper new
// nodes of the same capacity type, and reports whether there is one.
func (c *consolidator) replaceOne(nodes []policy.NodeID) bool {
	slices.SortStableFunc(nodes, func(a, b policy.NodeID) int { return cmp.Compare(c.Saved(b), c.Saved(a)) })
	c.o.Text = "its pods fit elsewhere at lower cost"
	for _, id := range nodes[:min(len(nodes), cheaperMax)] {
		at, most := c.S.Nodes[id].Market, c.Saved(id).Times(1-Threshold(c.Pool))
		c.sell(c.Pool.Markets, func(m policy.MarketID) bool {
			// Another node of its own market costs the same, whatever commitments seem to leave for one more.
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

// replaceManyMax is the most nodes that are replaced together, and replaceManyEvery
// the least time between two such replacements in a pool: each moves many pods, and
// demand may rise again within hours.
const (
	replaceManyMax   = 8
	replaceManyEvery = time.Hour
)

// replaceMany plans to replace the nodes that waste most by fewer or cheaper ones
// of their capacity type, as many together as saves most, and reports whether there
// are any. The pods use the free capacity of other nodes first.
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

// tryGroup returns how nodes would be replaced together, and reports whether that saves
// enough. The space is left as it was.
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

// pays reports whether g saves at least the threshold of the on-demand price of its
// nodes: the cost of moving pods does not depend on the price of their nodes.
func (c *consolidator) pays(g *Group) bool {
	onDemand := policy.Money(0)
	for _, id := range g.Nodes {
		onDemand += max(c.S.Markets[c.S.Nodes[id].Market].OnDemand, c.Saved(id))
	}
	return g.saves() >= onDemand.Times(Threshold(c.Pool))
}
