package check

import (
	"fmt"
	"math"
	"strconv"

	"github.com/spotter-dev/spotter/.ci/tools/lab/measure"
)

// A Figure is one of the statistics of a trace, with how it may be compared.
type Figure struct {
	// Name is short, without spaces, and the same for every trace. Label says
	// in words what it is.
	Name, Label string

	// Unit is that of Value: "/day", "h", "share", "" for a plain number.
	Unit string

	// Value is NaN if unknown.
	Value float64

	// Tolerance names that by which the figure is judged; empty means that it
	// is shown only. Kind is how its distance is then measured, which a limit
	// of its own uses as well.
	Tolerance string
	Kind      Kind

	// Events are what the figure was computed of, and Fewest how many of them
	// it needs to be judged.
	Events, Fewest int

	// Exposure is the market time in which Events could happen. A trace in
	// which fewer happened than in another is excused only when, for its
	// Exposure, few were to be expected. 0 means that Events are the size of
	// the trace and not what happened in it.
	Exposure float64

	// Place reports that the figure is of one zone or region. A trace of other places does
	// not have the figure, which is not a fault.
	Place bool

	// Depth says that the figure is of how many nodes came up, which not every
	// trace with availability records.
	Depth bool

	// sample is set for a figure that is a whole distribution. It has no
	// value: only the distance of two is known.
	sample *measure.Sample
}

// The fewest events of figures that are not rates of rare events. With fewer
// than 20 markets one of them alone is more than the tolerance of their share;
// ten pairs of zones determine a median correlation to about 0.1.
const (
	marketsMin = 20
	pairsMin   = 10
)

// Figures returns every figure of s in a fixed order. Those of zones and
// regions carry their names. Modelled prices have none.
func Figures(s *measure.Statistics) []Figure {
	var all []Figure
	if !s.Prices.Modelled {
		all = priceFigures(s)
	}
	if s.Availability != nil {
		all = append(all, availabilityFigures(s.Availability)...)
	}
	if s.Depth != nil {
		all = append(all, depthFigures(s.Depth)...)
	}
	return all
}

func priceFigures(s *measure.Statistics) []Figure {
	p := &s.Prices
	rate := Figure{Tolerance: tolRate, Kind: Relative, Unit: "/day", Events: p.Changes, Fewest: eventsMin,
		Exposure: p.MarketDays}
	all := []Figure{
		rate.as("change-rate-mean", "changes per market-day, mean", p.RateMean),
		rate.free("change-rate-p5", "changes per market-day, 5th percentile", p.Rate[0]),
		rate.as("change-rate-p50", "changes per market-day, median", p.Rate[1]),
		rate.free("change-rate-p95", "changes per market-day, 95th percentile", p.Rate[2]),
	}
	// A median of 0 says that most markets stood still, which the share of
	// those does better.
	if p.Rate[1] > 0 {
		all[0].Tolerance = ""
	} else {
		all[2].Tolerance = ""
	}
	share := Figure{Unit: "share", Kind: Absolute, Events: s.Markets, Fewest: marketsMin}
	unmoved := share
	unmoved.Tolerance = tolUnmoved
	all = append(all, unmoved.as("unmoved", "markets that never changed", p.Unmoved))
	gap := Figure{Unit: "h", Kind: Relative}
	for i, q := range [...]string{"p5", "p50", "p95", "p99"} {
		all = append(all, gap.as("gap-"+q, "between two changes, "+percentile(q), p.GapHours[i]))
	}
	all = append(all, distribution("gap-ks", "between two changes, distribution", unweighted(p.Gaps)))
	all = append(all, stepFigures(p)...)
	ratio := Figure{Kind: Relative}
	for i, q := range [...]string{"p1", "p5", "p25", "p50", "p75", "p95", "p99"} {
		f := ratio.as("ratio-"+q, "spot / on-demand, "+percentile(q)+" of time", p.Ratio[i])
		if q == "p5" || q == "p50" || q == "p95" {
			f.Tolerance = tolRatio
		}
		all = append(all, f)
	}
	all = append(all, distribution("ratio-ks", "spot / on-demand, distribution over time", p.Ratios),
		share.as("above-0.9", "time above 0.9 × on-demand", p.Above90),
		Figure{Unit: "/year", Kind: Relative}.as("spike-entries", "rises above 0.9 × on-demand per market-year",
			p.SpikeEntries))
	for i, q := range [...]string{"p5", "p50", "p95"} {
		all = append(all, gap.as("spike-hours-"+q, "time spent above, "+percentile(q), p.SpikeHours[i]))
	}
	zones := Figure{Tolerance: tolZones, Kind: Absolute, Events: p.ZonePairs, Fewest: pairsMin}
	return append(all, zones.as("zone-correlation", "daily returns of a type in two zones, median correlation",
		p.ZoneCorrelation),
		share.as("offered", "time with a price", p.Offered))
}

func stepFigures(p *measure.Prices) []Figure {
	step := Figure{Kind: Relative}
	momentum := Figure{Tolerance: tolMomentum, Kind: Absolute, Events: p.StepPairs, Fewest: eventsMin,
		Exposure: p.MarketDays}
	return []Figure{
		step.as("step-p50", "size of a step (log), median", p.StepMedian),
		step.as("step-p95", "size of a step (log), 95th percentile", p.StepP95),
		step.as("step-p99", "size of a step (log), 99th percentile", p.StepP99),
		step.as("step-max", "size of a step (log), largest", p.StepMax),
		step.as("step-std", "standard deviation of steps (log)", p.StepStd),
		distribution("step-ks", "size of a step, distribution", unweighted(p.Steps)),
		momentum.as("autocorrelation", "correlation of a step with the next", p.Autocorrelation),
		Figure{Unit: "share", Kind: Absolute}.as("same-sign", "steps in the direction of the one before", p.SameSign),
	}
}

func availabilityFigures(a *measure.Availability) []Figure {
	share, hours := Figure{Unit: "share", Kind: Absolute}, Figure{Unit: "h", Kind: Relative}
	all := []Figure{
		share.as("available", "time in which a node could be had", a.Share),
		hours.as("mean-up", "mean spell with", a.MeanUp),
		hours.as("mean-down", "mean spell without", a.MeanDown),
		distribution("up-ks", "spells with, distribution", unweighted(a.Ups)),
		distribution("down-ks", "spells without, distribution", unweighted(a.Downs)),
	}
	for i := range a.Hazard {
		all = append(all, hazardFigure(&a.Hazard[i], a.Hours))
	}
	state := Figure{Tolerance: tolState, Kind: Absolute, Events: a.Losses, Fewest: eventsMin, Exposure: a.Hours}
	all = append(all, state.as("state-correlation", "states of two zones of a region, mean correlation", a.Within))
	for i := range a.Regions {
		all = append(all, regionFigures(a, &a.Regions[i])...)
	}
	all = append(all, Figure{Kind: Absolute}.as("state-correlation-across", "states of two regions, mean correlation",
		a.Across))
	share.Place, hours.Place = true, true
	for i := range a.Zones {
		z := &a.Zones[i]
		name := z.Provider + "/" + z.Zone
		all = append(all,
			share.as("available-"+name, "time in which a node could be had in "+z.Zone, z.Share),
			hours.as("mean-up-"+name, "mean spell with in "+z.Zone, z.MeanUp),
			hours.as("mean-down-"+name, "mean spell without in "+z.Zone, z.MeanDown))
	}
	return all
}

func hazardFigure(b *measure.Bucket, exposure float64) Figure {
	f := Figure{Tolerance: tolHazard, Kind: Relative, Unit: "/h", Events: b.Events, Fewest: eventsMin, Exposure: exposure}
	name := number(b.From) + "-" + number(b.To)
	label := "spells that end, at an age of " + number(b.From) + " to " + number(b.To) + " h"
	switch {
	case b.From == 0:
		// Probing misses the shortest intervals, so that this figure is as much
		// the probe's as the market's.
		f.Tolerance = ""
	case math.IsInf(b.To, 1):
		f.Tolerance = tolHazardLong
		name, label = number(b.From)+"-up", "spells that end, at an age above "+number(b.From)+" h"
	}
	return f.as("hazard-"+name, label, b.Hazard())
}

// allDownRare is the share below which a recording of weeks holds few intervals
// without any zone.
const allDownRare = 0.10

func regionFigures(a *measure.Availability, r *measure.RegionAvailability) []Figure {
	losses := 0
	for i := range a.Zones {
		if a.Zones[i].Provider == r.Provider && a.Zones[i].Region == r.Region {
			losses += a.Zones[i].Losses
		}
	}
	name := r.Provider + "/" + r.Region
	state := Figure{Tolerance: tolState, Kind: Absolute, Events: losses, Fewest: eventsMin, Exposure: a.Hours, Place: true}
	down := Figure{Place: true, Tolerance: tolAllDown, Kind: Relative, Unit: "share", Events: r.AllDownEvents,
		Fewest: eventsMin, Exposure: a.Hours}
	if r.AllDown < allDownRare {
		down.Tolerance = tolAllDownRare
	}
	if r.Zones < 2 {
		down.Tolerance = ""
	}
	return []Figure{
		state.as("state-correlation-"+name, "states of zones of "+r.Region+", mean correlation", r.Correlation),
		down.as("all-down-"+name, fmt.Sprintf("time without any of %d zones of %s", r.Zones, r.Region), r.AllDown),
		Figure{Kind: Relative, Unit: "share", Place: true}.as("all-down-independent-"+name,
			"the same if zones of "+r.Region+" failed independently", r.Independent),
	}
}

// known reports whether f has a value, or a distribution with one.
func (f *Figure) known() bool {
	if f.sample != nil {
		return f.sample.Total > 0
	}
	return !math.IsNaN(f.Value)
}

// as returns f under a name.
func (f Figure) as(name, label string, value float64) Figure {
	f.Name, f.Label, f.Value = name, label, value
	return f
}

// free returns f under a name, not to be judged.
func (f Figure) free(name, label string, value float64) Figure {
	f.Tolerance = ""
	return f.as(name, label, value)
}

func distribution(name, label string, w measure.Sample) Figure {
	return Figure{Name: name, Label: label, Kind: KS, Value: math.NaN(), sample: &w}
}

func percentile(q string) string {
	switch q {
	case "p50":
		return "median"
	case "p1":
		return "1st percentile"
	}
	return q[1:] + "th percentile"
}

// number is the shortest way to write v.
func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// unweighted makes each value of sorted count the same.
func unweighted(sorted []float64) measure.Sample {
	w := measure.Sample{Value: sorted, Hours: make([]float64, len(sorted)), Total: float64(len(sorted))}
	for i := range w.Hours {
		w.Hours[i] = 1
	}
	return w
}

// ks is the greatest distance between the distribution functions of a and b,
// NaN if either has no value.
func ks(a, b *measure.Sample) float64 {
	if a.Total <= 0 || b.Total <= 0 {
		return math.NaN()
	}
	i, j := 0, 0
	fa, fb, most := 0.0, 0.0, 0.0
	for i < len(a.Value) && j < len(b.Value) {
		x := min(a.Value[i], b.Value[j])
		for ; i < len(a.Value) && a.Value[i] == x; i++ {
			fa += a.Hours[i]
		}
		for ; j < len(b.Value) && b.Value[j] == x; j++ {
			fb += b.Hours[j]
		}
		most = max(most, math.Abs(fa/a.Total-fb/b.Total))
	}
	return most
}
