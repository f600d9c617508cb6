package capture

import (
	"slices"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/history"
	"github.com/spotter-dev/spotter/policy"
)

// podsOnNodes are how many pods of each workload, by its name in the scenario, run on
// nodes from the start.
type podsOnNodes map[policy.NodeID]map[string]int32

// add puts up to n pods of a load onto a node, no more in all than are wanted of it at the
// start.
func (on podsOnNodes) add(node policy.NodeID, x *load, n int32) (rest int32) {
	took := min(n, x.room)
	if took > 0 {
		x.room -= took
		if on[node] == nil {
			on[node] = map[string]int32{}
		}
		on[node][x.written] += took
	}
	return n - took
}

// onNodes returns which pods run on which nodes at the start of the scenario. Call it after the
// workloads are written, which gives them their names.
func (c *workWriter) onNodes() podsOnNodes {
	if c.o.History != nil {
		return c.onNodesThen()
	}
	on := podsOnNodes{}
	for i := range c.s.Pods {
		p := &c.s.Pods[i]
		if x := c.ofTemplate[p.Template]; p.Node >= 0 && c.nodes.in(p.Node) &&
			(p.Phase == policy.PodStarting || p.Phase == policy.PodReady) && x != nil {
			on.add(p.Node, x, 1)
		}
	}
	return on
}

// onNodesThen does the same for the start of the history.
func (c *workWriter) onNodesThen() podsOnNodes {
	on, nodes := podsOnNodes{}, map[string]policy.NodeID{}
	for i := range c.s.Nodes {
		if id := policy.NodeID(i); c.nodes.seeded(id) && c.nodes.places[i].pool != nil {
			nodes[c.s.Nodes[i].Name] = id
		}
	}
	known, all := int32(0), int32(0)
	for _, x := range c.o.History.Placed {
		id, there := nodes[x.Node]
		n := x.N
		for _, l := range c.then[keyThen(x.Kind, x.Workload)] {
			if there {
				n = on.add(id, l, n)
			}
		}
		known += x.N - n
	}
	for _, loads := range c.then {
		for _, x := range loads {
			all += x.room
		}
	}
	if all > 0 {
		c.assume("where they ran at the start is unknown for %d of %d pods: the scheduler puts them on nodes", all, all+known)
	}
	return on
}

// startRoom returns how many pods of a load that is written are wanted at the start, n of
// a service.
func (c *workWriter) startRoom(x *load, n int32) int32 {
	switch {
	case x.kind == policy.KindDaemonSet || x.t.DaemonSet || x.w != nil && x.w.Suspended:
		return 0
	case x.past != nil && x.past.job != nil:
		runs, j := int32(0), x.past.job
		for _, at := range j.Runs {
			if at == c.o.History.From {
				runs++
			}
		}
		return runs * min(j.Parallelism, j.Completions)
	}
	return n
}

// keyThen names what a history has.
func keyThen(kind policy.WorkloadKind, name string) string { return kind.String() + name }

// goOnPods adds the placement of pods of now that already ran at the start of a history. For a
// history from logs no other placement is known.
func goOnPods(h *history.History, s *policy.Snapshot) {
	on := map[history.Placed]int32{}
	for i := range s.Pods {
		p := &s.Pods[i]
		t := &s.Templates[p.Template]
		if p.Node < 0 || t.Workload < 0 || t.DaemonSet || p.Bound <= 0 || p.Bound > h.From {
			continue
		}
		w := &s.Workloads[t.Workload]
		on[history.Placed{Node: s.Nodes[p.Node].Name, Workload: w.Name, Kind: w.Kind}]++
	}
	for x, n := range on {
		x.N = n
		h.Placed = append(h.Placed, x)
	}
	slices.SortFunc(h.Placed, history.Placed.Compare)
}
