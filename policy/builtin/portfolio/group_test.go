package portfolio

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/policy"
)

// plainGroups is what groups returns, found without anything that is kept: workloads
// by group, and what each is expected to save.
func plainGroups(m *rebalance) (sets [][]bool, nets []float64) {
	list := m.list[:min(len(m.list), triesMax)]
	holds := func(has []bool, c *candidate) bool {
		return !slices.ContainsFunc(c.pods, func(x moving) bool { return !has[x.workload] })
	}
	join := func(has []bool, c *candidate) []bool {
		has = slices.Clone(has)
		for _, x := range c.pods {
			has[x.workload] = true
		}
		return has
	}
	waves := func(w policy.WorkloadID, k int32) float64 {
		if k == 0 {
			return 0
		}
		return m.costs.find(w, k)
	}
	expects := func(has []bool) float64 {
		moved, sum, left := make([]int32, len(has)), 0.0, m.left
		for i := range list {
			if left == 0 || !holds(has, &list[i]) {
				continue
			}
			gain := list[i].gain
			for _, x := range list[i].pods {
				gain -= waves(x.workload, moved[x.workload]+x.pods) - waves(x.workload, max(moved[x.workload], 1))
			}
			if gain <= 0 {
				continue
			}
			sum, left = sum+gain, left-1
			for _, x := range list[i].pods {
				moved[x.workload] += x.pods
			}
		}
		for w := range moved {
			if moved[w] > 0 {
				sum -= waves(policy.WorkloadID(w), 1)
			}
		}
		return sum
	}
	type found struct {
		has []bool
		net float64
	}
	var all []found
	for i := range list[:min(len(list), beginsMax)] {
		g := found{has: join(make([]bool, len(m.s.Workloads)), &list[i])}
		g.net = expects(g.has)
		for more := true; more; {
			more = false
			best := g
			for k := range list {
				next := found{has: join(g.has, &list[k])}
				if next.net = expects(next.has); !holds(g.has, &list[k]) && next.net > best.net {
					best, more = next, true
				}
			}
			g = best
		}
		if g.net > 0 && !slices.ContainsFunc(all, func(x found) bool { return slices.Equal(x.has, g.has) }) {
			all = append(all, g)
		}
	}
	slices.SortStableFunc(all, func(a, b found) int { return cmp.Compare(b.net, a.net) })
	for _, g := range all[:min(len(all), groupsMax)] {
		sets, nets = append(sets, g.has), append(nets, g.net)
	}
	return sets, nets
}

// TestGroups compares groups with the plain form, to the last bit.
func TestGroups(t *testing.T) {
	d := planStateOf(t, twoMarkets)
	d.service = 1.2 / d.e.cfg.Disturbance // two cents a minute
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{1, 3, 8, 64, 70}).Draw(t, "workloads")
		d.s = &policy.Snapshot{Workloads: make([]policy.Workload, n)}
		m := rebalance{
			planState: d, left: rapid.IntRange(1, 12).Draw(t, "left"), expected: make([]int32, n), costs: newMoveCosts(d.short(), n),
		}
		for w := range n {
			m.costs.minutes[w] = rapid.SampledFrom([]float64{0.5, 1, 3}).Draw(t, "minutes")
			m.costs.value[w], m.costs.penalty[w] = rapid.Float64Range(0, 0.3).Draw(t, "value"), rapid.Float64Range(0, 0.01).Draw(t, "penalty")
			m.costs.slack[w] = rapid.Int32Range(0, 4).Draw(t, "slack")
		}
		for range rapid.IntRange(0, 14).Draw(t, "nodes") {
			c := candidate{gain: rapid.Float64Range(0, 0.05).Draw(t, "gain")}
			for _, w := range rapid.SliceOfNDistinct(rapid.IntRange(0, n-1), 0, min(n, 3), rapid.ID[int]).Draw(t, "holds") {
				c.pods = append(c.pods, moving{policy.WorkloadID(w), rapid.Int32Range(1, 5).Draw(t, "pods")})
			}
			c.has = m.membersOf(c.pods)
			m.list = append(m.list, c)
		}
		got := m.groups()
		sets, nets := plainGroups(&m)
		if len(got) != len(sets) {
			t.Fatalf("%d groups, want %v", len(got), sets)
		}
		for i := range got {
			for w := range n {
				if has := got[i].has[w/64]&(1<<(w%64)) != 0; has != sets[i][w] {
					t.Fatalf("group %d has workload %d: %t", i, w, has)
				}
			}
			if got[i].net != nets[i] {
				t.Fatalf("group %d saves %v, want %v", i, got[i].net, nets[i])
			}
		}
	})
}
