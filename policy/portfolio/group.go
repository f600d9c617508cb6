package portfolio

import (
	"cmp"
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// A group is a set of workloads whose pods move together in one round. Every
// workload that moves is short once, however many of its pods go, so that nodes
// which hold the same few are emptied together.
type group struct {
	has []bool // by workload
	net float64

	// strict says instead that any may move, and that every node has to pay for
	// the disturbance that it begins; otherwise the round has to, as a whole.
	strict bool
}

// holds reports whether all that moves with c is in the group.
func (g *group) holds(c *candidate) bool {
	for _, x := range c.pods {
		if !g.has[x.workload] {
			return false
		}
	}
	return true
}

// groupsMax is how many groups are planned, and beginsMax of how many nodes' own
// workloads groups are made.
const (
	groupsMax = 3
	beginsMax = 24
)

// movers counts the pods on a node that would have to move, by workload.
func (m *mover) movers(id policy.NodeID) []moving {
	var list []moving
	for _, p := range m.space().Pods(id) {
		t := &m.s.Templates[m.s.Pods[p].Template]
		if t.DaemonSet || t.Workload < 0 {
			continue
		}
		i := slices.IndexFunc(list, func(x moving) bool { return x.workload == t.Workload })
		if i < 0 {
			list = append(list, moving{t.Workload, 0})
			i = len(list) - 1
		}
		list[i].pods++
	}
	return list
}

// groups returns the sets of workloads with which a round is expected to save
// most, best first: each begins with those of one node, and takes in those of
// others as long as that saves more.
func (m *mover) groups() []group {
	var groups []group
	tried := m.list[:min(len(m.list), triesMax)]
	for i := range tried[:min(len(tried), beginsMax)] {
		g := group{has: make([]bool, len(m.s.Workloads))}
		g.join(&tried[i])
		g.net = m.expects(&g, tried)
		for m.grow(&g, tried) {
		}
		if g.net > 0 && !slices.ContainsFunc(groups, func(x group) bool { return slices.Equal(x.has, g.has) }) {
			groups = append(groups, g)
		}
	}
	slices.SortStableFunc(groups, func(a, b group) int { return cmp.Compare(b.net, a.net) })
	return groups[:min(len(groups), groupsMax)]
}

func (g *group) join(c *candidate) {
	for _, x := range c.pods {
		g.has[x.workload] = true
	}
}

// grow takes in the workloads of the node with which g is expected to save most,
// and reports whether any saves more.
func (m *mover) grow(g *group, list []candidate) bool {
	var best group
	for i := range list {
		if g.holds(&list[i]) {
			continue
		}
		next := group{has: slices.Clone(g.has)}
		next.join(&list[i])
		if next.net = m.expects(&next, list); next.net > g.net && (best.has == nil || next.net > best.net) {
			best = next
		}
	}
	if best.has == nil {
		return false
	}
	*g = best
	return true
}

// expects returns what a round of g is expected to save in dollars, as far as that
// can be told without looking for places.
func (m *mover) expects(g *group, list []candidate) float64 {
	moved := m.expected
	clear(moved)
	sum, left := 0.0, m.left
	for i := range list {
		c := &list[i]
		if left == 0 || !g.holds(c) {
			continue
		}
		gain := c.gain
		for _, x := range c.pods {
			gain -= m.waves(x.workload, moved[x.workload]+x.pods) - m.waves(x.workload, max(moved[x.workload], 1))
		}
		if gain <= 0 {
			continue
		}
		sum += gain
		left--
		for _, x := range c.pods {
			moved[x.workload] += x.pods
		}
	}
	for w := range moved {
		if moved[w] > 0 {
			sum -= m.waves(policy.WorkloadID(w), 1)
		}
	}
	return sum
}
