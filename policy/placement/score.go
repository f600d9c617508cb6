package placement

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// What follows is for a scheduler that scores nodes, and therefore must know
// which nodes are alike for a pod.

// CheckAlone is Check without what depends on other nodes: pod affinity,
// topology spread, ReadWriteOncePod claims, and the zone of the pod's volumes.
func (sp *Space) CheckAlone(p *policy.Pod, n policy.NodeID) Result {
	s := &sp.slots[n]
	k := &sp.kinds[p.Template]
	if s.state != ready && (!k.daemon || s.state < joined || s.state == leaving) {
		return NotReady
	}
	if v := sp.suits(p.Template, s.class, sp.nodes[n].host, sp.nodes[n].name); v != OK {
		return v
	}
	if k.ports != nil && sp.portTaken(k, n) {
		return PortTaken
	}
	if v := fits(k, &s.free, s.gpu); v != OK {
		return v
	}
	return sp.checkAttach(k, n)
}

// CountersOf returns the counters by which Check judges where pods of template t
// stand to others. On nodes of equal domains and counts the result is equal.
func (sp *Space) CountersOf(t policy.TemplateID) []Counter {
	k := &sp.kinds[t]
	var list []Counter
	add := func(i int32) {
		if !slices.Contains(list, Counter(i)) {
			list = append(list, Counter(i))
		}
	}
	for _, c := range k.spreads {
		add(c.counter)
	}
	for _, from := range [...][]int32{k.companions, k.rivals, k.repellers} {
		for _, i := range from {
			add(i)
		}
	}
	return list
}

// Concerns reports whether Check of pods of template t depends on bound pods of
// template u by more than their requests: by ports, volumes or topology.
func (sp *Space) Concerns(t, u policy.TemplateID) bool {
	k, other := &sp.kinds[t], &sp.kinds[u]
	if slices.Contains(k.ports, u) || k.volumes+int32(len(k.claims)) > 0 && other.volumes+int32(len(other.claims)) > 0 {
		return true
	}
	if !k.topology {
		return false
	}
	for i := range k.spreads {
		if sp.counters[k.spreads[i].counter].members.has(int32(u)) {
			return true
		}
	}
	for _, from := range [...][]int32{k.companions, k.rivals, k.repellers} {
		for _, i := range from {
			if sp.counters[i].members.has(int32(u)) {
				return true
			}
		}
	}
	return false
}

// FitsInto reports whether free, on n, is enough for a pod of template t.
func (sp *Space) FitsInto(t policy.TemplateID, n policy.NodeID, free *policy.Resources) bool {
	return fits(&sp.kinds[t], free, sp.slots[n].gpu) == OK
}

// Repels reports whether a pod that is bound somewhere keeps pods of template t away,
// or pods of t have pod affinity or anti-affinity to fulfil: else kube-scheduler does
// not run the filter for them
// (pkg/scheduler/framework/plugins/interpodaffinity/filtering.go, PreFilter).
func (sp *Space) Repels(t policy.TemplateID) bool {
	k := &sp.kinds[t]
	if len(k.companions)+len(k.rivals) > 0 {
		return true
	}
	for _, i := range k.repellers {
		if sp.counters[i].total > 0 {
			return true
		}
	}
	return false
}

// ByHost reports whether t counts by node.
func (sp *Space) ByHost(t Counter) bool { return sp.counters[t].key == keyHost }

// Zone returns the zone of n, or None.
func (sp *Space) Zone(n policy.NodeID) policy.ZoneID { return sp.classes[sp.slots[n].class].zone }

// Zonal reports whether pods of template t are bound to the zone of volumes.
func (sp *Space) Zonal(t policy.TemplateID) bool { return sp.kinds[t].zonal }

// Disliked returns how many PreferNoSchedule taints of n pods of template t do
// not tolerate.
func (sp *Space) Disliked(t policy.TemplateID, n policy.NodeID) int32 {
	taints, count := sp.classes[sp.slots[n].class].taints, int32(0)
	for i := range taints {
		if taints[i].Effect == policy.PreferNoSchedule && !Tolerates(sp.kinds[t].tolerations, &taints[i]) {
			count++
		}
	}
	return count
}

// Preference returns the sum of the weights of the preferred node affinity
// terms of template t that n meets.
func (sp *Space) Preference(t policy.TemplateID, n policy.NodeID) int32 {
	preferred, sum := sp.templates[t].Preferred, int32(0)
	if len(preferred) == 0 {
		return 0
	}
	view := nodeView{sp.classes[sp.slots[n].class].labels, sp.nodes[n].host, sp.nodes[n].name}
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
func (sp *Space) Assumed(n policy.NodeID) (cpu, memory int64) {
	return sp.nodes[n].assumedCPU, sp.nodes[n].assumedMemory
}
