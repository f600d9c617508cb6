package portfolio

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/policytest"
)

// TestKept: whatever changes from snapshot to snapshot, a policy that decided on those before
// decides the same as one that reads the last one alone.
func TestKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kept, err := New(DefaultConfig())
		if err != nil {
			t.Fatal(err)
		}
		s := policytest.Snapshot().Draw(t, "snapshot")
		m := policytest.Memory(s).Draw(t, "memory")
		var changes policy.Changes
		for step := range rapid.IntRange(2, 6).Draw(t, "decisions") {
			if step > 0 {
				s.Now = s.Now.Add(10 * time.Minute)
				for range rapid.IntRange(0, 6).Draw(t, "changes") {
					policytest.Change(t, s, &changes)
				}
			}
			changes.Publish(s)
			fresh, err := New(DefaultConfig())
			if err != nil {
				t.Fatal(err)
			}
			whole := s.Whole()
			plan, next := kept.Decide(s, m)
			want, wantNext := fresh.Decide(&whole, m)
			if !reflect.DeepEqual(plan, want) || !reflect.DeepEqual(next, wantNext) {
				t.Fatalf("decided\n%s%+v\nread alone\n%s%+v", plan.Format(s), next, want.Format(s), wantNext)
			}
			if got, want := kept.classes.byKey(), fresh.classes.byKey(); !reflect.DeepEqual(got, want) {
				t.Fatalf("classes are %v, read alone %v", got, want)
			}
			if !slices.Equal(kept.roomy.nodes, fresh.roomy.nodes) || !slices.Equal(kept.names.order, fresh.names.order) {
				t.Fatalf("room is on %v by name %v, read alone %v %v", kept.roomy.nodes, kept.names.order, fresh.roomy.nodes, fresh.names.order)
			}
			if x, y := &kept.nodes, &fresh.nodes; !slices.Equal(x.all, y.all) || !slices.Equal(x.plain, y.plain) ||
				!slices.Equal(x.odd, y.odd) || !slices.Equal(x.recommended, y.recommended) {
				t.Fatalf("nodes are %+v, read alone %+v", *x, *y)
			}
			m = next
		}
	})
}

// byKey returns the nodes of the classes that have any.
func (x *nodeClasses) byKey() map[classKey][]policy.NodeID {
	all := map[classKey][]policy.NodeID{}
	for i := range x.list {
		if c := &x.list[i]; len(c.nodes) > 0 {
			all[c.classKey] = c.nodes
		}
	}
	return all
}
