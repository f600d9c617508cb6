// Package scheduler chooses nodes for pods, and victims for pods that find none, as
// kube-scheduler's default profile does. It is held against the real one by
// .ci/tools/schedulerdiff; docs/fidelity.md lists what it leaves out.
package scheduler

import (
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
)

// A Scheduler chooses nodes as kube-scheduler's default profile does: of the
// nodes that pass all filters the one with the greatest weighted score. It
// looks at every node, and of equal nodes takes the one with the lowest id.
//
// For each template it keeps the nodes that pass the filters of their own,
// grouped by all that scores and topology filters look at but free resources.
// Within a group the node with the best resource score is the best, so that a
// choice looks at one node of each group. A change of a node moves that node
// between groups only. A node that a pod is nominated to is a group by itself,
// since what it takes depends on the pod that asks.
type Scheduler struct {
	space     *placement.Space
	templates []policy.Template
	indexes   []*nodeIndex

	changes changeLog

	scored []scored
	seen   []int32 // by domain: the constraint and pick that met it last
	picks  int32

	nominations []nomination    // ascending by node
	nominated   []policy.NodeID // by pod, 1 + the node that it is nominated to, 0 for none

	preemption
}

// A preemption is what is known of pods that may be ended for others.
type preemption struct {
	preemptibles []preemptible // by node

	memories  []memory // by template
	pdbStates pdbStates
	drops     uint64 // how often all memories were dropped

	// What follows is scratch of Preempt.
	candidate candidate
	lower     []policy.PodID
	spared    []spared
}

// A changeLog lists the nodes that changed. Each reader keeps the number of entries that it has read.
type changeLog struct {
	nodes []policy.NodeID
	base  int // the number of the first of nodes

	// latest is the number of the last entry of each node, so that one that changed often is
	// looked at once.
	latest []int
}

// logMax is how many changes are remembered. A reader that is further behind reads all nodes.
const logMax = 1 << 13

func (l *changeLog) add(n policy.NodeID) {
	if len(l.nodes) >= logMax {
		l.base += len(l.nodes)
		l.nodes = l.nodes[:0]
	}
	for int(n) >= len(l.latest) {
		l.latest = append(l.latest, -1)
	}
	l.latest[n] = l.base + len(l.nodes)
	l.nodes = append(l.nodes, n)
}

// since calls f once with each node that changed after the entries read, and counts all as read. It
// reports false, and calls nothing, where entries were dropped since: any node may have changed.
func (l *changeLog) since(read *int, f func(policy.NodeID)) bool {
	from := *read
	*read = l.base + len(l.nodes)
	if from < l.base {
		return false
	}
	for i, n := range l.nodes[from-l.base:] {
		if l.latest[n] == from+i {
			f(n)
		}
	}
	return true
}

// New returns a scheduler of pods of the given templates on the nodes of sp.
//
// Peers says which pods kube-scheduler's default constraints spread pods of t over, if t states no
// constraint: those that the selector of its ReplicaSet, StatefulSet or ReplicationController and
// the selectors of all Services with t's pods select together. Without any such selector (a Job
// that no Service selects) t has no peers. (pkg/scheduler/framework/plugins/helper/spread.go,
// Kubernetes 1.35.)
func New(sp *placement.Space, templates []policy.Template, peers func(t, u *policy.Template) bool) *Scheduler {
	s := &Scheduler{space: sp, templates: templates, indexes: make([]*nodeIndex, len(templates)),
		preemption: preemption{memories: make([]memory, len(templates))}}
	for i := range templates {
		s.indexes[i] = newNodeIndex(sp, templates, &templates[i], peers)
	}
	return s
}

// Changed says that node n, or what is bound to it, is not what it was.
func (s *Scheduler) Changed(n policy.NodeID) {
	s.changes.add(n)
	if int(n) < len(s.preemptibles) {
		s.preemptibles[n].known = false
	}
}

// catchUp shows r the nodes that changed since it was used last.
func (s *Scheduler) catchUp(r *nodeIndex) {
	update := func(n policy.NodeID) { r.update(s.space, n, len(s.nominatedTo(n)) > 0) }
	if s.changes.since(&r.read, update) {
		return
	}
	for n := range s.space.Nodes() {
		update(policy.NodeID(n))
	}
}

// Pick returns the best node for p, and whether any passes all filters. A pod that
// is nominated to a node which takes it goes there.
func (s *Scheduler) Pick(p *policy.Pod) (policy.NodeID, bool) {
	s.scored = s.scored[:0]
	if len(s.nominations) > 0 {
		if n := s.Nominated(p.ID); n != policy.None && s.Fits(p, n) {
			return n, true
		}
	}
	r := s.indexes[p.Template]
	s.catchUp(r)
	for i := range r.groups {
		g := &r.groups[i]
		if g.nodes == 0 {
			continue
		}
		top := g.top(&r.grouping)
		if s.Fits(p, top.node) {
			s.scored = append(s.scored, scored{group: g, node: top.node, resource: top.score})
		}
	}
	switch len(s.scored) {
	case 0:
		return policy.None, false
	case 1:
		return s.scored[0].node, true
	}
	s.scoreSpread(r)
	s.scorePods(r)
	return s.best(), true
}

// A NodeScore is the weighted sum of the scores of one node.
type NodeScore struct {
	Node  policy.NodeID
	Score int64
}

// Scores returns the score of the best node of each group of nodes that the last
// Pick took into account; none if it did not score.
func (s *Scheduler) Scores() []NodeScore {
	if len(s.scored) < 2 {
		return nil
	}
	scores := make([]NodeScore, len(s.scored))
	for i := range s.scored {
		scores[i] = NodeScore{s.scored[i].node, s.scored[i].total}
	}
	return scores
}
