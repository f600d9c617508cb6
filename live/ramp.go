package live

import (
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// The stages of a ramp.
const (
	rampOne     = iota // one node in all
	rampPercent        // one node in a hundred
	rampDone           // as much as the policy and its budgets want
)

// A ramp lets a pool that has just become active move one node, then one in a hundred, and only
// then as much as its budgets allow, so that a fault of a cluster, a permission or a manifest
// affects only one node first. It is stored in the memory of the pool, and restarts whenever the
// pool becomes active.
type ramp struct {
	Stage int `json:"stage,omitempty"`

	// Moving are the nodes that were admitted in this stage and still exist, ascending by node.
	Moving []rampMove `json:"moving,omitempty"`

	// Moved is how many went away in this stage as was wanted.
	Moved int `json:"moved,omitempty"`
}

// A rampMove is a node that was let through, and when it was last ordered to go.
type rampMove struct {
	Node    string      `json:"node"`
	Ordered policy.Time `json:"ordered"`

	// Noticed says that the provider takes the node: its end shows nothing.
	Noticed bool `json:"noticed,omitempty"`
}

// allowance returns how many nodes of a pool may be under way at once.
func (r *ramp) allowance(nodes int) int {
	switch r.Stage {
	case rampOne:
		return 1
	case rampPercent:
		return max(1, nodes/100)
	}
	return nodes
}

// admit reports whether the node may be moved by choice now.
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

// observe notes the results of the admitted nodes. A node has moved if it is gone, its drain
// succeeded by drained, and it had no notice. A node whose drain failed has not moved, whatever
// happens to it later, and neither has a node that no controller has touched for the time settle. A
// node whose drain has not ended is waited for. Reported results are removed from drained. The
// stage is over when all admitted nodes have moved.
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
