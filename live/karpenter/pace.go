package karpenter

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/spotter-dev/spotter/live/backend"
)

// What a write may do to running nodes decides how soon it may follow the one before.
//
// The template, whose requirements are the markets, makes nodes drift; the disruption
// settings start and stop consolidation. They change at most once in
// [Config.WriteEvery], unless there is an emergency.
//
// Weight and limits touch no node that runs: Karpenter's hash covers the template
// alone, a limit below what is held removes nothing, and a weight is looked at only
// when something is bought. They are what a growing pool needs soon, since what they do
// not allow as spot is bought on demand, and moved later at the price of an eviction.
// So they may change every [Config.LimitsEvery], and at once while pods of the pool
// find no place.

// An edit is the pending change of one NodePool.
type edit struct {
	// full is the whole change, and live the existing NodePool; nil if it does not exist.
	full, live *unstructured.Unstructured

	// plain is how the NodePool should buy when it need not be narrowed.
	plain half

	// urgent says that nodes would drift if it were not done, or Karpenter would remove some
	// outside of maintenance windows.
	urgent bool
}

// paced returns which of edits may be done now, and whether that changes anything but
// weights and limits. The error is a Held that says what waits, and until when.
func (n *nodePoolSteerer) paced(w *poolView, edits []edit) (now []edit, full bool, err error) {
	light, rest, err := n.quick(w, edits)
	if err != nil {
		return nil, false, err
	}
	written, limited, conflict := n.states.writes(w.pool.Name)
	if conflict != 0 && conflict.Add(n.cfg.WriteEvery) > n.cfg.now() {
		return nil, false,
			backend.Hold("Paced", "another field manager owned fields of the NodePools of %s at %v; the next attempt is at %v",
				w.pool.Name, conflict, conflict.Add(n.cfg.WriteEvery))
	}
	due := written.Add(n.cfg.WriteEvery)
	switch {
	case rest && due <= n.cfg.now():
		return edits, true, nil
	case len(light) > 0 && limited.Add(n.cfg.LimitsEvery) > n.cfg.now() && !w.starved():
		return nil, false,
			backend.Hold("Paced", "the limits of the NodePools of %s were changed at %v; the next change is possible at %v",
				w.pool.Name, limited, limited.Add(n.cfg.LimitsEvery))
	case rest:
		err = backend.Hold("Paced",
			"the markets of the NodePools of %s were changed at %v; the next change is possible at %v", w.pool.Name, written, due)
	}
	return light, false, err
}

// quick returns the parts of edits that change weights and limits. rest reports that there are
// other parts.
func (n *nodePoolSteerer) quick(w *poolView, edits []edit) (light []edit, rest bool, err error) {
	for _, x := range edits {
		if x.live == nil || x.live.GetAnnotations()[NarrowingAnnotation] != "" {
			rest = true // the NodePool must be created, or buys nothing so that it can be narrowed
			continue
		}
		u := x.full
		if x.live.GetLabels()[PoolLabel] == w.pool.Name {
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

// onlyLimits returns what to apply to Spotter's NodePool so that only its weight and its limits
// change. All fields that Spotter owns are in it, since an omitted field would be removed.
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
	u := adopted(was.Name, x.plain)
	u.SetLabels(x.full.GetLabels())
	spec := u.Object["spec"].(object)
	spec["disruption"], spec["template"] = kept, templateObject(fixedTemplate(was), was.Spec.Template.Spec.Requirements)
	return u, nil
}

// starved reports whether pods that may run in the pool find no place.
func (w *poolView) starved() bool { return len(pendingFor(w.s, w.pool)) > 0 }
