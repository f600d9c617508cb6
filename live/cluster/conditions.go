package cluster

import (
	"fmt"
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Conflicts names the pools that lay claim to the same nodes, each with the reason:
// nothing may be written for them.
func (o *Observer) Conflicts() map[string]string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.pools.conflicts)
}

// The conditions that the observer knows of a CapacityPool.
const (
	ConditionValid    = "Valid"
	ConditionObserved = "Observed"
	ConditionPriced   = "NodesPriced"
)

// Conditions reports whether a pool can be understood, whether what is seen of the
// cluster is fresh, whether it is known of all of its nodes what they cost, and whether
// what nodes use.
func (o *Observer) Conditions(pool string) []metav1.Condition {
	stalled := o.Stalled()
	o.mu.Lock()
	defer o.mu.Unlock()
	valid := metav1.Condition{Type: ConditionValid, Status: metav1.ConditionTrue, Reason: "Valid"}
	if why := o.pools.invalid[pool]; why != "" {
		valid.Status, valid.Reason, valid.Message = metav1.ConditionFalse, "Invalid", why
	}
	seen := metav1.Condition{Type: ConditionObserved, Status: metav1.ConditionTrue, Reason: "Fresh"}
	if len(stalled) > 0 {
		seen.Status, seen.Reason = metav1.ConditionFalse, "Stalled"
		seen.Message = fmt.Sprintf("no update of %s was received for more than %v", strings.Join(stalled, ", "),
			o.cfg.DataMax)
	}
	all := []metav1.Condition{valid, seen, o.pricing.condition(pool), o.usage.condition()}
	if p := o.pools.objects[pool]; p != nil {
		for i := range all {
			all[i].ObservedGeneration = p.Generation
		}
	}
	return all
}
