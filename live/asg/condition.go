package asg

import (
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spotter-dev/spotter/live/backend"
)

// ConditionGroups is the condition of a CapacityPool that reports whether its groups can be read
// and changed.
const ConditionGroups = "AutoScalingGroupsReady"

// Conditions returns the conditions of a pool that concern its groups; nil if the pool does not
// name any groups. The caller sets the times and the generation.
func (b *Backend) Conditions(pool string) []metav1.Condition {
	if !b.groups.names(pool) {
		return nil
	}
	err := b.groups.conditionOf(pool)
	c := metav1.Condition{Type: ConditionGroups, Status: metav1.ConditionTrue, Reason: "GroupsRead",
		Message: "all groups are read and worked on"}
	var h *backend.Held
	switch {
	case errors.As(err, &h):
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, h.Reason, h.Message
	case err != nil:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, ReasonUnread, err.Error()
	}
	return []metav1.Condition{c}
}

// names reports whether a pool exists and names groups.
func (t *groupTable) names(pool string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(t.pools, func(p poolOf) bool { return p.name == pool && !p.gone })
}

// conditionOf returns the reason that the groups of a pool cannot be read or changed; nil if they
// can.
func (t *groupTable) conditionOf(pool string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := slices.IndexFunc(t.pools, func(p poolOf) bool { return p.name == pool })
	claimed := slices.IndexFunc(t.all, func(g *group) bool {
		return g.pool == conflicting && p >= 0 &&
			claims(t.pools[p], g)
	})
	switch {
	case t.fault != nil:
		return held(t.fault, "reading the Auto Scaling groups")
	case p < 0:
		return nil
	case t.polled == 0:
		return backend.Hold(ReasonUnread, "the Auto Scaling groups have not been read since this replica started")
	case claimed >= 0:
		return backend.Hold(ReasonConflict, "the group %s has the discovery tags of several pools, so it is left unchanged",
			t.all[claimed].name)
	case !slices.ContainsFunc(t.all, func(g *group) bool { return g.pool == pool }):
		return backend.Hold(ReasonNoGroup, "no Auto Scaling group has the discovery tags %s", written(t.pools[p].tags))
	}
	return t.notes[pool]
}

// keepHeld records err as the condition of a pool if err is nil or a [backend.Held], and returns
// it.
func (t *groupTable) keepHeld(pool string, err error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var h *backend.Held
	if err == nil || errors.As(err, &h) {
		t.notes[pool] = err
	}
	return err
}
