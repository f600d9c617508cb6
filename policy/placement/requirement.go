package placement

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// An askList contains requirements of pods placed in this attempt on labels that their nodes lack.
type askList struct {
	table     *classTable
	occupancy *occupancy

	list  []ask
	found []*policy.Requirement // scratch of asked
}

// An ask is a requirement of a pod placed in this attempt on a label that its node or claim lacks.
// Karpenter adds the requirements of pods to its state of a node, so that after a pod that requires
// a label not to be x it accepts one that requires it to be y.
type ask struct {
	node  policy.NodeID // None for a claim
	claim *nodeClaim
	of    *policy.Requirement
}

// ownLabel reports whether instance types lack the label, so that a node has it only if its pool
// adds it.
func ownLabel(key string) bool { return key != labelHost && !slices.Contains(instanceLabels, key) }

// remember adds the requirements of a relaxation on labels that are not in labels.
func (al *askList) remember(st *relaxation, labels []policy.Label, n policy.NodeID, c *nodeClaim) {
	for _, r := range st.wants {
		if _, there := policy.FindLabel(labels, r.Key); !there && ownLabel(r.Key) {
			al.list = append(al.list, ask{n, c, r})
		}
	}
}

// asked returns the remembered requirements on a label of a node or claim. The result is valid
// until the next call.
func (al *askList) asked(key string, n policy.NodeID, c *nodeClaim) []*policy.Requirement {
	al.found = al.found[:0]
	for i := range al.list {
		if a := &al.list[i]; a.of.Key == key && a.node == n && a.claim == c {
			al.found = append(al.found, a.of)
		}
	}
	return al.found
}

// suitsWithAsks is like relaxationSuits, but also considers the requirements of pods placed before.
func (al *askList) suitsWithAsks(st *relaxation, class int32, n policy.NodeID, c *nodeClaim) bool {
	view := nodeView{labels: al.table.classes[class].labels}
	if c == nil {
		view.host, view.name = al.occupancy.nodes[n].host, al.occupancy.nodes[n].name
	}
	if taintedFor(al.table.classes[class].taints, al.table.kinds[st.template].tolerations, st.lenient) {
		return false
	}
	for _, r := range st.wants {
		value, there := view.label(r.Key)
		if !there && ownLabel(r.Key) {
			if known := al.asked(r.Key, n, c); len(known) > 0 {
				if !compatible(known, st.wants, r.Key) {
					return false
				}
				continue
			}
		}
		if !r.MetBy(value, there) {
			return false
		}
	}
	return true
}

// compatible reports whether the requirements known on a label can be satisfied together with those
// in wants (Intersects in pkg/scheduling/requirements.go).
func compatible(known, wants []*policy.Requirement, key string) bool {
	all := slices.Clone(known)
	first := len(all)
	for _, r := range wants {
		if r.Key == key {
			all = append(all, r)
		}
	}
	meets := func(value string) bool {
		return !slices.ContainsFunc(all, func(r *policy.Requirement) bool { return !r.MetBy(value, true) })
	}
	bounded := false
	for _, r := range all {
		if r.Op == policy.OpIn || r.Op == policy.OpDoesNotExist {
			bounded = true
			if slices.ContainsFunc(r.Values, meets) {
				return true
			}
		}
	}
	return !bounded || dispensable(all[:first]) && dispensable(all[first:])
}

// dispensable reports whether the requirements on one label can be satisfied without the label.
func dispensable(list []*policy.Requirement) bool {
	meets := func(value string) bool {
		return !slices.ContainsFunc(list, func(r *policy.Requirement) bool { return !r.MetBy(value, true) })
	}
	excluded := false
	for _, r := range list {
		switch {
		case r.Op == policy.OpDoesNotExist, r.Op == policy.OpIn && !slices.ContainsFunc(r.Values, meets):
			return true
		case r.Op == policy.OpIn:
			return false
		case r.Op == policy.OpNotIn:
			excluded = true
		}
	}
	return excluded
}

// bareMeets reports whether topology allows a pod on a node that lacks some keys of its groups. If
// no domain satisfies all of their requirements, the label may be absent.
func (en *existingNodes) bareMeets(st *relaxation, k *kind, n policy.NodeID, p int32) bool {
	l := &en.groups.layout
	domain := en.table.classes[en.occupancy.slots[n].class].domain
	clear(en.sv.domains.base.kind)
	clear(en.sv.domains.base.bits)
	for key := 1; key < len(en.table.keys); key++ {
		missing := slices.ContainsFunc(en.sv.asks.asked(en.table.keys[key].name, n, nil),
			func(r *policy.Requirement) bool { return r.Op == policy.OpDoesNotExist })
		if d := domain[key]; d >= 0 || missing {
			en.sv.domains.base.kind[key] = oneOf
			if d >= 0 {
				en.sv.domains.base.of(l, int32(key)).set(d)
			}
		}
	}
	en.sv.domains.base.narrow(l, &st.sets)
	en.sv.domains.sets.copyFrom(&en.sv.domains.base)
	for _, list := range [...][]int32{st.groups, k.avoids} {
		for _, id := range list {
			g := &en.groups.groups[id]
			if g.run == en.sv.domains.run && g.key != keyHost && domain[g.key] < 0 && !en.sv.domains.claimMeets(nil, st, g, p) {
				return false
			}
		}
	}
	for key := 1; key < len(en.table.keys); key++ {
		if domain[key] < 0 && en.sv.domains.sets.kind[key] == oneOf && !en.sv.domains.sets.of(l, int32(key)).empty() {
			return false
		}
	}
	return true
}

// rememberBare records that node n has none of the labels that groups require.
func (en *existingNodes) rememberBare(st *relaxation, k *kind, n policy.NodeID) {
	for _, list := range [...][]int32{st.groups, k.avoids} {
		for _, id := range list {
			g := &en.groups.groups[id]
			if g.run == en.sv.domains.run && g.key != keyHost && en.occupancy.domain(g.key, n) < 0 {
				en.sv.asks.list = append(en.sv.asks.list, ask{n, nil, &policy.Requirement{Key: en.table.keys[g.key].name,
					Op: policy.OpDoesNotExist}})
			}
		}
	}
}
