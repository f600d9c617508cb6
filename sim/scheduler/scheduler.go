// Package scheduler chooses nodes for pods, and victims for pods that fit nowhere, like
// kube-scheduler's default profile. .ci/tools/schedulerdiff compares it with the real scheduler;
// docs/fidelity.md lists what it leaves out.
package scheduler

import (
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
)

// A Scheduler chooses nodes like kube-scheduler's default profile: of the nodes that pass all
// filters, the one with the highest weighted score. It considers every node, and takes the one with
// the lowest id of equal nodes.
//
// For each template, it keeps the nodes that pass their own filters, grouped by all inputs of
// scores and topology filters other than free resources. Within a group, the node with the best
// resource score is the best, so a choice considers one node of each group. A change of a node only
// moves that node between groups. A node to which a pod is nominated forms a group of its own,
// since its fit depends on the pod to be scheduled.
type Scheduler struct {
	space     *placement.Space
	templates []policy.Template
	indexes   []*nodeIndex

	changes changeLog

	scored []scored
	seen   []int32 // by domain, the number of the last constraint and pick that found it
	picks  int32

	nominations []nomination    // in ascending order of nodes
	nominated   []policy.NodeID // by pod, 1 + the node to which it is nominated, 0 for none

	preemption
}

// A preemption is the state of preemption.
type preemption struct {
	preemptibles []preemptible // by node

	memories  []memory // by template
	pdbStates pdbStates
	drops     uint64 // number of times that all memories were dropped

	// The following fields are scratch memory of Preempt.
	candidate candidate
	lower     []policy.PodID
	spared    []spared
}

// A changeLog lists the nodes that changed. Each reader stores the number of entries that it has
// read.
type changeLog struct {
	nodes []policy.NodeID
	base  int // number of the first entry of nodes

	// latest is the number of the last entry of each node, so that a reader visits a node with
	// several entries only once.
	latest []int
}

// logMax is the maximum number of entries. A reader that is further behind reads all nodes.
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

// since calls f once for each node that changed after the entries read, and marks all as read. It
// returns false, and calls nothing, if entries were dropped in the meantime, so that any node may
// have changed.
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
// peers reports whether kube-scheduler's default constraints spread pods of t over pods of u, if t
// has no spread constraint. The peers of t are the pods that match all of the selectors of its
// ReplicaSet, StatefulSet or ReplicationController and of all Services that select t's pods.
// Without any such selector (a Job that no Service selects), t has no peers.
// (pkg/scheduler/framework/plugins/helper/spread.go, Kubernetes 1.35.)
func New(sp *placement.Space, templates []policy.Template, peers func(t, u *policy.Template) bool) *Scheduler {
	s := &Scheduler{space: sp, templates: templates, indexes: make([]*nodeIndex, len(templates)),
		preemption: preemption{memories: make([]memory, len(templates))}}
	for i := range templates {
		s.indexes[i] = newNodeIndex(sp, templates, &templates[i], peers)
	}
	return s
}

// Changed records that node n, or the set of its pods, has changed.
func (s *Scheduler) Changed(n policy.NodeID) {
	s.changes.add(n)
	if int(n) < len(s.preemptibles) {
		s.preemptibles[n].known = false
	}
}

// catchUp updates r with the nodes that changed since its last use.
func (s *Scheduler) catchUp(r *nodeIndex) {
	update := func(n policy.NodeID) { r.update(s.space, n, len(s.nominatedTo(n)) > 0) }
	if s.changes.since(&r.read, update) {
		return
	}
	for n := range s.space.Nodes() {
		update(policy.NodeID(n))
	}
}

// Pick returns the best node for p, and whether any node passes all filters. A pod gets the node to
// which it is nominated if it fits there.
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

// A NodeScore is the weighted sum of the scores of a node.
type NodeScore struct {
	Node  policy.NodeID
	Score int64
}

// Scores returns the score of the best node of each group of nodes that the last Pick considered.
// It returns nil if that Pick did not need scores.
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
