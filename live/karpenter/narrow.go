package karpenter

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/scheduling"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
)

// wanted returns the markets in which the NodePool of a capacity type should buy, out of those that
// the pool affords at present prices. The on-demand NodePool takes the overflow and buys the
// cheapest machine that fits, so it includes all on-demand markets of the pool regardless of the
// steer.
func (view *poolView) wanted(c policy.CapacityType) []Offer {
	if c == policy.Spot {
		return view.affordable(view.steering.offers(view.s, view.pool, c), c)
	}
	all := steering{All: true}
	return view.affordable(all.offers(view.s, view.pool, c), c)
}

// affordable returns the offers that can be listed together without including an offer that costs
// more than the pool may pay: a NodePool lists types and zones separately and buys in every pair of
// them.
func (view *poolView) affordable(offers []Offer, c policy.CapacityType) []Offer {
	var dear []Offer
	for _, id := range view.pool.Markets {
		if m := &view.s.Markets[id]; m.Capacity == c && !view.pool.Affords(m) {
			dear = append(dear, offerOf(view.s, id))
		}
	}
	if len(dear) == 0 {
		return offers
	}
	kept := slices.DeleteFunc(offers, func(o Offer) bool { return slices.Contains(dear, o) })
	named := func(types, zones []string) func(Offer) bool {
		return func(o Offer) bool { return slices.Contains(types, o.Type) && slices.Contains(zones, o.Zone) }
	}
	var types, zones []string
	for _, o := range kept {
		types, zones = with(types, o.Type), with(zones, o.Zone)
	}
	if !slices.ContainsFunc(dear, named(types, zones)) {
		return kept
	}
	inside := named(product(kept))
	return slices.DeleteFunc(kept, func(o Offer) bool { return !inside(o) })
}

// narrow returns the requirements to write now if next omits markets that the NodePool was has.
// Karpenter may be about to create a claim from an earlier read. So a Spot NodePool first buys
// nothing for NarrowAfter, while on-demand takes the requests, and is then narrowed to next. since
// is the start of that time, or 0 if the NodePool may buy; done reports whether it has just ended
// for any reason. A NodePool without another one to take its requests never stops buying: it is
// narrowed when no launch is in progress.
func (n *nodePoolSteerer) narrow(view *poolView, c policy.CapacityType, was *karpv1.NodePool,
	next []karpv1.NodeSelectorRequirementWithMinValues,
) (reqs []karpv1.NodeSelectorRequirementWithMinValues, since policy.Time, done bool) {
	old := was.Spec.Template.Spec.Requirements
	if at, err := time.Parse(time.RFC3339, was.Annotations[NarrowingAnnotation]); err == nil {
		since = policy.TimeOf(at)
	}
	if !narrows(old, next) {
		return next, 0, since != 0
	}
	wide := Requirements(c.String(), offersOf(old), offersOf(next))
	standsIn := c == policy.Spot && (view.steering.Fallback || view.steering.Share < 1)
	switch {
	case !standsIn && view.underWay(was.Name):
		return wide, 0, since != 0
	case !standsIn:
		return next, 0, since != 0
	case since == 0:
		since = n.cfg.now()
	case n.cfg.now().Sub(since) >= n.cfg.NarrowAfter && !view.unlaunched(was.Name):
		return next, 0, true
	}
	return wide, since, false
}

// underWay reports whether Karpenter has a launch in progress or pods that it may launch for.
func (view *poolView) underWay(nodePool string) bool {
	return view.unlaunched(nodePool) ||
		slices.ContainsFunc(view.s.Pods, func(p policy.Pod) bool { return p.Phase == policy.PodPending })
}

// unlaunched reports whether a claim of the NodePool has no machine yet.
func (view *poolView) unlaunched(nodePool string) bool {
	return slices.ContainsFunc(view.claims,
		func(c karpv1.NodeClaim) bool { return c.Labels[karpv1.NodePoolLabelKey] == nodePool && !launched(&c) })
}

// outside reports whether a NodePool excludes a market that has nodes of it or may get some.
func outside(was *karpv1.NodePool, there []Offer) bool {
	r := scheduling.NewNodeSelectorRequirementsWithMinValues(was.Spec.Template.Spec.Requirements...)
	types, zones := r.Get(corev1.LabelInstanceTypeStable), r.Get(corev1.LabelTopologyZone)
	return slices.ContainsFunc(there, func(o Offer) bool {
		return o.Type != "" && !types.Has(o.Type) || o.Zone != "" && !zones.Has(o.Zone)
	})
}

// hold returns the template to write: wanted if the NodePool has no nodes, else the template of the
// existing nodes. The conditions report whether wanted is held back.
func (view *poolView) hold(was *karpv1.NodePool,
	wanted karpv1.NodeClaimTemplate) (karpv1.NodeClaimTemplate, []metav1.Condition) {
	next, fixed := was.DeepCopy(), fixedTemplate(was)
	next.Spec.Template = wanted
	if next.Hash() == was.Hash() {
		return fixed, []metav1.Condition{condition(ConditionTemplateHeld, false, "InForce",
			"its nodes use the template of the pool")}
	}
	nodes := 0
	for i := range view.claims {
		if view.claims[i].Labels[karpv1.NodePoolLabelKey] == was.Name {
			nodes++
		}
	}
	switch {
	case nodes == 0 && view.invalid == nil:
		return wanted, nil
	case nodes == 0:
		return fixed, nil
	}
	return fixed, []metav1.Condition{condition(ConditionTemplateHeld, true, "WouldReplaceNodes",
		fmt.Sprintf("the labels, taints, node class or expiry of the pool changed; NodePool %s keeps the old ones, "+
			"since the change would replace %s", was.Name, figures.Count(nodes, "node")))}
}

// widened returns the condition that reports the number of Spot markets outside the plan in which
// Karpenter may buy; none for on-demand.
func (view *poolView) widened(c policy.CapacityType,
	reqs []karpv1.NodeSelectorRequirementWithMinValues) []metav1.Condition {
	if c != policy.Spot {
		return nil
	}
	r := scheduling.NewNodeSelectorRequirementsWithMinValues(reqs...)
	wanted, wider := view.wanted(c), 0
	for _, id := range view.pool.Markets {
		if o := offerOf(view.s, id); view.s.Markets[id].Capacity == c && !slices.Contains(wanted, o) &&
			r.Get(corev1.LabelInstanceTypeStable).Has(o.Type) && r.Get(corev1.LabelTopologyZone).Has(o.Zone) {
			wider++
		}
	}
	if wider == 0 {
		return []metav1.Condition{condition(ConditionMarketsWidened, false, "AsPlanned",
			"Karpenter buys only in Spot markets of the plan")}
	}
	return []metav1.Condition{condition(ConditionMarketsWidened, true, "TypesAndZones",
		fmt.Sprintf("NodePool %s allows %s outside the plan: nodes run there, or another zone has the type",
			NodePoolName(view.pool.Name, c), figures.Count(wider, "market")))}
}
