package placement

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// A Scoring says how well pods suit nodes, for a scheduler that scores them and must therefore know
// which nodes are alike for a pod.
type Scoring struct {
	sp *Space
}

// CheckAlone is Check without what depends on other nodes: pod affinity,
// topology spread, ReadWriteOncePod claims, and the zone of the pod's volumes.
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

// CountersOf returns the counters by which Check judges where pods of template t
// stand to others. On nodes of equal domains and counts the result is equal.
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

// Concerns reports whether Check of pods of template t depends on bound pods of
// template u by more than their Requests: by extended resources, ports, volumes or topology.
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

// FitsInto reports whether free, on n, is enough for a pod of template t.
func (sc Scoring) FitsInto(t policy.TemplateID, n policy.NodeID, free *policy.Resources) bool {
	return fits(&sc.sp.table.kinds[t], free, sc.sp.occupancy.slots[n].gpu) == OK
}

// Repels reports whether a pod that is bound somewhere keeps pods of template t away,
// or pods of t have pod affinity or anti-affinity to fulfil: else kube-scheduler does
// not run the filter for them
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

// ByHost reports whether t counts by node.
func (tp *Topology) ByHost(t Counter) bool { return tp.counters[t].key == keyHost }

// Zone returns the zone of n, or None.
func (sc Scoring) Zone(n policy.NodeID) policy.ZoneID {
	return sc.sp.table.classes[sc.sp.occupancy.slots[n].class].zone
}

// Zonal reports whether pods of template t are bound to the zone of volumes.
func (sc Scoring) Zonal(t policy.TemplateID) bool { return sc.sp.table.kinds[t].volumes.zonal }

// Disliked returns how many PreferNoSchedule taints of n pods of template t do
// not tolerate.
func (sc Scoring) Disliked(t policy.TemplateID, n policy.NodeID) int32 {
	taints, count := sc.sp.table.classes[sc.sp.occupancy.slots[n].class].taints, int32(0)
	for i := range taints {
		if taints[i].Effect == policy.PreferNoSchedule && !policy.Tolerates(sc.sp.table.kinds[t].tolerations, &taints[i]) {
			count++
		}
	}
	return count
}

// Preference returns the sum of the weights of the preferred node affinity
// terms of template t that n meets.
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

// The requests that kube-scheduler assumes when it scores a container that states
// none.
const (
	AssumedCPU    = 100               // thousandths of a core
	AssumedMemory = 200 * 1024 * 1024 // bytes
)

// Assumptions returns what is added to the requests of pods of t for scoring, in CPU
// and memory.
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

// Assumed returns what is added to the requests of the pods on n for scoring,
// in CPU and memory.
func (sc Scoring) Assumed(n policy.NodeID) (cpu, memory int64) {
	return sc.sp.occupancy.nodes[n].assumedCPU, sc.sp.occupancy.nodes[n].assumedMemory
}
