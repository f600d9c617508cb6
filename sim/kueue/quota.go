package kueue

import "slices"

// A node is a queue or a cohort in the tree of quotas. Its slices are indexed by pair.
type node struct {
	parent  int // index into nodes, or None
	cohorts []int
	queues  []int
	height  int     // distance to the furthest leaf below it; 0 for a queue
	nominal []int64 // its own quota
	borrow  []int64 // None without a limit
	lend    []int64 // None without a limit
	quota   []int64 // its own quota, and what its children lend
	usage   []int64 // what counts against quota
	guarded []int64 // the part of quota that only its subtree can use
}

// buildTree builds the nodes: queues first, then cohorts.
func (s *System) buildTree() {
	pairs := len(s.Flavors) * s.Resources
	add := func(parent int, quotas []Quota) {
		n := node{parent: parent, nominal: make([]int64, pairs), quota: make([]int64, pairs), usage: make([]int64, pairs),
			guarded: make([]int64, pairs), borrow: slices.Repeat([]int64{None}, pairs), lend: slices.Repeat([]int64{None}, pairs)}
		for _, q := range quotas {
			p := s.pairOf(q.Flavor, q.Resource)
			n.nominal[p], n.borrow[p], n.lend[p] = q.Nominal, q.Borrowing, q.Lending
		}
		s.nodes = append(s.nodes, n)
	}
	at := func(cohort int) int {
		if cohort == None {
			return None
		}
		return len(s.Queues) + cohort
	}
	for i := range s.Queues {
		add(at(s.Queues[i].Cohort), s.Queues[i].Quotas)
	}
	for i := range s.Cohorts {
		add(at(s.Cohorts[i].Parent), s.Cohorts[i].Quotas)
	}
	for i := range s.nodes {
		if p := s.nodes[i].parent; p != None && i < len(s.Queues) {
			s.nodes[p].queues = append(s.nodes[p].queues, i)
		} else if p != None {
			s.nodes[p].cohorts = append(s.nodes[p].cohorts, i)
		}
	}
	for i := range s.nodes {
		if s.nodes[i].parent == None {
			s.sumQuota(i)
		}
	}
}

// sumQuota sets the quota and the height of node i and of those below it.
func (s *System) sumQuota(i int) {
	n := &s.nodes[i]
	copy(n.quota, n.nominal)
	for _, child := range slices.Concat(n.cohorts, n.queues) {
		s.sumQuota(child)
		c := &s.nodes[child]
		if child >= len(s.Queues) || !s.Queues[child].Stopped {
			n.height = max(n.height, c.height+1)
		}
		for p := range n.quota {
			n.quota[p] += c.quota[p] - c.guarded[p]
		}
	}
	for p := range n.quota {
		if n.lend[p] != None {
			n.guarded[p] = max(0, n.quota[p]-n.lend[p])
		}
	}
}

// free returns how much of the guarded quota is not used.
func (n *node) free(p pair) int64 { return max(0, n.guarded[p]-n.usage[p]) }

// within reports whether the usage is within the quota in all pairs.
func (n *node) within(pairs []pair) bool {
	return !slices.ContainsFunc(pairs, func(p pair) bool { return n.usage[p] > n.quota[p] })
}

// exceeds reports whether v more would exceed the quota.
func (n *node) exceeds(p pair, v int64) bool { return n.usage[p]+v > n.quota[p] }

// available returns what node i can still use of p. It is negative if more is used than there is.
func (s *System) available(i int, p pair) int64 {
	n := &s.nodes[i]
	if n.parent == None {
		return n.quota[p] - n.usage[p]
	}
	from := s.available(n.parent, p)
	if n.borrow[p] != None {
		lent := n.quota[p] - n.guarded[p]
		used := max(0, n.usage[p]-n.guarded[p])
		from = min(from, lent-used+n.borrow[p])
	}
	return n.free(p) + from
}

// reachable returns the most that node i can use of p when nothing else uses it.
func (s *System) reachable(i int, p pair) int64 {
	n := &s.nodes[i]
	if n.parent == None {
		return n.quota[p]
	}
	most := n.guarded[p] + s.reachable(n.parent, p)
	if n.borrow[p] != None {
		most = min(most, n.quota[p]+n.borrow[p])
	}
	return most
}

// use adds v to the usage of node i, and what exceeds its guarded quota to that of its parent.
func (s *System) use(i int, p pair, v int64) {
	n := &s.nodes[i]
	free := n.free(p)
	n.usage[p] += v
	if n.parent != None && v > free {
		s.use(n.parent, p, v-free)
	}
}

// release is the reverse of use.
func (s *System) release(i int, p pair, v int64) {
	n := &s.nodes[i]
	above := n.usage[p] - n.guarded[p]
	n.usage[p] -= v
	if n.parent != None && above > 0 {
		s.release(n.parent, p, min(v, above))
	}
}

// distance returns the height of the lowest subtree around queue i that has v more of p, and
// whether it is smaller than the whole tree. If none has, it returns the height of the whole tree.
// 0 means that the queue does not need to borrow.
func (s *System) distance(i int, p pair, v int64) (height int, smaller bool) {
	n := &s.nodes[i]
	if n.parent == None || !n.exceeds(p, v) {
		return 0, n.parent != None
	}
	v -= n.free(p)
	for at := n.parent; ; at = n.parent {
		n = &s.nodes[at]
		if !n.exceeds(p, v) {
			return n.height, n.parent != None
		}
		if n.parent == None {
			return n.height, false
		}
		v -= n.free(p)
	}
}
