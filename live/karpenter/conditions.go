package karpenter

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The types of the conditions that this package gives a CapacityPool.
const (
	// ConditionKarpenter is False where Karpenter or its node class is not there.
	ConditionKarpenter = "KarpenterReady"

	// ConditionFieldConflict is True while another manager, which its message names,
	// holds a field that we would write.
	ConditionFieldConflict = "FieldConflict"

	// ConditionTemplateHeld is True while the pool states another template than its
	// nodes were made from; the message says how many nodes a change would replace.
	ConditionTemplateHeld = "TemplateHeld"

	// ConditionMarketsWidened is True while Karpenter may buy in spot markets that the
	// plan leaves out, since nodes live there or a NodePool cannot say it more narrowly.
	ConditionMarketsWidened = "MarketsWidened"
)

// Conditions returns what is to be said of a CapacityPool, by type. The caller sets
// the time and the generation.
func (b *Backend) Conditions(pool string) []metav1.Condition {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.pools[pool]
	if p == nil {
		return nil
	}
	var all []metav1.Condition
	for _, t := range slices.Sorted(maps.Keys(p.conditions)) {
		all = append(all, p.conditions[t])
	}
	return all
}

// say sets a condition of a CapacityPool.
func (b *Backend) say(pool, kind string, status bool, reason, message string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message}
	if status {
		c.Status = metav1.ConditionTrue
	}
	b.pool(pool).conditions[kind] = c
}
