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
	has members
	net float64

	// strict says instead that any may move, and that every node has to pay for
	// the disturbance that it begins; otherwise the round has to, as a whole.
	strict bool
}

// holds reports whether all that moves with c is in the group.
func (g *group) holds(c *candidate) bool { return c.has.within(g.has) }

// members is a set of workloads, a bit for each.
type members []uint64

// within reports whether y holds all of x.
func (x members) within(y members) bool {
	for i, word := range x {
		if word&^y[i] != 0 {
			return false
		}
	}
	return true
}

// add takes in all of y.
func (x members) add(y members) {
	for i, word := range y {
		x[i] |= word
	}
}

// membersOf returns the workloads of list.
func (m *rebalance) membersOf(list []moving) members {
	x := make(members, (len(m.s.Workloads)+63)/64)
	for _, k := range list {
		x[k.workload/64] |= 1 << (k.workload % 64)
	}
	return x
}

// groupsMax is how many groups are planned, and beginsMax of how many nodes' own
// workloads groups are made.
const (
	groupsMax = 3
	beginsMax = 24
)

// movingPods counts the pods on a node that would have to move, by workload.
func (m *rebalance) movingPods(id policy.NodeID) []moving {
	var list []moving
	for _, p := range m.e.pods.on(id) {
		t := &m.s.Templates[p.template]
		if t.Workload < 0 {
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

// moves reports whether all that would have to move off a node is of has.
func (m *rebalance) moves(id policy.NodeID, has members) bool {
	for _, p := range m.e.pods.on(id) {
		if w := m.s.Templates[p.template].Workload; w >= 0 && has[w/64]&(1<<(w%64)) == 0 {
			return false
		}
	}
	return true
}

// groups returns the sets of workloads with which a round is expected to save
// most, best first: each begins with those of one node, and takes in those of
// others as long as that saves more.
func (m *rebalance) groups() []group {
	var groups []group
	var met []members // all that groups were on their way
	tried := m.list
	if !m.promises(tried) {
		return nil
	}
	for i := range tried {
		tried[i].first = m.gains(&tried[i], nil)
	}
	for i := range tried[:min(len(tried), beginsMax)] {
		g := group{has: slices.Clone(tried[i].has)}
		g.net = m.expects(g.has, tried)
		// What grows out of a set depends on nothing else, so that one which was met
		// before ends as it did then.
		known := false
		for more := true; more && !known; {
			if known = slices.ContainsFunc(met, func(x members) bool { return slices.Equal(x, g.has) }); !known {
				met = append(met, g.has)
				more = m.grow(&g, tried)
			}
		}
		if g.net > 0 && !known {
			groups = append(groups, g)
		}
	}
	slices.SortStableFunc(groups, func(a, b group) int { return cmp.Compare(b.net, a.net) })
	return groups[:min(len(groups), groupsMax)]
}

// promises reports whether any group of list may save. What it costs that pods of a
// workload move is shared out over the nodes that have them: what each pod costs, and
// either its part of a wave or, where all may go in one, as much of that as a node
// gains. Where this covers what every node gains, no group gains more than it costs.
func (m *rebalance) promises(list []candidate) bool {
	each, wave := make([]float64, len(m.s.Workloads)), make([]float64, len(m.s.Workloads))
	pods := make([]int32, len(m.s.Workloads))
	for i := range list {
		for _, x := range list[i].pods {
			pods[x.workload] += x.pods
		}
	}
	for w := range pods {
		one := float64(m.costs.minutes[w] * m.costs.short)
		each[w], wave[w] = m.costs.of(policy.WorkloadID(w), 1)-one, one
		if at := max(1, m.costs.slack[w]); pods[w] > at {
			each[w], wave[w] = each[w]+one/float64(at), 0
		}
	}
	for i := range list {
		c := &list[i]
		gain := c.gain * (1 + leastPart)
		for _, x := range c.pods {
			gain -= float64(each[x.workload] * float64(x.pods) * (1 - leastPart))
		}
		for _, x := range c.pods {
			lent := min(max(gain, 0), wave[x.workload]*(1-leastPart))
			gain, wave[x.workload] = gain-lent, wave[x.workload]-lent
		}
		if gain > 0 {
			return true
		}
	}
	return false
}

// grow takes in the workloads of the node with which g is expected to save most,
// and reports whether any saves more.
func (m *rebalance) grow(g *group, list []candidate) bool {
	best := group{}
	next := make(members, len(g.has))
	for i := range list {
		if g.holds(&list[i]) {
			continue
		}
		copy(next, g.has)
		next.add(list[i].has)
		if net := m.expects(next, list); net > g.net && (best.has == nil || net > best.net) {
			best.has, best.net = append(best.has[:0], next...), net
		}
	}
	if best.has == nil {
		return false
	}
	*g = best
	return true
}

// gains returns what c saves in dollars once so many pods of each workload have moved,
// none where moved is nil. That a workload is short for the first time is left out.
func (m *rebalance) gains(c *candidate, moved []int32) float64 {
	gain := c.gain
	for _, x := range c.pods {
		before := int32(0)
		if moved != nil {
			before = moved[x.workload]
		}
		gain -= m.costs.of(x.workload, before+x.pods) - m.costs.of(x.workload, max(before, 1))
	}
	return gain
}

// expects returns what a round of the workloads of has is expected to save in
// dollars, as far as that can be told without looking for places.
func (m *rebalance) expects(has members, list []candidate) float64 {
	moved := m.expected
	clear(moved)
	sum, left := 0.0, m.left
	for i := range list {
		c := &list[i]
		if left == 0 || !c.has.within(has) {
			continue
		}
		gain := c.first
		if slices.ContainsFunc(c.pods, func(x moving) bool { return moved[x.workload] > 0 }) {
			gain = m.gains(c, moved)
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
			sum -= m.costs.of(policy.WorkloadID(w), 1)
		}
	}
	return sum
}
