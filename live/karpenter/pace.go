package karpenter

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/spotter-dev/spotter/live/backend"
)

// The effect of a write on running nodes determines how soon it may follow the previous write.
//
// The template, whose requirements are the markets, makes nodes drift; the disruption settings
// start and stop consolidation. They change at most once per [Config.WriteEvery], unless there is
// an emergency.
//
// Weight and limits affect no running node: Karpenter's hash covers only the template, a limit
// below the present capacity removes nothing, and the weight is considered only for a purchase. A
// growing pool needs these changes soon: capacity that the limits do not allow as Spot is bought on
// demand and moved to Spot later, at the cost of an eviction. So they may change once per
// [Config.LimitsEvery], and at once while pods of the pool are unschedulable.

// An edit is a pending change of one NodePool.
type edit struct {
	// full is the whole change. live is the existing NodePool, nil if it does not exist.
	full, live *unstructured.Unstructured

	// plain is how the NodePool should buy if it need not be narrowed.
	plain target

	// urgent reports whether, without the edit, nodes would drift or Karpenter would remove nodes
	// outside of maintenance windows.
	urgent bool
}

// paced returns the edits that are due, and whether they change anything other than
// weights and limits. The error is a Held that names the changes that wait, and until when.
func (n *nodePoolSteerer) paced(view *poolView, edits []edit) (due []edit, full bool, err error) {
	light, rest, err := n.quick(view, edits)
	if err != nil {
		return nil, false, err
	}
	written, limited, conflict := n.states.writes(view.pool.Name)
	if conflict != 0 && conflict.Add(n.cfg.WriteEvery) > n.cfg.now() {
		return nil, false,
			backend.Hold("Paced", "another field manager owned fields of the NodePools of %s at %v; the next attempt is at %v",
				view.pool.Name, conflict, conflict.Add(n.cfg.WriteEvery))
	}
	next := written.Add(n.cfg.WriteEvery)
	switch {
	case rest && next <= n.cfg.now():
		return edits, true, nil
	case len(light) > 0 && limited.Add(n.cfg.LimitsEvery) > n.cfg.now() && !view.starved():
		return nil, false,
			backend.Hold("Paced", "the limits of the NodePools of %s were changed at %v; the next change is possible at %v",
				view.pool.Name, limited, limited.Add(n.cfg.LimitsEvery))
	case rest:
		err = backend.Hold("Paced", "the markets of the NodePools of %s were changed at %v; the next change is possible at %v",
			view.pool.Name, written, next)
	}
	return light, false, err
}

// quick returns the parts of edits that change weights and limits. rest reports whether there are
// other parts.
func (n *nodePoolSteerer) quick(view *poolView, edits []edit) (light []edit, rest bool, err error) {
	for _, x := range edits {
		if x.live == nil || x.live.GetAnnotations()[NarrowingAnnotation] != "" {
			rest = true // the NodePool must be created, or buys nothing so that it can be narrowed
			continue
		}
		u := x.full
		if x.live.GetLabels()[PoolLabel] == view.pool.Name {
			if u, err = onlyLimits(x); err != nil {
				return nil, false, err
			}
			rest = rest || !upToDate(x.full, u)
		}
		if !upToDate(u, x.live) {
			light = append(light, edit{full: u, live: x.live})
		}
	}
	return light, rest, nil
}

// onlyLimits returns the manifest that changes only the weight and the limits of Spotter's
// NodePool. It contains all fields that Spotter owns, since an omitted field would be removed.
func onlyLimits(x edit) (*unstructured.Unstructured, error) {
	was, err := typed(x.live)
	if err != nil {
		return nil, err
	}
	there, _, err := unstructured.NestedMap(x.live.Object, "spec", "disruption")
	if err != nil {
		return nil, fmt.Errorf("reading NodePool %s: %w", was.Name, err)
	}
	mine, _, _ := unstructured.NestedMap(x.full.Object, "spec", "disruption")
	kept := object{}
	for k := range mine {
		if v, ok := there[k]; ok {
			kept[k] = v
		}
	}
	u := adoptedManifest(was.Name, x.plain)
	u.SetLabels(x.full.GetLabels())
	spec := u.Object["spec"].(object)
	spec["disruption"], spec["template"] = kept, templateObject(fixedTemplate(was), was.Spec.Template.Spec.Requirements)
	return u, nil
}

// starved reports whether pods that may run in the pool are unschedulable.
func (view *poolView) starved() bool { return len(pendingFor(view.s, view.pool)) > 0 }
