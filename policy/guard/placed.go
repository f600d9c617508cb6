package guard

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/scratch"
)

// A placed records, by node, the pods that run on it, their total requests, and the total requests
// including pods nominated for it. It is kept from snapshot to snapshot, since little changes in
// between.
type placed struct {
	mark      policy.Mark
	templates []policy.Template
	pods      []placedPod
	nodes     []placedOn
	bound     scratch.Lists // pods that run on a node
	ids       []policy.PodID
}

// A placedPod is the node on which a pod runs or for which it is nominated, or None.
type placedPod struct {
	node     policy.NodeID
	template policy.TemplateID
	stands   bool
}

// A placedOn is the requests on a node: in total, and of the pods that run there.
type placedOn struct{ all, standing policy.Resources }

// read updates x to s.
func (x *placed) read(s *policy.Snapshot) {
	if len(s.Templates) == 0 || len(x.templates) != len(s.Templates) || &x.templates[0] != &s.Templates[0] ||
		!s.Follows(x.mark) {
		x.mark, x.templates, x.pods, x.nodes = policy.Mark{}, s.Templates, x.pods[:0], x.nodes[:0]
		x.bound.Clear()
	}
	for len(x.nodes) < len(s.Nodes) {
		x.nodes = append(x.nodes, placedOn{})
	}
	for len(x.pods) < len(s.Pods) {
		x.pods = append(x.pods, placedPod{node: policy.None})
	}
	for c := s.PodsSince(x.mark); c.Next(); {
		id := c.ID
		p, now := &s.Pods[id], placedPod{node: policy.None}
		switch {
		case p.Phase == policy.PodPending:
			now = placedPod{p.Nominated, p.Template, false}
		case p.Phase >= policy.PodStarting:
			now = placedPod{p.Node, p.Template, true}
		}
		if was := x.pods[id]; was != now {
			x.count(was, -1)
			x.count(now, 1)
			x.pods[id] = now
		}
		if !now.stands {
			now.node = policy.None
		}
		x.bound.Put(int(id), int(now.node))
	}
	x.mark = s.Mark()
}

// count adds (sign 1) or subtracts (sign -1) the requests of a pod.
func (x *placed) count(p placedPod, sign int64) {
	if p.node < 0 {
		return
	}
	n, asked := &x.nodes[p.node], x.templates[p.template].Requests.Scale(sign)
	n.all = n.all.Plus(asked)
	if p.stands {
		n.standing = n.standing.Plus(asked)
	}
}

// on returns the pods that run on n in ascending order. The result is valid until the next call.
func (x *placed) on(n policy.NodeID) []policy.PodID {
	x.ids = x.ids[:0]
	for id := x.bound.First(int(n)); id >= 0; id = x.bound.Next(id) {
		x.ids = append(x.ids, policy.PodID(id))
	}
	slices.Sort(x.ids)
	return x.ids
}
