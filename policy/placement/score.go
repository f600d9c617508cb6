package placement

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// A Scoring provides data for a scheduler that scores nodes and therefore must know which nodes are
// equivalent for a pod.
type Scoring struct {
	sp *Space
}

// CheckAlone is like [Space.Check], but ignores the filters that depend on other nodes: pod
// affinity, topology spread and ReadWriteOncePod claims. It also ignores the zone of the pod's
// volumes.
func (sc Scoring) CheckAlone(p *policy.Pod, n policy.NodeID) Result {
	s := &sc.sp.occupancy.slots[n]
	k := &sc.sp.table.kinds[p.Template]
	if s.state != ready && (!k.daemon || s.state < joined || s.state == leaving) {
		return NotReady
	}
	if v := sc.sp.table.suits(p.Template, s.class, sc.sp.occupancy.nodes[n].host, sc.sp.occupancy.nodes[n].name); v != OK {
		return v
	}
	if k.ports != nil && sc.sp.occupancy.portTaken(k, n) {
		return PortTaken
	}
	if v := fits(k, &s.free, s.gpu); v != OK {
		return v
	}
	if !sc.sp.occupancy.hasExtended(k, n) {
		return NoExtended
	}
	return sc.sp.occupancy.checkAttach(k, n)
}

// CountersOf returns the counters that Check reads for topology spread and pod (anti-)affinity of
// pods of template t. Nodes with equal domains and counts have the same result.
func (tp *Topology) CountersOf(t policy.TemplateID) []Counter {
	k := &tp.table.kinds[t]
	var list []Counter
	add := func(i int32) {
		if !slices.Contains(list, Counter(i)) {
			list = append(list, Counter(i))
		}
	}
	for _, c := range k.terms.spreads {
		add(c.counter)
	}
	for _, from := range [...][]int32{k.terms.companions, k.terms.rivals, k.terms.repellers} {
		for _, i := range from {
			add(i)
		}
	}
	return list
}

// Concerns reports whether the result of Check for pods of template t depends on bound pods of
// template u through anything except their Requests: extended resources, ports, volumes or
// topology.
func (sc Scoring) Concerns(t, u policy.TemplateID) bool {
	k, other := &sc.sp.table.kinds[t], &sc.sp.table.kinds[u]
	if len(k.extended) > 0 && len(other.extended) > 0 {
		return true
	}
	if slices.Contains(k.ports, u) ||
		k.volumes.own+int32(len(k.volumes.claims)) > 0 && other.volumes.own+int32(len(other.volumes.claims)) > 0 {
		return true
	}
	if !k.topology {
		return false
	}
	for i := range k.terms.spreads {
		if sc.sp.topology.counters[k.terms.spreads[i].counter].members.has(int32(u)) {
			return true
		}
	}
	for _, from := range [...][]int32{k.terms.companions, k.terms.rivals, k.terms.repellers} {
		for _, i := range from {
			if sc.sp.topology.counters[i].members.has(int32(u)) {
				return true
			}
		}
	}
	return false
}

// FitsInto reports whether the free resources on n are enough for a pod of template t.
func (sc Scoring) FitsInto(t policy.TemplateID, n policy.NodeID, free *policy.Resources) bool {
	return fits(&sc.sp.table.kinds[t], free, sc.sp.occupancy.slots[n].gpu) == OK
}

// Repels reports whether a bound pod keeps pods of template t away, or pods of t have required pod
// affinity or anti-affinity. Otherwise kube-scheduler skips the filter for them
// (pkg/scheduler/framework/plugins/interpodaffinity/filtering.go, PreFilter).
func (tp *Topology) Repels(t policy.TemplateID) bool {
	k := &tp.table.kinds[t]
	if len(k.terms.companions)+len(k.terms.rivals) > 0 {
		return true
	}
	for _, i := range k.terms.repellers {
		if tp.counters[i].total > 0 {
			return true
		}
	}
	return false
}

// ByHost reports whether the domains of t are single nodes.
func (tp *Topology) ByHost(t Counter) bool { return tp.counters[t].key == keyHost }

// Zone returns the zone of n, or None.
func (sc Scoring) Zone(n policy.NodeID) policy.ZoneID {
	return sc.sp.table.classes[sc.sp.occupancy.slots[n].class].zone
}

// Zonal reports whether pods of template t must run in the zone of their volumes.
func (sc Scoring) Zonal(t policy.TemplateID) bool { return sc.sp.table.kinds[t].volumes.zonal }

// Disliked returns the number of PreferNoSchedule taints of n that pods of template t do not
// tolerate.
func (sc Scoring) Disliked(t policy.TemplateID, n policy.NodeID) int32 {
	taints, count := sc.sp.table.classes[sc.sp.occupancy.slots[n].class].taints, int32(0)
	for i := range taints {
		if taints[i].Effect == policy.PreferNoSchedule && !policy.Tolerates(sc.sp.table.kinds[t].tolerations, &taints[i]) {
			count++
		}
	}
	return count
}

// Preference returns the sum of the weights of the preferred node affinity terms of template t that
// n satisfies.
func (sc Scoring) Preference(t policy.TemplateID, n policy.NodeID) int32 {
	preferred, sum := sc.sp.table.templates[t].Preferred, int32(0)
	if len(preferred) == 0 {
		return 0
	}
	view := nodeView{sc.sp.table.classes[sc.sp.occupancy.slots[n].class].labels, sc.sp.occupancy.nodes[n].host,
		sc.sp.occupancy.nodes[n].name}
	for i := range preferred {
		if view.meets(&preferred[i].Term) {
			sum += preferred[i].Weight
		}
	}
	return sum
}

// The requests that kube-scheduler assumes for a container that states none, when it scores nodes.
const (
	AssumedCPU    = 100               // milli-CPU
	AssumedMemory = 200 * 1024 * 1024 // bytes
)

// Assumptions returns the milli-CPU and the bytes of memory that scoring adds to the requests of
// pods of t.
func Assumptions(t *policy.Template) (cpu, memory int64) {
	cpu, memory = t.AssumedCPU, t.AssumedMemory
	if t.Requests.CPU == 0 {
		cpu = max(cpu, AssumedCPU)
	}
	if t.Requests.Memory == 0 {
		memory = max(memory, AssumedMemory)
	}
	return cpu, memory
}

// Assumed returns the milli-CPU and the bytes of memory that scoring adds to the requests of the
// pods on n.
func (sc Scoring) Assumed(n policy.NodeID) (cpu, memory int64) {
	return sc.sp.occupancy.nodes[n].assumedCPU, sc.sp.occupancy.nodes[n].assumedMemory
}
