package sweep

import (
	"slices"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/stats"
)

// values returns a metric of candidate i in the race, by window; on fresh seeds if fresh is true.
// Within a window, values are in the order of seeds.
func (h *heat) values(i int, metric string, fresh bool) [][]float64 {
	out := make([][]float64, len(h.race.Cases))
	for k := range h.runs {
		r := &h.runs[k]
		if v := r.Value(metric); r.Candidate == i && (r.Rung == 0) == fresh && v.Known {
			out[r.CaseIndex] = append(out[r.CaseIndex], v.V)
		}
	}
	return out
}

// The metrics of candidates.
const (
	saved  = "net_savings_pct"
	change = "net_savings_delta_pct"
	outage = "outage_minutes"
)

// figures summarizes candidate i in the race. The interval of its change has error rate rate; 0
// means no interval.
func (h *heat) figures(i int, rate float64) Figures { return h.sumUp(i, rate, false) }

// fresh summarizes candidate i on fresh seeds.
func (h *heat) fresh(i int, rate float64) Figures { return h.sumUp(i, rate, true) }

func (h *heat) sumUp(i int, rate float64, fresh bool) Figures {
	voluntary, reclaim := h.values(i, "voluntary_evictions_per_pod_day", fresh), h.values(i,
		"reclaim_evictions_per_pod_day", fresh)
	for k := range voluntary {
		for s := range voluntary[k] {
			voluntary[k][s] += reclaim[k][s]
		}
	}
	return Figures{
		Saved: eval.Summarize(h.values(i, saved, fresh), rate), Change: eval.Summarize(h.values(i, change, fresh), rate),
		Outage: eval.Summarize(h.values(i, outage, fresh), 0), Evictions: eval.Summarize(voluntary, 0),
	}
}

// leader returns the index of the remaining candidate with the highest median of net savings, the
// first if several are equal.
func (h *heat) leader() int {
	best, most := -1, 0.0
	for _, i := range h.alive {
		if m := stats.Median(slices.Concat(h.values(i, saved, false)...)); best < 0 || m > most {
			best, most = i, m
		}
	}
	return best
}

// drop removes the candidates that the leader beats beyond chance, by the tests and with the
// tolerance of `eval --compare`. The truly best candidate could be removed by each other candidate
// at each rung; the sum of these probabilities is at most errorRate.
func (h *heat) drop(rung int) {
	rate := errorRate / float64(len(h.field)-1)
	test := stats.Test{Tolerance: eval.LossMax, ExceedsRate: stats.LookRate(rate, rung-1),
		WithinRate: stats.LookRate(rate, rung-1)}
	leader := h.leader()
	own := h.values(leader, saved, false)
	h.race.Need = 0
	var left []int
	for _, i := range h.alive {
		row := &h.race.Candidates[i]
		row.Rungs = rung
		if i == leader {
			left = append(left, i)
			continue
		}
		row.Loss = test.Paired(losses(own, h.values(i, saved, false), rate))
		if row.Dropped = row.Loss.Exceeds; !row.Dropped {
			left = append(left, i)
		}
		h.race.Need = max(h.race.Need, row.Loss.Need)
	}
	h.alive = left
}

// losses returns by how much less b saves than a in each unit: by window if there are enough
// windows at the error rate, else by seed.
func losses(a, b [][]float64, rate float64) []float64 {
	var out []float64
	if len(a) >= stats.UnitsMin(stats.LookRate(rate, stats.LooksMax-1)) {
		for k := range a {
			out = append(out, stats.Mean(a[k])-stats.Mean(b[k]))
		}
		return out
	}
	for s := range a[0] {
		sum := 0.0
		for k := range a {
			sum += a[k][s] - b[k][s]
		}
		out = append(out, sum/float64(len(a)))
	}
	return out
}

// front marks the candidates that no other candidate beats.
func (h *heat) front() {
	all := h.race.Candidates
	for i := range all {
		all[i].Front = all[i].Saved.N > 0 && !slices.ContainsFunc(all, func(o Row) bool { return beats(&o, &all[i]) })
	}
}

// beats reports whether a is at least as good as b in every respect, and better in at least one.
func beats(a, b *Row) bool {
	as := a.Saved.Median >= b.Saved.Median && a.Outage.Mean <= b.Outage.Mean && a.Evictions.Median <= b.Evictions.Median
	return as && (a.Saved.Median > b.Saved.Median || a.Outage.Mean < b.Outage.Mean ||
		a.Evictions.Median < b.Evictions.Median)
}
