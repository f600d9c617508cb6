package placement

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// A relaxation contains the requirements of a pod of a template after some of its preferences were
// relaxed. Karpenter first treats all preferences of a pod as required, and drops them one by one
// if it finds no node: pkg/controllers/provisioning/scheduling/preferences.go of Karpenter 1.14.1,
// preference policy Respect.
type relaxation struct {
	template policy.TemplateID
	next     int32 // the relaxation after the next preference is dropped, -1 if it is the last

	// wants are the node selector, the heaviest remaining preferred term and the first remaining
	// required term. firm are the same without the preferred term.
	wants, firm []*policy.Requirement

	// sets and firmSets are wants and firm by topology key.
	sets, firmSets keysets

	// groups are the topology groups that restrict pods at this relaxation.
	groups []int32

	// lenient reports whether taints with the effect PreferNoSchedule are tolerated. Such a
	// relaxation is used only if a pool has such a taint.
	lenient bool

	own     bool   // wants contain labels that instance types do not have
	byName  bool   // wants can distinguish single nodes by name
	byClass []int8 // 0 unknown, 1 suits, 2 does not suit
}

// preferences are the remaining preferences while the relaxations of a template are created.
type preferences struct {
	dropped             int // number of required node affinity terms that were dropped
	nodes               []int
	affinity, repulsion []int // indices of terms in the template, in the order in which they are dropped
	spread              []int
}

// relaxationsOf returns the first relaxation of a template. It creates the relaxations at the first
// use. If preferences are ignored (preference policy Ignore), there is one for each required term
// of node affinity.
func (gt *groupTable) relaxationsOf(t policy.TemplateID, ignorePreferences bool) int32 {
	made := &gt.table.kinds[t].relaxation
	if ignorePreferences {
		made = &gt.table.kinds[t].required
	}
	if *made > 0 {
		return *made - 1
	}
	first := int32(len(gt.relaxations))
	x := &gt.table.templates[t]
	var left preferences
	if !ignorePreferences {
		left.nodes = heaviest(len(x.Preferred), func(i int) int32 { return x.Preferred[i].Weight })
		left.affinity, left.repulsion = softTerms(x.PodAffinity), softTerms(x.PodAntiAffinity)
	}
	for i := range x.Spread {
		if !ignorePreferences || !x.Spread[i].Soft {
			left.spread = append(left.spread, i)
		}
	}
	for more := true; more; more = left.relax(x) {
		gt.addRelaxation(t, &left, false)
	}
	if !toleratesAllSoft(x.Tolerations) {
		gt.addRelaxation(t, &left, true)
	}
	gt.relaxations[len(gt.relaxations)-1].next = -1
	*made = first + 1
	return first
}

// heaviest returns 0…n-1 sorted by weight, descending.
func heaviest(n int, weight func(int) int32) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(weight(b)) - int(weight(a)) })
	return order
}

func softTerms(terms []policy.PodTerm) []int {
	order := heaviest(len(terms), func(i int) int32 { return terms[i].Weight })
	return slices.DeleteFunc(order, func(i int) bool { return terms[i].Weight == 0 })
}

// toleratesAllSoft reports whether list contains a toleration of every PreferNoSchedule taint.
func toleratesAllSoft(list []policy.Toleration) bool {
	return slices.ContainsFunc(list, func(t policy.Toleration) bool {
		return t.Key == "" && t.Exists && t.Value == "" && t.Effect == policy.PreferNoSchedule
	})
}

// relax drops one preference, in Karpenter's order, and reports whether there was one.
func (p *preferences) relax(t *policy.Template) bool {
	switch {
	case len(t.Affinity)-p.dropped > 1:
		p.dropped++
		return true
	case len(p.affinity) > 0:
		p.affinity = p.affinity[1:]
		return true
	case len(p.repulsion) > 0:
		p.repulsion = p.repulsion[1:]
		return true
	case len(p.nodes) > 0:
		p.nodes = p.nodes[1:]
		return true
	}
	for at, i := range p.spread {
		if t.Spread[i].Soft {
			last := len(p.spread) - 1
			p.spread[at] = p.spread[last]
			p.spread = p.spread[:last]
			return true
		}
	}
	return false
}

// selectorOf converts a node selector to requirements.
func selectorOf(t *policy.Template) (list []*policy.Requirement) {
	for _, l := range t.NodeSelector {
		list = append(list, &policy.Requirement{Key: l.Key, Op: policy.OpIn, Values: []string{l.Value}})
	}
	return list
}

func (gt *groupTable) addRelaxation(t policy.TemplateID, left *preferences, lenient bool) {
	x := &gt.table.templates[t]
	s := relaxation{template: t, next: int32(len(gt.relaxations) + 1), lenient: lenient}
	s.firm = selectorOf(x)
	if len(x.Affinity) > 0 {
		for i := range x.Affinity[left.dropped].Labels {
			s.firm = append(s.firm, &x.Affinity[left.dropped].Labels[i])
		}
	}
	s.wants = s.firm
	if len(left.nodes) > 0 {
		s.wants = slices.Clone(s.firm)
		for i := range x.Preferred[left.nodes[0]].Term.Labels {
			s.wants = append(s.wants, &x.Preferred[left.nodes[0]].Term.Labels[i])
		}
	}
	s.wants, s.firm = combined(s.wants), combined(s.firm)
	s.own = slices.ContainsFunc(s.wants, func(r *policy.Requirement) bool { return ownLabel(r.Key) })
	s.byName = slices.ContainsFunc(s.wants, func(r *policy.Requirement) bool { return r.Key == labelHost })
	for _, i := range left.spread {
		s.groups = append(s.groups, gt.spreadGroup(t, i, left.dropped, lenient))
	}
	for i := range x.PodAffinity {
		if x.PodAffinity[i].Weight == 0 || slices.Contains(left.affinity, i) {
			s.groups = append(s.groups, gt.termGroup(t, attracts, i))
		}
	}
	for i := range x.PodAntiAffinity {
		if x.PodAntiAffinity[i].Weight == 0 || slices.Contains(left.repulsion, i) {
			s.groups = append(s.groups, gt.termGroup(t, repels, i))
		}
	}
	gt.relaxations = append(gt.relaxations, s)
}

// combined merges the requirements on each label as Karpenter does (Intersection and Operator in
// pkg/scheduling/requirement.go): requirements that no value satisfies become "the label must be
// absent", and "the label must exist" is dropped if values are excluded too. Like Karpenter, it can
// therefore place pods on nodes on which they cannot run.
func combined(list []*policy.Requirement) []*policy.Requirement {
	out := make([]*policy.Requirement, 0, len(list))
	for i, r := range list {
		same := func(x *policy.Requirement) bool { return x.Key == r.Key }
		if slices.ContainsFunc(list[:i], same) {
			continue
		}
		if contradictory(list, r.Key) {
			out = append(out, &policy.Requirement{Key: r.Key, Op: policy.OpDoesNotExist})
			continue
		}
		forgets := slices.ContainsFunc(list, func(x *policy.Requirement) bool { return same(x) && x.Op == policy.OpNotIn })
		for _, x := range list[i:] {
			if same(x) && !(forgets && x.Op == policy.OpExists) {
				out = append(out, x)
			}
		}
	}
	return out
}

// contradictory reports whether the requirements on key list values, but no listed value satisfies
// all of them.
func contradictory(list []*policy.Requirement, key string) bool {
	meets := func(value string) bool {
		return !slices.ContainsFunc(list, func(r *policy.Requirement) bool { return r.Key == key && !r.MetBy(value, true) })
	}
	for _, r := range list {
		if r.Key == key && (r.Op == policy.OpIn || r.Op == policy.OpDoesNotExist) && !slices.ContainsFunc(r.Values, meets) {
			return true
		}
	}
	return false
}

// relaxationSuits reports whether the labels and taints of a node of class c with the given host
// and name let pods of the relaxation run there.
func (ct *classTable) relaxationSuits(s *relaxation, c int32, host, name string) bool {
	for len(s.byClass) < len(ct.classes) {
		s.byClass = append(s.byClass, 0)
	}
	if v := s.byClass[c]; v != 0 {
		return v == 1
	}
	view := nodeView{ct.classes[c].labels, host, name}
	ok := !taintedFor(ct.classes[c].taints, ct.kinds[s.template].tolerations, s.lenient)
	for _, r := range s.wants {
		value, there := view.label(r.Key)
		ok = ok && r.MetBy(value, there)
	}
	if !s.byName {
		s.byClass[c] = 2
		if ok {
			s.byClass[c] = 1
		}
	}
	return ok
}

// taintedFor reports whether Karpenter treats one of taints as keeping a pod away. A
// PreferNoSchedule taint does too, unless the pod is lenient (pkg/scheduling/taints.go).
func taintedFor(taints []policy.Taint, tolerations []policy.Toleration, lenient bool) bool {
	for i := range taints {
		if !policy.Tolerates(tolerations, &taints[i]) && !(lenient && taints[i].Effect == policy.PreferNoSchedule) {
			return true
		}
	}
	return false
}

// setsOf builds the requirements of a relaxation by topology key. It is called again after keys or
// values were added.
func (gt *groupTable) setsOf(s *relaxation) {
	s.firmSets = gt.layout.make()
	for _, r := range s.firm {
		gt.require(&s.firmSets, r)
	}
	s.sets = gt.layout.make()
	for _, r := range s.wants {
		gt.require(&s.sets, r)
	}
}
