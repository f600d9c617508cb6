package live

import (
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// Stages of a ramp.
const (
	rampOne     = iota // one node in total
	rampPercent        // one node in a hundred
	rampDone           // no limit beyond the policy and its budgets
)

// A ramp lets a pool that has just become active move one node, then one in a hundred, and only
// then as many as its budgets allow, so that a fault of the cluster, a permission or a manifest
// first affects only one node. It is stored in the memory of the pool, and restarts whenever the
// pool becomes active.
type ramp struct {
	Stage int `json:"stage,omitempty"`

	// Moving contains the nodes that were admitted in this stage and still exist, ordered by node.
	Moving []rampMove `json:"moving,omitempty"`

	// Moved is the number of nodes that were moved successfully in this stage.
	Moved int `json:"moved,omitempty"`
}

// A rampMove is an admitted node and the time of its last order.
type rampMove struct {
	Node    string      `json:"node"`
	Ordered policy.Time `json:"ordered"`

	// Noticed reports whether the node is under notice, so that its end is not evidence of a
	// successful move.
	Noticed bool `json:"noticed,omitempty"`
}

// allowance returns the maximum number of nodes of a pool with the given number of nodes that the
// present stage may move.
func (r *ramp) allowance(nodes int) int {
	switch r.Stage {
	case rampOne:
		return 1
	case rampPercent:
		return max(1, nodes/100)
	}
	return nodes
}

// admit reports whether a node may be moved voluntarily now. nodes is the number of nodes of its
// pool.
func (r *ramp) admit(node string, nodes int, now policy.Time) bool {
	if r.Stage >= rampDone {
		return true
	}
	i, found := slices.BinarySearchFunc(r.Moving, node, func(m rampMove, name string) int {
		switch {
		case m.Node < name:
			return -1
		case m.Node > name:
			return 1
		}
		return 0
	})
	if found {
		r.Moving[i].Ordered = now
		return true
	}
	if len(r.Moving)+r.Moved >= r.allowance(nodes) {
		return false
	}
	r.Moving = slices.Insert(r.Moving, i, rampMove{Node: node, Ordered: now})
	return true
}

// observe records the results of the admitted nodes. A node has moved if it is gone, drained
// reports success, and it had no notice. A node whose drain failed has not moved, regardless of its
// later fate, and neither has a node on which no controller has acted for the time settle. A node
// whose drain is in progress remains in Moving. Recorded results are removed from drained. The
// stage ends when at least one node has moved and no admitted node remains.
func (r *ramp) observe(
	live map[string]*policy.Node, drained map[string]bool, draining func(string) bool, now policy.Time, settle time.Duration,
) {
	if r.Stage >= rampDone {
		return
	}
	r.Moving = slices.DeleteFunc(r.Moving, func(m rampMove) bool {
		n := live[m.Node]
		succeeded, ended := drained[m.Node]
		over := n == nil && !draining(m.Node)
		if n != nil {
			untouched := n.ActedBy != policy.ActorUs && n.Phase <= policy.NodeInitialized
			over = untouched && (ended && !succeeded || now.Sub(m.Ordered) >= settle)
		}
		if over {
			delete(drained, m.Node)
		}
		if over && n == nil && succeeded && !m.Noticed {
			r.Moved++
		}
		return over
	})
	for i := range r.Moving {
		if n := live[r.Moving[i].Node]; n != nil {
			r.Moving[i].Noticed = n.ReclaimAt != 0
		}
	}
	if r.Moved > 0 && len(r.Moving) == 0 {
		*r = ramp{Stage: r.Stage + 1}
	}
}
