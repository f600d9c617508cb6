package policy_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/policy"
)

// TestMemoryWith compares with a map: what was put last under a name is found,
// pools stay in order, and an older memory does not change.
func TestMemoryWith(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m policy.Memory
		want := make(map[string]float64)
		for range rapid.IntRange(0, 12).Draw(t, "changes") {
			p := policy.PoolMemory{
				Name:   rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "name"),
				Target: rapid.Float64().Draw(t, "target"),
			}
			before, pools := m, slices.Clone(m.Pools)
			m = m.With(p)
			want[p.Name] = p.Target
			if !slices.EqualFunc(before.Pools, pools, func(x, y policy.PoolMemory) bool { return reflect.DeepEqual(x, y) }) {
				t.Fatalf("With changed the memory before: %+v, was %+v", before.Pools, pools)
			}
		}
		if !slices.IsSortedFunc(m.Pools, func(x, y policy.PoolMemory) int { return strings.Compare(x.Name, y.Name) }) {
			t.Fatalf("out of order: %+v", m.Pools)
		}
		for _, name := range []string{"a", "b", "c", "d"} {
			if got := m.Pool(name); got.Name != name || got.Target != want[name] {
				t.Fatalf("%s: %+v, want target %v", name, got, want[name])
			}
		}
		if len(m.Pools) != len(want) {
			t.Fatalf("%d pools, want %d", len(m.Pools), len(want))
		}
	})
}

func TestBackedOff(t *testing.T) {
	m := policy.PoolMemory{Backoff: []policy.Backoff{{Node: "a", Until: 10}, {Node: "c", Until: 30}}}
	for _, c := range []struct {
		node string
		now  policy.Time
		want bool
	}{{"a", 9, true}, {"a", 10, false}, {"b", 0, false}, {"c", 29, true}, {"d", 0, false}} {
		if got := m.BackedOff(c.node, c.now); got != c.want {
			t.Errorf("%s at %d: %v, want %v", c.node, c.now, got, c.want)
		}
	}
}

// TestLossBudgetKept: an old account does not show that the policy keeps a budget.
func TestLossBudgetKept(t *testing.T) {
	for _, c := range []struct {
		b            policy.LossBudget
		now          policy.Time
		kept, usedUp bool
	}{
		{policy.LossBudget{}, 0, false, false}, {policy.LossBudget{Away: true}, 5, false, false},
		{policy.LossBudget{At: 5}, 5, true, false}, {policy.LossBudget{At: 5, Away: true}, 5, true, true},
		{policy.LossBudget{At: 5, Away: true}, 5 + 599_999, true, true},
		{policy.LossBudget{At: 5, Away: true}, 5 + 600_000, false, false},
	} {
		if kept, usedUp := c.b.Kept(c.now), c.b.UsedUp(c.now); kept != c.kept || usedUp != c.usedUp {
			t.Errorf("%+v at %d is kept %v and used up %v", c.b, c.now, kept, usedUp)
		}
	}
}
