package placement

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spotter-dev/spotter/policy"
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

// cheaperBy is the least relative saving for which a node is replaced where the
// pool states none. Both nodes are paid while the new one starts, and every pod moves.
const cheaperBy = 0.15

// ScaleDownUtilization is the requested part of a node below which the Cluster
// Autoscaler removes it by default (scale-down-utilization-threshold).
const ScaleDownUtilization = 0.5

// ConsolidateOptions bound what Consolidate does.
type ConsolidateOptions struct {
	// Share gives the wanted spot share of a pool, which stays as near to it as it is.
	Share func(policy.PoolID) float64

	// UsedBelow is the mean of the requested shares of CPU and memory below which a
	// node is drained if its pods fit on others; 0 sets no limit.
	UsedBelow float64

	// Keep says that no node is replaced by cheaper ones.
	Keep bool

	// Space returns a space of the snapshot that is as the plan leaves it. With nil one is
	// built where it is needed.
	Space func() *Space

	// Tight says that a node is drained whenever its pods fit on others, however full
	// these become. It is for policies without guardrails, which would hold such drains.
	Tight bool
}

// Consolidate adds to plan what a provisioner would do to save money in the pools
// that none serves, as their consolidation policies say: it drains empty nodes, then
// nodes whose pods fit on others, then replaces one or several by cheaper ones of
// their capacity type. Memory keeps since when nodes are empty, and the policy wakes
// when one of them is due.
func Consolidate(s *policy.Snapshot, plan policy.Plan, m policy.Memory, o ConsolidateOptions) (policy.Plan, policy.Memory) {
	if o.Space == nil {
		o.Space = sync.OnceValue(func() *Space { return FromSnapshot(s) })
	}
	for i := range s.Pools {
		p := &s.Pools[i]
		if !p.SelfProvisioned() || p.Consolidation == policy.ConsolidateNever {
			continue
		}
		c := consolidator{s: s, pool: p, plan: &plan, o: o, share: o.Share(p.ID), memory: m.Pool(p.Name)}
		c.survey()
		if !slices.Equal(c.idle, c.memory.Idle) {
			c.memory.Idle = c.idle
			m = m.With(c.memory)
		}
		if c.dropEmpty() == 0 && p.Consolidation == policy.WhenEmptyOrUnderutilized && !p.Share.Exact {
			c.dropUsed()
		}
		if c.replacedMany {
			c.memory.Packed = s.Now
			m = m.With(c.memory)
		}
	}
	return plan, m
}

// A consolidator plans the consolidation of one pool.
type consolidator struct {
	s      *policy.Snapshot
	pool   *policy.Pool
	plan   *policy.Plan
	o      ConsolidateOptions
	share  float64
	memory policy.PoolMemory

	idle []policy.Idle // as of now, ascending by node

	pods         []int32       // by node, those of DaemonSets and terminating ones left out
	bound        []policy.Time // by node, when the last of them came
	pinned       []bool        // by node: one of them must stay, or may not go now
	moving       bool          // pods of the pool are on their way from node to node
	arrives      bool          // a node is on its way
	replacedMany bool          // several nodes are replaced together
}

// survey reads what runs where, and since when nodes are empty.
func (c *consolidator) survey() {
	s := c.s
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
		// The pods may have ended in an earlier snapshot.
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

// stays reports whether p must not be moved to save money, or cannot be moved now.
func (c *consolidator) stays(p *policy.Pod) bool {
	t := &c.s.Templates[p.Template]
	return c.s.Bare(t) || p.DoNotDisrupt || t.NotSafeToEvict || t.Critical || t.GracefulOnly ||
		len(t.PDBs) > 1 || len(t.PDBs) == 1 && c.s.PDBs[t.PDBs[0]].Allowed == 0
}

// mayGo reports whether node n may be drained by choice.
func (c *consolidator) mayGo(n *policy.Node) bool {
	return n.Pool == c.pool.ID && n.Usable() && n.ActedBy == policy.ActorNone && !n.DoNotDisrupt && n.Market != policy.None &&
		!c.memory.BackedOff(n.Name, c.s.Now) && !c.inWave(n) && !slices.ContainsFunc(c.plan.Drains, func(d policy.Drain) bool { return d.Node == n.ID })
}

// inWave reports whether n is part of a wave under way: its new nodes stay empty
// until the old nodes are drained.
func (c *consolidator) inWave(n *policy.Node) bool {
	w := &c.memory.Wave
	return w.Since != 0 && (slices.Contains(w.Nodes, n.Name) || n.Token != "" && slices.Contains(w.Tokens, n.Token))
}

// awaited returns the empty nodes that pending pods fit on, one for each pod, since
// the scheduler is about to bind them. Pods of nodes under notice count as pending, as
// they do in Shortages.
func (c *consolidator) awaited() []policy.NodeID {
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
func (c *consolidator) dropEmpty() int {
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
		c.drain(n, nil, policy.Why{Reason: policy.ReasonEmpty, Text: "nothing runs on the node", Before: c.s.Markets[n.Market].Charge() + c.s.Fees(c.pool.ID, n.Market)})
		dropped++
	}
	return dropped
}

// left returns how many more nodes the pool's budgets allow to disrupt for reason,
// after the drains of the plan and the moves under way.
func (c *consolidator) left(reason policy.DisruptionReason) int {
	left := c.s.Disruptable(c.pool.ID, reason) - BalanceOf(c.s, c.pool.ID).Moving
	for i := range c.plan.Drains {
		if n := &c.s.Nodes[c.plan.Drains[i].Node]; n.Pool == c.pool.ID && n.ReclaimAt == 0 {
			left--
		}
	}
	return left
}

func (c *consolidator) drain(n *policy.Node, after []string, why policy.Why) {
	c.plan.Drains = append(c.plan.Drains, policy.Drain{Node: n.ID, After: after, Why: why})
}

// dropUsed drains nodes whose pods fit on others, or else replaces nodes by cheaper
// ones. No pod goes to an empty node, which is to be drained itself. It waits while
// anything else moves.
func (c *consolidator) dropUsed() {
	if c.moving || c.arrives || c.memory.Wave.Since != 0 || len(c.plan.Launches) > 0 || len(c.plan.Drains) > 0 {
		return
	}
	left := c.left(policy.Underutilized)
	nodes := c.candidates()
	if left <= 0 || len(nodes) == 0 {
		return
	}
	m := rebalancer{s: c.s, pool: c.pool, at: BalanceOf(c.s, c.pool.ID), o: RebalanceOptions{
		Pool: c.pool.ID, Share: c.share, Reason: policy.ReasonCheaper, Text: "its pods fit on other nodes",
	}}
	m.sp = c.o.Space() // nothing is planned yet, so that it is as the snapshot is
	m.prepare()
	m.tight = c.o.Tight
	m.targets = slices.DeleteFunc(usable(c.s), func(n policy.NodeID) bool { return c.pods[n] == 0 && c.s.Nodes[n].Pool == c.pool.ID })
	if c.o.UsedBelow > 0 {
		nodes = slices.DeleteFunc(nodes, func(n policy.NodeID) bool { return used(m.sp, n) >= c.o.UsedBelow })
	}
	EmptiestFirst(c.s, m.sp, nodes)
	for _, id := range nodes[:min(len(nodes), triesMax)] {
		if len(m.drains) < left && m.without(&c.s.Nodes[id]) {
			m.targets = slices.DeleteFunc(m.targets, func(t policy.NodeID) bool { return t == id })
		}
	}
	if len(m.drains) == 0 && !c.o.Keep {
		if due := c.memory.Packed.Add(replaceManyEvery); !c.replaceOne(&m, nodes) && (c.memory.Packed == 0 || due <= c.s.Now) {
			c.replacedMany = c.replaceMany(&m, nodes, left)
		}
	}
	c.plan.Launches = append(c.plan.Launches, m.launches...)
	c.plan.Drains = append(c.plan.Drains, m.drains...)
}

// used returns the mean of the shares of CPU and memory that are requested of n.
func used(sp *Space, n policy.NodeID) float64 {
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

// without plans to drain n without a replacement, if its pods fit on other nodes,
// enough stays free, and the pool stays as near to its share as it is. It reports
// whether it did; then the pods are bound to the other nodes in the space.
func (m *rebalancer) without(n *policy.Node) bool {
	after := m.at
	after.Total -= m.size(n)
	if m.s.Markets[n.Market].Capacity == policy.Spot {
		after.Spot -= m.size(n)
	}
	if after.away(m.o.Share) > max(m.at.away(m.o.Share), float64(m.size(n))/2) || !m.enoughFreeWithout(n) {
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
	fits := m.bindElsewhere(pods)
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

// replaceOne plans to replace the most expensive node whose pods fit on cheaper new
// nodes of the same capacity type, and reports whether there is one.
func (c *consolidator) replaceOne(m *rebalancer, nodes []policy.NodeID) bool {
	s := c.s
	slices.SortStableFunc(nodes, func(a, b policy.NodeID) int {
		return cmp.Compare(m.saved(&s.Nodes[b]), m.saved(&s.Nodes[a]))
	})
	m.o.Text = "its pods fit elsewhere at lower cost"
	for _, id := range nodes[:min(len(nodes), cheaperMax)] {
		n := &s.Nodes[id]
		most := m.saved(n).Times(1 - c.threshold())
		m.sell(s.Markets[n.Market].Capacity, most)
		// Another node of its own market costs the same, whatever commitments seem to leave for one more.
		m.markets = slices.DeleteFunc(m.markets, func(x policy.MarketID) bool { return x == n.Market })
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
			cost += m.added(markets[0])
		}
		if len(bought) > 0 && cost <= most {
			m.launch(n, bought)
			return true
		}
	}
	return false
}
