package capture

import (
	"slices"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/history"
	"github.com/spotter-dev/spotter/policy"
)

// podsOnNodes maps each node to the number of its pods at the start, by the name of their workload
// in the scenario.
type podsOnNodes map[policy.NodeID]map[string]int32

// add places up to n pods of a load on a node and returns the number that were not placed. In total
// it places no more than the load has at the start.
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

// onNodes returns the pods on each node at the start of the scenario. It must be called after the
// workloads are written, which sets their names.
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

// onNodesThen is like onNodes for the start of the history.
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

// startRoom returns the number of pods of a written load at the start; n for a service.
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

// keyThen returns the key of a workload of a history.
func keyThen(kind policy.WorkloadKind, name string) string { return kind.String() + name }

// goOnPods adds to h the nodes of current pods that already ran at the start of the history. A
// history from logs has no other placement.
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
