package placement

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// shareDaemons lists, for every pool, the DaemonSets that can run on any node of the pool. This
// depends on the pool's taints and labels only, not on what is on sale (getDaemonOverhead in
// scheduler.go of Karpenter 1.13.0).
func (ot *offerTable) shareDaemons(table *classTable, rules []Pool) {
	for p := range ot.ofPool {
		x := poolLabels{offers: make([]*Offer, 0, len(ot.filled))}
		for i := range ot.filled {
			if int(ot.goods[i].pool) == p {
				x.offers = append(x.offers, &ot.filled[i])
			}
		}
		if at := slices.IndexFunc(rules, func(r Pool) bool { return r.ID == x.offers[0].Pool }); at >= 0 {
			x.requirements = rules[at].Requirements
		}
		var list []policy.TemplateID
		for t := range table.kinds {
			if table.kinds[t].daemon && policy.TolerateAll(table.kinds[t].tolerations, x.offers[0].Taints) &&
				x.let(&table.templates[t]) {
				list = append(list, policy.TemplateID(t))
			}
		}
		ot.shared = append(ot.shared, list)
	}
}

// requestsOf returns the total requests of one pod of each template.
func (ct *classTable) requestsOf(list []policy.TemplateID) (sum policy.Resources) {
	for _, t := range list {
		sum = sum.Plus(ct.kinds[t].requests)
	}
	return sum
}

// A poolLabels describes the labels of the nodes of a pool.
type poolLabels struct {
	offers       []*Offer
	requirements []policy.Requirement
}

// let reports whether the pool may have nodes with labels on which pods of t can run.
func (x *poolLabels) let(t *policy.Template) bool {
	if len(t.Affinity) == 0 {
		return x.meet(selectorOf(t))
	}
	return slices.ContainsFunc(t.Affinity, func(term policy.NodeTerm) bool {
		wants := selectorOf(t)
		for i := range term.Labels {
			wants = append(wants, &term.Labels[i])
		}
		return x.meet(wants)
	})
}

// meet reports whether the pool may have nodes that satisfy all of wants.
func (x *poolLabels) meet(wants []*policy.Requirement) bool {
	for _, r := range combined(wants) {
		switch known := x.known(r.Key); {
		case len(known) > 0:
			if !compatible(known, wants, r.Key) {
				return false
			}
		case !x.ofTypes(r.Key) && !r.MetBy("", false):
			return false
		}
	}
	return true
}

// known returns the pool's requirements on a label. They include the labels that the pool sets,
// which are those that are equal on all of its offers.
func (x *poolLabels) known(key string) (list []*policy.Requirement) {
	for i := range x.requirements {
		if x.requirements[i].Key == key {
			list = append(list, &x.requirements[i])
		}
	}
	if len(list) > 0 || !ownLabel(key) {
		return list
	}
	value, there := policy.FindLabel(x.offers[0].Labels, key)
	for _, o := range x.offers {
		v, ok := policy.FindLabel(o.Labels, key)
		there = there && ok && v == value
	}
	if there {
		list = append(list, &policy.Requirement{Key: key, Op: policy.OpIn, Values: []string{value}})
	}
	return list
}

// ofTypes reports whether instance types have the label.
func (x *poolLabels) ofTypes(key string) bool {
	return !ownLabel(key) || slices.ContainsFunc(x.offers, func(o *Offer) bool {
		_, there := policy.FindLabel(o.Labels, key)
		return there
	})
}
