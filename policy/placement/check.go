package placement

import "github.com/spotter-dev/spotter/policy"

// Check returns OK if p may be bound to n now, else the first filter that
// refuses. A pod already bound to n is judged as one more.
func (sp *Space) Check(p *policy.Pod, n policy.NodeID) Result {
	if int(n) >= len(sp.slots) || n < 0 {
		return NoNode
	}
	return sp.CheckInto(p, n, &sp.slots[n].free)
}

// CheckInto is Check as if free were what n has free.
func (sp *Space) CheckInto(p *policy.Pod, n policy.NodeID, free *policy.Resources) Result {
	switch s := sp.slots[n].state; {
	case s == ready:
	case s == absent || s == leaving:
		return NoNode
	case s == coming:
		return NotReady
	case sp.kinds[p.Template].daemon: // DaemonSet pods do not wait
	case s == joined:
		return NotReady
	default:
		return Unschedulable
	}
	return sp.check(p, n, free)
}

// CheckExpected is Check for a node on its way: one that is launching or
// registered counts as ready, with room kept for the DaemonSet pods that it
// will run. For other nodes it is Check.
func (sp *Space) CheckExpected(p *policy.Pod, n policy.NodeID) Result {
	if int(n) >= len(sp.slots) || n < 0 {
		return NoNode
	}
	if s := sp.slots[n].state; s != coming && s != joined {
		return sp.Check(p, n)
	}
	free := sp.slots[n].free
	if !sp.kinds[p.Template].daemon {
		free = free.Minus(sp.daemonsMissing(n))
	}
	return sp.check(p, n, &free)
}

// daemonsMissing returns what DaemonSet pods not yet bound to n will request.
func (sp *Space) daemonsMissing(n policy.NodeID) policy.Resources {
	m := sp.daemonsOf(sp.slots[n].class).Minus(sp.nodes[n].daemons)
	return policy.Resources{
		CPU: max(0, m.CPU), Memory: max(0, m.Memory), Storage: max(0, m.Storage),
		GPU: max(0, m.GPU), Pods: max(0, m.Pods),
	}
}

func (sp *Space) check(p *policy.Pod, n policy.NodeID, free *policy.Resources) Result {
	k, s := &sp.kinds[p.Template], &sp.slots[n]
	v := sp.static[int(s.class)*len(sp.kinds)+int(p.Template)]
	if v == unknown {
		v = sp.suits(p.Template, s.class, sp.nodes[n].host, sp.nodes[n].name)
	}
	if v != OK {
		return v
	}
	if k.ports != nil && sp.portTaken(k, n) {
		return PortTaken
	}
	if v := fits(k, free, s.gpu); v != OK {
		return v
	}
	if v := sp.checkVolumes(k, p, n); v != OK {
		return v
	}
	if !k.topology {
		return OK
	}
	domainState := expectedNode
	if s.state.exists() {
		domainState = knownNode
	}
	return sp.checkTopology(k, int32(n), sp.classes[s.class].domain, domainState)
}

// fits compares requests with what is free, as kube-scheduler does: what is
// not asked for is not compared, so that an overfull node still takes pods
// that ask for nothing of what it lacks.
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

func (sp *Space) portTaken(k *kind, n policy.NodeID) bool {
	for _, b := range sp.nodes[n].bound {
		for _, t := range k.ports {
			if b.template == t {
				return true
			}
		}
	}
	return false
}

func (sp *Space) checkVolumes(k *kind, p *policy.Pod, n policy.NodeID) Result {
	for _, c := range k.claims {
		if c.once && sp.claims[c.id].users > 0 {
			return ClaimTaken
		}
	}
	if v := sp.checkAttach(k, n); v != OK {
		return v
	}
	if k.zonal && p.VolumeZone >= 0 && p.VolumeZone != sp.classes[sp.slots[n].class].zone {
		return OtherZone
	}
	return OK
}

// checkAttach compares the volumes that a pod of k adds with the node's limit.
func (sp *Space) checkAttach(k *kind, n policy.NodeID) Result {
	s, added := &sp.slots[n], k.volumes
	for _, c := range k.claims {
		if sp.nodes[n].uses(c.id) == 0 {
			added++
		}
	}
	if added > 0 && s.volumesMax > 0 && s.volumes+added > s.volumesMax {
		return VolumesFull
	}
	return OK
}

func (nd *node) uses(claim int32) int32 {
	for i := range nd.claims {
		if nd.claims[i].claim == claim {
			return nd.claims[i].pods
		}
	}
	return 0
}

// attach adds or takes off the volumes of one pod of kind k.
func (sp *Space) attach(k *kind, n policy.NodeID, delta int32) {
	s, nd := &sp.slots[n], &sp.nodes[n]
	s.volumes += delta * k.volumes
	for _, c := range k.claims {
		sp.claims[c.id].users += delta
		at := -1
		for i := range nd.claims {
			if nd.claims[i].claim == c.id {
				at = i
			}
		}
		if at < 0 {
			nd.claims = append(nd.claims, claimUse{claim: c.id})
			at = len(nd.claims) - 1
		}
		was := nd.claims[at].pods
		nd.claims[at].pods += delta
		switch now := nd.claims[at].pods; {
		case was == 0 && now > 0:
			s.volumes++
		case was > 0 && now == 0:
			s.volumes--
			nd.claims[at] = nd.claims[len(nd.claims)-1]
			nd.claims = nd.claims[:len(nd.claims)-1]
		}
	}
}

// A domainState says how far a node's domains count for topology spread yet.
type domainState uint8

const (
	// knownNode has a Node object: its domains count.
	knownNode domainState = iota

	// expectedNode will have one: its domains will count as they are now.
	expectedNode

	// newNode is a bin that may be one of many: some other bin without pods
	// of the template must be assumed, so the emptiest host counts none.
	newNode
)

// checkTopology asks spread and pod (anti-)affinity about a node that is given
// by its domains: host is its own, domain those of the other keys.
func (sp *Space) checkTopology(k *kind, host int32, domain []int32, is domainState) Result {
	for i := range k.spreads {
		c := &k.spreads[i]
		d := host
		if c.key != keyHost {
			d = domain[c.key]
		}
		if d < 0 || sp.skew(c, d, is) > c.skewMax {
			return Skewed
		}
	}
	if len(k.companions) > 0 && !sp.accompanied(k, host, domain) {
		return Lonely
	}
	if sp.anyIn(k.rivals, host, domain) {
		return Repelled
	}
	if sp.anyIn(k.repellers, host, domain) {
		return RepelledByPod
	}
	return OK
}

// skew returns by how much domain d would exceed the emptiest one with the pod.
func (sp *Space) skew(c *spread, d int32, is domainState) int32 {
	t := &sp.counters[c.counter]
	least, domains, here := t.least, t.domains, t.at(d)
	if is == newNode && c.key == keyHost {
		return here + c.self
	}
	if is != knownNode && (int(d) >= len(t.nodes) || t.nodes[d] == 0) {
		domains++
		if domains == 1 || here < least {
			least = here
		}
	}
	if domains < c.domains {
		least = 0
	}
	return here + c.self - least
}

// accompanied reports whether required pod affinity holds. A pod that matches
// its own terms may be the first anywhere that has the keys.
func (sp *Space) accompanied(k *kind, host int32, domain []int32) bool {
	all, any := true, int32(0)
	for _, i := range k.companions {
		t := &sp.counters[i]
		d := host
		if t.key != keyHost {
			d = domain[t.key]
		}
		if d < 0 {
			return false
		}
		all = all && t.at(d) > 0
		any += t.total
	}
	return all || any == 0 && k.selfish
}

func (sp *Space) anyIn(counters []int32, host int32, domain []int32) bool {
	for _, i := range counters {
		t := &sp.counters[i]
		d := host
		if t.key != keyHost {
			d = domain[t.key]
		}
		if d >= 0 && t.at(d) > 0 {
			return true
		}
	}
	return false
}
