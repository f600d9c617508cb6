package placement

import "github.com/spotter-dev/spotter/policy"

// Check returns OK if p may be bound to n now, and otherwise the first filter that rejects it. If p
// is already bound to n, it is treated as an additional pod.
func (sp *Space) Check(p *policy.Pod, n policy.NodeID) Result {
	if int(n) >= len(sp.occupancy.slots) || n < 0 {
		return NoNode
	}
	return sp.CheckInto(p, n, &sp.occupancy.slots[n].free)
}

// CheckInto is like Check, except that it uses free as the free resources of n.
func (sp *Space) CheckInto(p *policy.Pod, n policy.NodeID, free *policy.Resources) Result {
	switch s := sp.occupancy.slots[n].state; {
	case s == ready:
	case s == absent || s == leaving:
		return NoNode
	case s == coming:
		return NotReady
	case sp.table.kinds[p.Template].daemon: // DaemonSet pods do not wait
	case s == joined || s == failing:
		return NotReady
	default:
		return Unschedulable
	}
	return sp.check(p, n, free)
}

// CheckExpected is like Check, except that a node that is launching or registered counts as ready.
// Room is reserved there for the DaemonSet pods that the node will run.
func (sp *Space) CheckExpected(p *policy.Pod, n policy.NodeID) Result {
	if int(n) >= len(sp.occupancy.slots) || n < 0 {
		return NoNode
	}
	if s := sp.occupancy.slots[n].state; s != coming && s != joined && s != failing {
		return sp.Check(p, n)
	}
	free := sp.occupancy.slots[n].free
	if !sp.table.kinds[p.Template].daemon {
		free = free.Minus(sp.occupancy.daemonsMissing(n))
	}
	return sp.check(p, n, &free)
}

func (sp *Space) check(p *policy.Pod, n policy.NodeID, free *policy.Resources) Result {
	k, s := &sp.table.kinds[p.Template], &sp.occupancy.slots[n]
	v := sp.table.static[int(s.class)*len(sp.table.kinds)+int(p.Template)]
	if v == unknown {
		v = sp.table.suits(p.Template, s.class, sp.occupancy.nodes[n].host, sp.occupancy.nodes[n].name)
	}
	if v != OK {
		return v
	}
	if k.ports != nil && sp.occupancy.portTaken(k, n) {
		return PortTaken
	}
	if v := fits(k, free, s.gpu); v != OK {
		return v
	}
	if !sp.occupancy.hasExtended(k, n) {
		return NoExtended
	}
	if v := sp.occupancy.checkVolumes(k, p, n); v != OK {
		return v
	}
	if !k.topology {
		return OK
	}
	return sp.topology.checkTopology(k, int32(n), sp.table.classes[s.class].domain, s.state.exists())
}

// fits compares requests with free resources as kube-scheduler does: a resource that is not
// requested is not compared. An overcommitted node therefore still accepts pods that do not request
// the exhausted resource.
func fits(k *kind, free *policy.Resources, gpu int16) Result {
	r := &k.requests
	switch {
	case r.Pods > free.Pods:
		return TooManyPods
	case r.CPU > 0 && r.CPU > free.CPU:
		return NoCPU
	case r.Memory > 0 && r.Memory > free.Memory:
		return NoMemory
	case r.Storage > 0 && r.Storage > free.Storage:
		return NoStorage
	case r.GPU > 0 && (r.GPU > free.GPU || k.gpu != gpu):
		return NoGPU
	}
	return OK
}
