package autoscaler

import (
	"slices"
	"sort"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
)

// PlacePending binds pending pods to nodes of the snapshot, higher priorities first, and returns
// the node of each pod, or policy.None for a pod that needs a new node. A nominated pod gets its
// nominated node if it fits there. The pods stay bound in the Space, so that later decisions of the
// same iteration count them (core/podlistprocessor/filter_out_schedulable.go).
func (c *Cluster) PlacePending(m *Memory, pods []policy.Pod) []policy.NodeID {
	m.search.reset(c)
	order := make([]int, len(pods))
	for i := range order {
		order[i] = i
	}
	sort.Slice(order, func(a, b int) bool { return c.priority(&pods[order[a]]) > c.priority(&pods[order[b]]) })
	found := slices.Repeat([]policy.NodeID{policy.None}, len(pods))
	place := func(i int, n policy.NodeID) {
		c.Space.Bind(&pods[i], n)
		found[i] = n
	}
	hint := func(i int) {
		if n := pods[i].Nominated; n != policy.None && c.Space.CheckExpected(&pods[i], n) == placement.OK {
			place(i, n)
		}
	}
	if !c.Version.Before(37) {
		for _, i := range order {
			hint(i)
		}
	}
	failed := make([]bool, len(c.Templates))
	for _, i := range order {
		p := &pods[i]
		if found[i] == policy.None && c.Version.Before(37) {
			hint(i)
		}
		if found[i] != policy.None || failed[p.Template] && c.alike(p.Template) {
			continue
		}
		if n := c.find(&m.search, p, nil); n != policy.None {
			place(i, n)
		} else {
			failed[p.Template] = true
		}
	}
	return found
}

func (c *Cluster) priority(p *policy.Pod) int32 { return c.Templates[p.Template].Priority }

// alike reports whether the Cluster Autoscaler treats the pods of t as equal: they have a common
// controller and no volumes other than claims that the template names
// (core/scaleup/equivalence/groups.go).
func (c *Cluster) alike(t policy.TemplateID) bool {
	if o := c.Traits[t].Owner; o == OwnerNone || o == OwnerDaemonSet || o == OwnerMirror {
		return false
	}
	return !slices.ContainsFunc(c.Templates[t].Volumes, func(v policy.Volume) bool { return v.Claim == "" })
}
