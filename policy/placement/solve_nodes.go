package placement

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// A portUse is a pod with host ports on an existing node.
type portUse struct {
	node     policy.NodeID
	template policy.TemplateID
}

// readNodes reads what is free on the nodes, less what DaemonSet pods that are not there
// yet will request.
func (sv *Solver) readNodes() {
	sv.free = resize(sv.free, len(sv.b.Nodes))
	sv.out = resize(sv.out, len(sv.b.Nodes))
	sv.classes = resize(sv.classes, len(sv.sp.table.classes))
	sv.daemons = sv.sp.table.hasDaemons()
	for at, n := range sv.b.Nodes {
		sv.readFree(at)
		if s := &sv.sp.occupancy.slots[n]; s.state.exists() {
			sv.classes[s.class]++
		}
	}
}

func (sv *Solver) readFree(at int) {
	n := sv.b.Nodes[at]
	sv.free[at] = sv.sp.occupancy.slots[n].free
	if sv.daemons {
		sv.free[at] = sv.free[at].Minus(sv.sp.occupancy.daemonsMissing(n))
	}
}

// leaveOut takes the nodes that are left out from the others, or puts them back.
func (sv *Solver) leaveOut(out bool) {
	for _, at := range sv.b.Without {
		sv.out[at] = out
		s := &sv.sp.occupancy.slots[sv.b.Nodes[at]]
		switch {
		case !s.state.exists():
		case out:
			sv.classes[s.class]--
		default:
			sv.classes[s.class]++
		}
	}
}

func (ct *classTable) hasDaemons() bool {
	return slices.ContainsFunc(ct.kinds, func(k kind) bool { return k.daemon })
}

// addToNode places a pod on the first existing node that takes it.
func (sv *Solver) addToNode(p, s int32) bool {
	st := &sv.sp.groups.relaxations[s]
	prefix := true // all nodes so far will never take such a pod
	for at := sv.cursor[s]; int(at) < len(sv.b.Nodes); at++ {
		switch sv.fitsNode(st, p, at) {
		case never:
			if prefix {
				sv.cursor[s] = at + 1
			}
			continue
		case later:
			prefix = false
			continue
		}
		n, k := sv.b.Nodes[at], &sv.sp.table.kinds[st.template]
		sv.placed[p] = n
		sv.free[at] = sv.free[at].Minus(k.requests)
		sv.taken = append(sv.taken, at)
		if k.ports != nil {
			sv.ports = append(sv.ports, portUse{n, st.template})
		}
		if st.own {
			sv.remember(st, sv.sp.table.classes[sv.sp.occupancy.slots[n].class].labels, n, nil)
		}
		sv.rememberBare(st, k, n)
		sv.recordOnNode(k, n)
		return true
	}
	return false
}

// fitsNode reports whether the node at a position takes a pod (CanAdd in
// existingnode.go).
func (sv *Solver) fitsNode(st *relaxation, p, at int32) outcome {
	sp, free, n := sv.sp, &sv.free[at], sv.b.Nodes[at]
	k, s, pod := &sp.table.kinds[st.template], &sp.occupancy.slots[n], &sv.b.Pods[p]
	r := &k.requests
	if sv.out[at] || r.CPU > free.CPU || r.Memory > free.Memory || r.Pods > free.Pods || r.Storage > free.Storage ||
		free.CPU < 0 || free.Memory < 0 || free.Storage < 0 || free.GPU < 0 ||
		r.GPU > 0 && (r.GPU > free.GPU || k.gpu != s.gpu) || s.state == absent || s.state == closed && !k.cordoned || s.state == leaving {
		return never
	}
	switch v := st.suits(s.class); {
	case st.own && len(sv.asks) > 0:
		if !sv.suitsWithAsks(st, s.class, n, nil) {
			return later
		}
	case v == 2 || v == 0 && !sp.table.relaxationSuits(st, s.class, sp.occupancy.nodes[n].host, sp.occupancy.nodes[n].name):
		if st.own {
			return later // what pods ask that come before may let it in
		}
		return never
	}
	if k.ports != nil && sv.portTaken(k, n) {
		return never
	}
	if sv.b.Resting != nil && sv.b.Resting[at] && pod.Phase != policy.PodPending {
		return later
	}
	if (k.volumes > 0 || len(k.claims) > 0 || k.zonal) && sp.occupancy.checkVolumes(k, pod, n) != OK {
		return later
	}
	if len(st.groups)+len(k.avoids) > 0 && !sv.groupsLet(st, k, n, p) {
		return later
	}
	return joinedBin
}

// groupsLet reports whether topology lets a pod onto an existing node.
func (sv *Solver) groupsLet(st *relaxation, k *kind, n policy.NodeID, p int32) bool {
	bare := false
	for _, list := range [...][]int32{st.groups, k.avoids} {
		for _, id := range list {
			g := &sv.sp.groups.groups[id]
			if g.run != sv.run {
				continue
			}
			d := sv.sp.occupancy.domain(g.key, n)
			bare = bare || d < 0
			if d >= 0 && !sv.nodeMeets(st, g, d) {
				return false
			}
		}
	}
	return !bare || sv.bareMeets(st, k, n, p)
}

// suits returns what is known of nodes of class c: 0 nothing, 1 yes, 2 no.
func (s *relaxation) suits(c int32) int8 {
	if int(c) < len(s.byClass) {
		return s.byClass[c]
	}
	return 0
}

func (sv *Solver) portTaken(k *kind, n policy.NodeID) bool {
	return sv.sp.occupancy.portTaken(k, n) || slices.ContainsFunc(sv.ports, func(u portUse) bool {
		return u.node == n && slices.Contains(k.ports, u.template)
	})
}

// nodeMeets reports whether a group lets a pod onto an existing node of domain d.
func (sv *Solver) nodeMeets(st *relaxation, g *group, d int32) bool {
	l, host := &sv.sp.groups.layout, g.key == keyHost
	switch g.sort {
	case spreads:
		self := int32(0)
		if g.self {
			self = 1
		}
		return (host || g.registered.has(d)) && g.in(d)+self-g.least(l, &st.firmSets) <= g.skewMax
	case attracts:
		if !host && !(st.firmSets.allows(l, g.key, d) && g.registered.has(d)) {
			return false
		}
		return g.in(d) > 0 || g.self && (g.total == 0 || !g.occupied(l, &st.firmSets))
	}
	return g.in(d) == 0 && (host || g.registered.has(d) && st.firmSets.allows(l, g.key, d))
}
