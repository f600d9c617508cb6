package measure

import (
	"math"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// A kin is what is the same for markets of one type in one region.
type kin struct{ provider, region, kind, product string }

// together fills in how zones and regions fail together.
func (a *Availability) together(t *trace.Trace, tracks []track) {
	var order []kin
	members := map[kin][]int{}
	for i := range tracks {
		if len(tracks[i].at) == 0 {
			continue
		}
		s := &t.Series[i]
		k := kin{s.Provider, s.Region, s.Type, s.Product}
		if members[k] == nil {
			order = append(order, k)
		}
		members[k] = append(members[k], i)
	}
	var sums []regionSums
	for _, k := range order {
		r := len(a.Regions) - 1
		if r < 0 || a.Regions[r].Provider != k.provider || a.Regions[r].Region != k.region {
			a.Regions, sums = append(a.Regions, RegionAvailability{Provider: k.provider, Region: k.region}), append(sums,
				regionSums{})
			r++
		}
		a.Regions[r].Zones = max(a.Regions[r].Zones, len(members[k]))
		sums[r].add(tracks, members[k])
	}
	within := 0.0
	for r := range a.Regions {
		sums[r].fill(&a.Regions[r])
		within += sums[r].correlation
		a.WithinPairs += sums[r].pairs
	}
	a.Within = per(within, a.WithinPairs)
	a.across(tracks, order, members)
}

// across averages over pairs of regions that sell one type.
func (a *Availability) across(tracks []track, order []kin, members map[kin][]int) {
	sum := 0.0
	for i, k := range order {
		for _, other := range order[:i] {
			if other.kind != k.kind || other.product != k.product || other.provider != k.provider {
				continue
			}
			for _, x := range members[k] {
				for _, y := range members[other] {
					if r := stateCorrelation(&tracks[x], &tracks[y]); !math.IsNaN(r) {
						sum += r
						a.AcrossPairs++
					}
				}
			}
		}
	}
	a.Across = per(sum, a.AcrossPairs)
}

// regionSums gathers over the types of a region.
type regionSums struct {
	correlation                float64
	pairs, intervals           int
	allDown, independent, time float64 // hours
}

func (r *regionSums) add(tracks []track, members []int) {
	for i, x := range members {
		for _, y := range members[:i] {
			if c := stateCorrelation(&tracks[x], &tracks[y]); !math.IsNaN(c) {
				r.correlation += c
				r.pairs++
			}
		}
	}
	j := joint{up: make([]float64, len(members))}
	j.walk(tracks, members)
	if j.time == 0 {
		return
	}
	independent := j.time
	for _, up := range j.up {
		independent = float64(independent * (1 - up/j.time))
	}
	r.allDown, r.time, r.intervals = r.allDown+j.down, r.time+j.time, r.intervals+j.intervals
	r.independent += independent
}

func (r *regionSums) fill(to *RegionAvailability) {
	to.Correlation, to.Pairs = per(r.correlation, r.pairs), r.pairs
	to.AllDown, to.Independent, to.AllDownEvents = r.allDown/r.time, r.independent/r.time, r.intervals
}

// A joint is the time in which the states of several markets are all known.
type joint struct {
	time, down float64   // hours, and hours in which all are down
	up         []float64 // hours up, by market
	both       float64   // hours in which all are up
	intervals  int       // of all down
}

// walk goes through the intervals of all members at once.
func (j *joint) walk(tracks []track, members []int) {
	next := make([]int, len(members))
	now, end := policy.Time(math.MinInt64), policy.Time(math.MaxInt64)
	for _, m := range members {
		now, end = max(now, tracks[m].at[0]), min(end, tracks[m].end)
	}
	wasDown := false
	for now < end {
		until := end
		known, ups := true, 0
		for k, m := range members {
			tr := &tracks[m]
			for next[k] < len(tr.at) && tr.at[next[k]] <= now {
				next[k]++
			}
			if next[k] < len(tr.at) {
				until = min(until, tr.at[next[k]])
			}
			state := tr.up[next[k]-1]
			known = known && state >= 0
			ups += int(max(0, state))
		}
		down := known && ups == 0
		if known {
			j.spend(tracks, members, next, hoursOf(now, until), ups)
		}
		if down && !wasDown {
			j.intervals++
		}
		now, wasDown = until, down
	}
}

// spend adds hours in which ups of the members are up.
func (j *joint) spend(tracks []track, members, next []int, hours float64, ups int) {
	j.time += hours
	switch ups {
	case 0:
		j.down += hours
	case len(members):
		j.both += hours
	}
	for k, m := range members {
		if tracks[m].up[next[k]-1] == 1 {
			j.up[k] += hours
		}
	}
}

// stateCorrelation is Pearson's of two states over the time in which both are
// known.
func stateCorrelation(a, b *track) float64 {
	j := joint{up: make([]float64, 2)}
	j.walk([]track{*a, *b}, []int{0, 1})
	pa, pb := j.up[0]/j.time, j.up[1]/j.time
	spread := float64(pa*(1-pa)) * float64(pb*(1-pb))
	if !(spread > 0) {
		return math.NaN()
	}
	return (j.both/j.time - float64(pa*pb)) / math.Sqrt(spread)
}
