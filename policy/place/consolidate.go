package place

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// replacementGrace is how long an empty node that just joined is left alone
// while other nodes of its pool are being emptied: their pods are coming.
const replacementGrace = 20 * time.Minute

// The counts that bound a look for savings in one pool: nodes tried, and nodes
// for which a cheaper one is sought.
const (
	triesMax   = 24
	cheaperMax = 8
)

// cheaperBy is the least part of its price for which a node is replaced by a
// cheaper one where the pool states none: both are paid while the new one
// starts, and every pod is moved.
const cheaperBy = 0.15

// Consolidate adds to plan what a provisioner would do to save money in the
// pools that none serves, as their consolidation policies say: it gives back
// nodes on which nothing runs, then nodes whose pods fit on others, then
// replaces one by cheaper ones of its capacity type. share gives the wanted
// spot share of a pool, which it leaves as near as it is. It keeps in the memory
// since when nodes are empty, and lets the policy wake when one is due.
func Consolidate(s *policy.Snapshot, plan policy.Plan, m policy.Memory, share func(policy.PoolID) float64) (policy.Plan, policy.Memory) {
	for i := range s.Pools {
		p := &s.Pools[i]
		if !selfServed(*p) || p.Consolidation == policy.ConsolidateNever {
			continue
		}
		c := tidier{s: s, pool: p, plan: &plan, share: share(p.ID), memory: m.Pool(p.Name)}
		c.survey()
		if !slices.Equal(c.idle, c.memory.Idle) {
			c.memory.Idle = c.idle
			m = m.With(c.memory)
		}
		if c.dropEmpty() == 0 && p.Consolidation == policy.WhenEmptyOrUnderutilized && !p.Share.Exact {
			c.dropUsed()
		}
	}
	return plan, m
}

// A tidier plans the consolidation of one pool.
type tidier struct {
	s      *policy.Snapshot
	pool   *policy.Pool
	plan   *policy.Plan
	share  float64
	memory policy.PoolMemory

	idle []policy.Idle // as of now, ascending by node

	pods    []int32       // by node, those of DaemonSets and terminating ones left out
	bound   []policy.Time // by node, when the last of them came
	pinned  []bool        // by node: one of them must stay, or may not go now
	moving  bool          // pods of the pool are on their way from node to node
	arrives bool          // a node is on its way
}

// survey reads what runs where, and since when nodes are empty.
func (c *tidier) survey() {
	s := c.s
	c.pods, c.bound, c.pinned = make([]int32, len(s.Nodes)), make([]policy.Time, len(s.Nodes)), make([]bool, len(s.Nodes))
	for i := range s.Pods {
		p := &s.Pods[i]
		if t := &s.Templates[p.Template]; p.Phase == policy.PodGone || t.DaemonSet {
			continue
		}
		switch {
		case p.Node >= 0:
			// A pod that is ending still holds its place for a moment.
			c.pods[p.Node]++
			c.bound[p.Node] = max(c.bound[p.Node], p.Bound)
			c.pinned[p.Node] = c.pinned[p.Node] || p.Phase != policy.PodTerminating && c.stays(p)
		case p.Nominated >= 0:
			c.pods[p.Nominated]++
		}
	}
	left := make([]policy.Idle, 0, len(s.Ended))
	for i := range s.Ended {
		left = append(left, policy.Idle{Node: s.Ended[i].Node, Since: s.Ended[i].End})
	}
	slices.SortFunc(left, func(a, b policy.Idle) int {
		return cmp.Or(strings.Compare(a.Node, b.Node), cmp.Compare(b.Since, a.Since)) // the latest of a node first
	})
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Pool != c.pool.ID || n.Phase == policy.NodeGone {
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
		// The pods that ended may have been told of in an earlier snapshot.
		known, _ := since(c.memory.Idle, c.idle[i].Node)
		c.idle[i].Since = max(c.idle[i].Since, known)
	}
}

// since returns the first instant that list, ascending by node, has for node,
// and whether it has one.
func since(list []policy.Idle, node string) (policy.Time, bool) {
	k, known := slices.BinarySearchFunc(list, node, func(x policy.Idle, name string) int { return strings.Compare(x.Node, name) })
	if !known {
		return 0, false
	}
	return list[k].Since, true
}

// stays reports whether p must not be moved for the sake of money, or cannot be
// now.
func (c *tidier) stays(p *policy.Pod) bool {
	t := &c.s.Templates[p.Template]
	return bare(c.s, p) || p.DoNotDisrupt || t.NotSafeToEvict || t.Critical || t.GracefulOnly ||
		len(t.PDBs) > 1 || len(t.PDBs) == 1 && c.s.PDBs[t.PDBs[0]].Allowed == 0
}

// mayGo reports whether node n is one that may be given back by choice.
func (c *tidier) mayGo(n *policy.Node) bool {
	return n.Pool == c.pool.ID && n.Usable() && n.ActedBy == policy.ActorNone && !n.DoNotDisrupt && n.Market != policy.None &&
		!c.memory.BackedOff(n.Name, c.s.Now) && !slices.ContainsFunc(c.plan.Drains, func(d policy.Drain) bool { return d.Node == n.ID })
}

// awaited returns the empty nodes that pending pods fit on, one for each pod: the
// scheduler is about to bind them. The pods of nodes under notice are pending
// here as they are in Shortages, which bought the nodes.
func (c *tidier) awaited() []policy.NodeID {
	if len(c.idle) == 0 {
		return nil
	}
	s := evicted(c.s)
	pods := pending(s)
	if len(pods) == 0 {
		return nil
	}
	var nodes []policy.NodeID
	sp := FromSnapshot(s)
	for i := range pods {
		for k := range c.s.Nodes {
			n := &c.s.Nodes[k]
			if n.Pool == c.pool.ID && c.pods[k] == 0 && n.Usable() && sp.Check(&pods[i], n.ID) == OK {
				sp.Bind(&pods[i], n.ID)
				nodes = append(nodes, n.ID)
				break
			}
		}
	}
	return nodes
}

// dropEmpty drains the nodes that have been empty for long enough, and returns
// their number.
func (c *tidier) dropEmpty() int {
	left, awaited := c.left(policy.Empty), c.awaited()
	dropped := 0
	for i := range c.s.Nodes {
		n := &c.s.Nodes[i]
		empty, idle := since(c.idle, n.Name)
		if n.Name == "" || !idle || !c.mayGo(n) || slices.Contains(awaited, n.ID) {
			continue
		}
		if c.moving && c.s.Now.Sub(n.Initialized) < replacementGrace {
			continue
		}
		if due := empty.Add(c.pool.ConsolidateAfter); due > c.s.Now {
			c.plan.Wake = min(c.plan.Wake, due)
			continue
		}
		if dropped >= left {
			break
		}
		c.drain(n, nil, policy.Why{Reason: policy.ReasonEmpty, Text: "nothing runs on the node", Before: c.s.Markets[n.Market].Charge()})
		dropped++
	}
	return dropped
}

// left returns how many more nodes the pool's budgets let go for reason, those
// that the plan drains already and moves under way counted.
func (c *tidier) left(reason policy.DisruptionReason) int {
	left := c.s.Disruptable(c.pool.ID, reason) - Balance(c.s, c.pool.ID).Moving
	for i := range c.plan.Drains {
		if n := &c.s.Nodes[c.plan.Drains[i].Node]; n.Pool == c.pool.ID && n.ReclaimAt == 0 {
			left--
		}
	}
	return left
}

func (c *tidier) drain(n *policy.Node, after []string, why policy.Why) {
	c.plan.Drains = append(c.plan.Drains, policy.Drain{Node: n.ID, After: after, Why: why})
}

// dropUsed drains nodes whose pods fit on others, empty ones left out since they
// are to go themselves, or else replaces one by cheaper ones. It waits while
// anything else is on the move.
func (c *tidier) dropUsed() {
	if c.moving || c.arrives || len(c.plan.Launches) > 0 || len(c.plan.Drains) > 0 {
		return
	}
	left := c.left(policy.Underutilized)
	nodes := c.candidates()
	if left <= 0 || len(nodes) == 0 {
		return
	}
	m := mover{s: c.s, pool: c.pool, at: Balance(c.s, c.pool.ID), o: ShiftOptions{
		Pool: c.pool.ID, Share: c.share, Reason: policy.ReasonCheaper, Text: "its pods fit on other nodes",
	}}
	m.prepare()
	m.targets = slices.DeleteFunc(usable(c.s), func(n policy.NodeID) bool { return c.pods[n] == 0 && c.s.Nodes[n].Pool == c.pool.ID })
	EmptiestFirst(c.s, m.sp, nodes)
	for _, id := range nodes[:min(len(nodes), triesMax)] {
		if len(m.drains) < left && m.without(&c.s.Nodes[id]) {
			m.targets = slices.DeleteFunc(m.targets, func(t policy.NodeID) bool { return t == id })
		}
	}
	if len(m.drains) == 0 {
		c.replaceOne(&m, nodes)
	}
	c.plan.Launches = append(c.plan.Launches, m.launches...)
	c.plan.Drains = append(c.plan.Drains, m.drains...)
}

// candidates returns the nodes whose pods may be moved and have been where they
// are for long enough.
func (c *tidier) candidates() []policy.NodeID {
	var nodes []policy.NodeID
	for i := range c.s.Nodes {
		n := &c.s.Nodes[i]
		if c.pods[i] > 0 && !c.pinned[i] && c.mayGo(n) && c.s.Now.Sub(max(n.Initialized, c.bound[i])) >= c.pool.ConsolidateAfter {
			nodes = append(nodes, n.ID)
		}
	}
	return nodes
}

// usable returns the nodes of all pools that take pods.
func usable(s *policy.Snapshot) []policy.NodeID {
	var nodes []policy.NodeID
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.Usable() && n.ActedBy == policy.ActorNone {
			nodes = append(nodes, n.ID)
		}
	}
	return nodes
}

// without plans to drain n without a replacement, if its pods fit on other nodes
// and the pool stays roomy and as near to its share as it is. It reports whether
// it did; then the pods stand on the other nodes in the space.
func (m *mover) without(n *policy.Node) bool {
	after := m.at
	after.Total -= m.size(n)
	if m.s.Markets[n.Market].Capacity == policy.Spot {
		after.Spot -= m.size(n)
	}
	if after.away(m.o.Share) > max(m.at.away(m.o.Share), float64(m.size(n))/2) || !m.roomWithout(n) {
		return false
	}
	pods, _, ok := m.movable(n)
	if !ok || len(pods) == 0 {
		return false
	}
	targets := m.targets
	m.targets = slices.DeleteFunc(slices.Clone(targets), func(t policy.NodeID) bool { return t == n.ID })
	for i := range pods {
		m.sp.Unbind(&pods[i], n.ID)
	}
	fits := m.displace(pods)
	m.targets = targets
	if !fits {
		for i := range pods {
			m.sp.Bind(&pods[i], n.ID)
		}
		return false
	}
	m.allocatable = m.allocatable.Minus(n.Allocatable)
	m.drain(n, nil, policy.None)
	m.at = after
	return true
}

// replaceOne plans to replace the first node, dearest first, whose pods cheaper
// nodes of the same capacity type hold.
func (c *tidier) replaceOne(m *mover, nodes []policy.NodeID) {
	s := c.s
	slices.SortStableFunc(nodes, func(a, b policy.NodeID) int {
		return cmp.Compare(s.Markets[s.Nodes[b].Market].Charge(), s.Markets[s.Nodes[a].Market].Charge())
	})
	m.o.Text = "its pods cost less elsewhere"
	least := c.pool.SavingsThreshold
	if least == 0 {
		least = cheaperBy
	}
	for _, id := range nodes[:min(len(nodes), cheaperMax)] {
		n := &s.Nodes[id]
		old := &s.Markets[n.Market]
		most := old.Charge().Times(1 - least)
		m.from, m.to, m.markets, m.offers = old.Capacity, old.Capacity, m.markets[:0], nil
		for _, id := range c.pool.Markets {
			if x := &s.Markets[id]; x.Capacity == old.Capacity && open(s, id) && x.Charge() <= most {
				m.markets = append(m.markets, id)
			}
		}
		byPrice(s, m.markets)
		m.markets = m.markets[:min(len(m.markets), offersMax)]
		pods, _, ok := m.movable(n)
		if !ok || len(m.markets) == 0 {
			continue
		}
		for i := range pods {
			m.sp.Unbind(&pods[i], n.ID)
		}
		bought, cost := m.replacements(pods, true), policy.Money(0)
		for i := range pods {
			m.sp.Bind(&pods[i], n.ID)
		}
		for _, markets := range bought {
			cost += s.Markets[markets[0]].Charge()
		}
		if len(bought) > 0 && cost <= most {
			m.launch(n, bought)
			return
		}
	}
}
