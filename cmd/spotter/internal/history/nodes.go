package history

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// A life is the lifetime of a node that may still run.
type life struct {
	node Node
	last policy.Time // last time at which it was observed
}

// A nodes tracks nodes by their names.
type nodes struct {
	clock *clock
	open  map[string]*life
	done  []Node
	kinds map[string]*NodeKind // by their labels
}

// observe records that a node with a creation time exists at an instant.
func (s *nodes) observe(name string, created, at policy.Time) {
	l := s.open[name]
	if l != nil && l.node.From != max(created, s.clock.from) { // another node of the same name
		s.end(l, min(created, s.clock.seen(l.last.Add(s.clock.step))))
		l = nil
	}
	if l == nil {
		l = &life{node: Node{Name: name, From: max(created, s.clock.from)}}
		s.open[name] = l
	}
	l.last = at
}

// end records that a node did not exist at an instant. It terminated since its last observation, on
// average in the middle of the interval.
func (s *nodes) end(l *life, at policy.Time) {
	l.node.To = at.Add(-s.clock.step / 2)
	if l.node.To > l.node.From {
		s.done = append(s.done, l.node)
	}
	delete(s.open, l.node.Name)
}

// settle ends the lifetimes of nodes that the last observation did not contain.
func (s *nodes) settle() {
	for _, name := range sorted(s.open) {
		l := s.open[name]
		if gone := s.clock.seen(l.last.Add(s.clock.step)); gone <= s.clock.last {
			s.end(l, gone)
		}
	}
}

// describe adds labels to a node.
func (s *nodes) describe(name string, labels map[string]string) {
	l := s.open[name]
	if l == nil || len(labels) == 0 {
		return
	}
	if l.node.Kind != nil {
		if !missing(l.node.Kind.Labels, labels) {
			return
		}
		both := maps.Clone(labels)
		maps.Copy(both, l.node.Kind.Labels)
		labels = both
	}
	l.node.Kind = s.kind(labels)
}

func missing(have, labels map[string]string) bool {
	for k := range labels {
		if _, has := have[k]; !has {
			return true
		}
	}
	return false
}

// kind returns the shared value for equal labels.
func (s *nodes) kind(labels map[string]string) *NodeKind {
	var key strings.Builder
	for _, k := range sorted(labels) {
		fmt.Fprintf(&key, "%s=%s\n", k, labels[k])
	}
	k := s.kinds[key.String()]
	if k == nil {
		k = &NodeKind{maps.Clone(labels)}
		s.kinds[key.String()] = k
	}
	return k
}

// finish returns the lifetimes of all nodes.
func (s *nodes) finish() []Node {
	s.settle()
	for _, name := range sorted(s.open) {
		n := s.open[name].node
		n.To = s.clock.to
		s.done = append(s.done, n)
	}
	slices.SortFunc(s.done, func(a, b Node) int {
		return cmp.Or(cmp.Compare(a.From, b.From),
			cmp.Compare(a.Name, b.Name))
	})
	return s.done
}

// Hours returns the lifetime of n in hours.
func (n *Node) Hours() float64 { return n.To.Sub(n.From).Hours() }

// Count returns the maximum number of nodes at once, and the mean number.
func (h *History) Count() (most int, mean float64) {
	delta := map[policy.Time]int{}
	hours := 0.0
	for i := range h.Nodes {
		n := &h.Nodes[i]
		delta[n.From]++
		delta[n.To]--
		hours += n.Hours()
	}
	now := 0
	for _, at := range sorted(delta) {
		now += delta[at]
		most = max(most, now)
	}
	return most, hours / max(h.To.Sub(h.From), time.Millisecond).Hours()
}
