package asg

import (
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spotter-dev/spotter/live/backend"
)

// ConditionGroups is the condition of a CapacityPool that says whether its groups
// can be read and worked on.
const ConditionGroups = "AutoScalingGroupsReady"

// Conditions returns what holds of a pool as far as its groups go. Times and
// generation are up to who writes it.
func (b *Backend) Conditions(pool string) []metav1.Condition {
	b.mu.Lock()
	mine := slices.ContainsFunc(b.pools, func(p poolOf) bool { return p.name == pool && !p.gone })
	b.mu.Unlock()
	if !mine {
		return nil
	}
	err := b.conditionOf(pool)
	c := metav1.Condition{Type: ConditionGroups, Status: metav1.ConditionTrue, Reason: "GroupsRead", Message: "all groups are read and worked on"}
	var h *backend.Held
	switch {
	case errors.As(err, &h):
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, h.Reason, h.Message
	case err != nil:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, ReasonUnread, err.Error()
	}
	return []metav1.Condition{c}
}
