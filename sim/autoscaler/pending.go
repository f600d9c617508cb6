package autoscaler

import (
	"slices"
	"sort"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
)

// PlacePending finds room for pending pods on the nodes of the snapshot, higher priorities first,
// and returns the node of each pod, policy.None for those that need a new one. A pod that is
// nominated stays where it is while it fits. The pods stay bound in the Space: what is decided later
// in the same look counts them (core/podlistprocessor/filter_out_schedulable.go).
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

// alike reports whether the pods of t are equal to the Cluster Autoscaler: they have one controller,
// and no volumes of their own (core/scaleup/equivalence/groups.go).
func (c *Cluster) alike(t policy.TemplateID) bool {
	if o := c.Traits[t].Owner; o == OwnerNone || o == OwnerDaemonSet || o == OwnerMirror {
		return false
	}
	return !slices.ContainsFunc(c.Templates[t].Volumes, func(v policy.Volume) bool { return v.Claim == "" })
}
