package report

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/stats"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/sim"
)

// samplesOf is the approximate number of samples in a window: hourly for a week.
const samplesOf = 168

// SampleEvery returns the sampling interval (sim.Config.Sample) for charts over a window of the
// given length, in whole minutes.
func SampleEvery(window time.Duration) time.Duration {
	return max(time.Minute, (window/samplesOf+time.Minute-1)/time.Minute*time.Minute)
}

// runsOf returns the indexes in r.Runs of policy p in the cases of g, without missing runs.
func runsOf(r *eval.Report, g *eval.Group, p int) []int {
	return slices.DeleteFunc(r.RunsOf(g, p), func(i int) bool { return r.Runs[i].Err != nil })
}

// values returns the known values of a metric in the runs of policy p.
func values(r *eval.Report, g *eval.Group, p int, metric string) []float64 {
	var out []float64
	for _, i := range runsOf(r, g, p) {
		if v := r.Runs[i].Value(metric); v.Known {
			out = append(out, v.V)
		}
	}
	return out
}

// A course is a value over time in hours since the start of the window.
type course struct{ x, y []float64 }

// medianCourse returns the median of a function of samples over the runs of policy p. It is empty
// if the runs have no samples.
func medianCourse(r *eval.Report, g *eval.Group, p int, of func(sim.Sample) (float64, bool)) course {
	var c course
	runs := runsOf(r, g, p)
	for k := 0; ; k++ {
		var at policy.Time
		var values []float64
		more := false
		for _, i := range runs {
			samples := r.Runs[i].Result.Samples
			if k >= len(samples) {
				continue
			}
			more = true
			at = samples[k].At - r.Runs[i].Result.Window.From
			if v, ok := of(samples[k]); ok {
				values = append(values, v)
			}
		}
		if !more {
			return c
		}
		if len(values) > 0 {
			c.x = append(c.x, float64(at)/3_600_000)
			c.y = append(c.y, stats.Median(values))
		}
	}
}

// A reclaimMap counts reclaimed nodes by market and time.
type reclaimMap struct {
	rows   []string
	edges  []float64 // seconds since 1970
	values [][]int

	// total is the number of reclaimed nodes in all runs, runs the number of runs.
	total, runs int
}

const (
	mapColumns = 84 // two hours each for a week
	mapRows    = 14
)

// reclaims counts the reclaims of g over all policies and seeds. Markets with few reclaims share a
// row.
func reclaims(r *eval.Report, g *eval.Group) reclaimMap {
	first, last := r.Config.Cases[g.Cases[0]].Bound, r.Config.Cases[g.Cases[len(g.Cases)-1]].Bound
	from, to := first.Start.Std().Unix(), last.Start.Add(last.Duration).Std().Unix()
	m := reclaimMap{}
	for i := range mapColumns + 1 {
		m.edges = append(m.edges, float64(from)+float64(float64(to-from)*float64(i))/mapColumns)
	}
	counts := map[string][]int{}
	for p := range r.Config.Policies {
		for _, i := range runsOf(r, g, p) {
			run := &r.Runs[i]
			if len(run.Result.Samples) == 0 {
				continue
			}
			m.runs++
			for _, taken := range run.Result.Taken {
				at := int(float64(mapColumns) * float64(taken.At.Std().Unix()-from) / float64(to-from))
				if at < 0 || at >= mapColumns {
					continue
				}
				name := marketName(run.Bound, taken.Market)
				if counts[name] == nil {
					counts[name] = make([]int, mapColumns)
				}
				counts[name][at]++
				m.total++
			}
		}
	}
	m.fold(counts)
	return m
}

// marketName returns the name of a market without its provider and region.
func marketName(w *scenarios.BoundScenario, id policy.MarketID) string {
	if int(id) >= len(w.Markets) || id < 0 {
		return "unknown market"
	}
	parts := strings.Split(w.Markets[id].Name, "/")
	if len(parts) < 4 {
		return w.Markets[id].Name
	}
	return parts[2] + " " + parts[3]
}

// fold sets the rows from counts: the markets with the most reclaims by name, then the sum of all
// others.
func (m *reclaimMap) fold(counts map[string][]int) {
	names := make([]string, 0, len(counts))
	sum := map[string]int{}
	for name, row := range counts {
		names = append(names, name)
		for _, v := range row {
			sum[name] += v
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(sum[b], sum[a]), cmp.Compare(a, b)) })
	kept := names[:min(len(names), mapRows)]
	rest := names[len(kept):]
	slices.Sort(kept)
	for _, name := range kept {
		m.rows, m.values = append(m.rows, name), append(m.values, counts[name])
	}
	if len(rest) > 0 {
		others := make([]int, mapColumns)
		for _, name := range rest {
			for i, v := range counts[name] {
				others[i] += v
			}
		}
		m.rows, m.values = append(m.rows, figures.Count(len(rest), "other market")), append(m.values, others)
	}
}
