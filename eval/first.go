package eval

import (
	"cmp"
	"math"
	"slices"
)

// Order returns indexes of Config.Policies in descending order of the policies' median savings in
// g; ties remain in the given order. Policies that violate the manifests come after those that
// comply, and policies without a result last.
func (r *Report) Order(g *Group) []int {
	metric, _ := r.Config.Savings()
	order := make([]int, len(g.Policies))
	for p := range order {
		order[p] = p
	}
	slices.SortStableFunc(order, func(a, b int) int {
		x, y := &g.Policies[a], &g.Policies[b]
		return cmp.Or(cmp.Compare(r.tier(x), r.tier(y)), cmp.Compare(y.Summary(metric).Median, x.Summary(metric).Median))
	})
	return order
}

// tier returns 0 for a policy that can be first, 1 for one that violates the manifests, and 2 for
// one without a result.
func (r *Report) tier(p *PolicyReport) int {
	metric, _ := r.Config.Savings()
	switch {
	case p.Summary(metric).N == 0:
		return 2
	case p.Marked():
		return 1
	}
	return 0
}

// Best returns the index in Config.Policies of the policy that is first in g, −1 if no policy can
// be.
func (r *Report) Best(g *Group) int {
	return r.firstOf(g, func(int) bool { return true })
}

// firstOf returns the first of the policies of g for which allowed returns true, −1 if no such
// policy can be first.
func (r *Report) firstOf(g *Group, allowed func(p int) bool) int {
	metric, _ := r.Config.Savings()
	first := -1
	for p := range g.Policies {
		x := &g.Policies[p]
		if r.tier(x) == 0 && allowed(p) &&
			(first < 0 || x.Summary(metric).Median > g.Policies[first].Summary(metric).Median) {
			first = p
		}
	}
	return first
}

// First returns the indexes of the policies that are first in g: the best one and those with equal
// savings.
func (r *Report) First(g *Group) []int {
	var first []int
	for p := range g.Policies {
		if points, ok := r.Shortfall(g, p); ok && points == 0 && !g.Policies[p].Marked() {
			first = append(first, p)
		}
	}
	return first
}

// RunnerUp returns the index of the policy that is first in g if the baseline is excluded, −1 if no
// policy can be.
func (r *Report) RunnerUp(g *Group) int {
	return r.firstOf(g, func(p int) bool { return g.Policies[p].Policy != r.Config.Baseline })
}

// Shortfall returns by how many percentage points policy p saves less than the first of g. It
// returns false if one of the two is unknown.
func (r *Report) Shortfall(g *Group, p int) (float64, bool) {
	metric, _ := r.Config.Savings()
	best, own := r.Best(g), g.Policies[p].Summary(metric)
	if best < 0 || own.N == 0 {
		return 0, false
	}
	return g.Policies[best].Summary(metric).Median - own.Median, true
}

// FirstAcross returns the policy that is first in most scenarios. Ties are resolved in favour of a
// policy that complies with the manifests in all scenarios, then of the smallest worst shortfall,
// then of the given order. It returns nil if no policy is first in any scenario.
func (r *Report) FirstAcross() *Across {
	var first []*Across
	all := r.Across()
	for i := range all {
		if all[i].First > 0 {
			first = append(first, &all[i])
		}
	}
	slices.SortStableFunc(first, func(a, b *Across) int {
		return cmp.Or(cmp.Compare(b.First, a.First), cmp.Compare(min(a.Marked, 1), min(b.Marked, 1)),
			cmp.Compare(a.Worst.Points, b.Worst.Points))
	})
	if len(first) == 0 {
		return nil
	}
	return first[0]
}

// Cheapest returns the index of the cheapest variant, −1 if no cost is known.
func (w *WhatIf) Cheapest() int {
	best := -1
	for i := range w.Variants {
		if x := &w.Variants[i].Change; x.N > 0 && (best < 0 || x.Median < w.Variants[best].Change.Median) {
			best = i
		}
	}
	return best
}

// First returns the index of the variant to choose: the knee of a sweep if there is one, else the
// cheapest variant. An index of −1 is the unchanged scenario. ok is false if no variant is better.
func (w *WhatIf) First() (place int, ok bool) {
	if knee, bends := w.Knee(); bends {
		return knee, true
	}
	at := w.Cheapest()
	return at, at >= 0 && w.Variants[at].Change.Median < 0
}

// Main returns the most important change of c: the failed one with the largest loss, or else the
// one with the largest difference. It returns nil if there is no change.
func (c *Comparison) Main() *Change {
	var best *Change
	rank := func(x *Change) float64 {
		switch {
		case x.Outcome == Worse:
			return 1e12 + max(-x.Savings.Mean, x.Outage.Mean)
		case x.Pairs == 0:
			return -1
		}
		return max(math.Abs(x.Savings.Mean), math.Abs(x.Outage.Mean))
	}
	for i := range c.Changes {
		if x := &c.Changes[i]; rank(x) >= 0 && (best == nil || rank(x) > rank(best)) {
			best = x
		}
	}
	return best
}
