package cluster

import (
	"fmt"
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Conflicts returns the reason of each pool that claims the same nodes as another, by name of the
// pool. Nothing may be written for these pools.
func (o *Observer) Conflicts() map[string]string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.pools.conflicts)
}

// The types of the conditions of a CapacityPool that the observer determines.
const (
	ConditionValid    = "Valid"
	ConditionObserved = "Observed"
	ConditionPriced   = "NodesPriced"
)

// Conditions returns the conditions of a pool that report whether its specification is valid,
// whether the data about the cluster is current, whether the prices of all its nodes are known, and
// whether the usage of nodes is known.
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
