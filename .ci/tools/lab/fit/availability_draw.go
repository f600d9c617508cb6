package fit

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/catalog"
	"github.com/spotter-dev/spotter/scenarios/chance"
	"github.com/spotter-dev/spotter/scenarios/trace"
	"github.com/spotter-dev/spotter/scenarios/weather"
)

// AvailabilityOptions say what part of a law's availability is drawn and how it
// is seen.
type AvailabilityOptions struct {
	// Seed chooses the draws.
	Seed uint64

	// From is the start and Days the length.
	From policy.Time
	Days int

	// Alike, when above 1, draws the zones of every fitted region as many times
	// and keeps the draw whose figures are nearest to those recorded. A few
	// weeks of one draw of a law differ from a few weeks of another by about as
	// much as those of two recordings would; with it a short trace has the
	// figures of the recording that it is like. Fewer are compared of a span of
	// more than two months, which is near its law by itself. What is kept depends
	// on the span and on which zones were recorded.
	Alike int

	// Gap is the time between two probes, which see a change only at the first
	// probe after it and nothing of an interval between two. 0 writes every change
	// at its instant.
	Gap time.Duration
}

func (o *AvailabilityOptions) validate() error {
	switch {
	case o.From < day:
		return fmt.Errorf("%w: From is %v, it must be later than the first day of 1970", trace.ErrValue, o.From)
	case o.Days < 1 || o.Days > 3650:
		return fmt.Errorf("%w: Days is %d, it must be from 1 to 3650", trace.ErrValue, o.Days)
	case o.Alike < 0 || o.Alike > 1000:
		return fmt.Errorf("%w: Alike is %d, it must be from 0 to 1000", trace.ErrValue, o.Alike)
	case o.Gap < 0 || o.Gap > 24*time.Hour || o.Gap%time.Second != 0:
		return fmt.Errorf("%w: Gap is %v, it must be whole seconds from 0 to a day", trace.ErrValue, o.Gap)
	}
	return nil
}

// Availability draws, for every series that the law covers, when its market is available,
// and adds the columns available, probe_gap and true_hazard and, where the law has depth,
// requested and launched. The other series are returned as they are. An additional series
// does not change the others, and a longer draw starts with the values of a shorter one.
func Availability(law AvailabilityLaw, series []trace.Series, o AvailabilityOptions) ([]trace.Series, error) {
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("drawing availability: %w", err)
	}
	out := slices.Clone(series)
	drawn := map[*RegionLaw]uint64{}
	for i := range out {
		s := &out[i]
		region, ok := law.region(s)
		if !ok || len(s.At) == 0 {
			continue
		}
		draw, known := drawn[region]
		if !known {
			draw = o.mostAlike(region)
			drawn[region] = draw
		}
		join(s, o.draw(region, s, draw))
	}
	return out, nil
}

// mostAlike returns which draw of a region comes nearest to its recording.
func (o *AvailabilityOptions) mostAlike(r *RegionLaw) uint64 {
	switch {
	case o.Alike < 2:
		return 0
	case r.depth != nil:
		return o.nearest(deepDraws*o.Alike, func(draw uint64) float64 { return o.depthAway(r, draw) })
	case r.recorded != nil:
		return o.nearest(o.Alike, func(draw uint64) float64 { return o.away(r, draw) })
	}
	return 0
}

// alikeDays is the span in days up to which all draws are compared. A draw that is
// longer by some factor departs from its law the less, so that as much fewer are.
const alikeDays = 60

// nearest returns which of draws is the least away, the first of equals.
func (o *AvailabilityOptions) nearest(draws int, away func(draw uint64) float64) uint64 {
	draws = max(2, draws*alikeDays/max(alikeDays, o.Days))
	all := make([]float64, draws)
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(draws, runtime.GOMAXPROCS(0)) {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < int64(draws); i = next.Add(1) - 1 {
				all[i] = away(uint64(i))
			}
		})
	}
	workers.Wait()
	best, least := 0, math.Inf(1)
	for i, d := range all {
		if d < least {
			best, least = i, d
		}
	}
	return uint64(best)
}

// away returns how far a draw of a region's availability is from its recording.
func (o *AvailabilityOptions) away(r *RegionLaw, draw uint64) float64 {
	end := o.From + policy.Time(o.Days)*day
	p := probing{begin: o.From, gap: r.gap, probes: int32((end - o.From) / r.gap)}
	for _, z := range r.Zones {
		place := o.place(r, &trace.Series{Provider: r.Provider, Region: r.Region, Zone: z.Zone, Type: r.Type}, draw)
		runs := []run{{0, 1}}
		for _, outage := range r.Law.Outages(nil, place, o.From, end) {
			runs = appendRun(runs, probeAfter(outage.From-o.From, r.gap), 0)
			runs = appendRun(runs, probeAfter(outage.Until-o.From, r.gap), 1)
		}
		p.zones = append(p.zones, runs)
	}
	got := p.behaviour()
	return distance(r.recorded, &got) + sharesDistance(r.recorded, &got)
}

// probeAfter returns the first probe that sees what happens so long after the
// first.
func probeAfter(since, gap policy.Time) int32 {
	return int32(min((since+gap-1)/gap, math.MaxInt32))
}

// region returns the law that covers a series: that of its type in its region,
// else that of all types with accelerators.
func (l *AvailabilityLaw) region(s *trace.Series) (*RegionLaw, bool) {
	best, rank := -1, 0
	accelerated := false
	if t, ok := catalog.Lookup(s.Provider, s.Type); ok {
		accelerated = t.Allocatable.GPU > 0
	}
	for i := range l.Regions {
		r := &l.Regions[i]
		if r.Provider != "" && r.Provider != s.Provider || r.Region != "" && r.Region != s.Region ||
			r.Type != "" && r.Type != s.Type || r.Type == "" && !accelerated {
			continue
		}
		if n := 1 + 2*len(r.Type) + len(r.Region); n > rank {
			best, rank = i, n
		}
	}
	if best < 0 {
		return nil, false
	}
	return &l.Regions[best], true
}

// place returns where in a law a series stands.
func (o *AvailabilityOptions) place(r *RegionLaw, s *trace.Series, draw uint64) weather.Place {
	p := weather.Place{
		Region: s.Region,
		Common: chance.New(o.Seed, "availability of region", s.Provider+"/"+s.Region+"/"+s.Type).At1(draw),
		Own:    chance.New(o.Seed, "availability of zone", s.Provider+"/"+s.Region+"/"+s.Zone+"/"+s.Type).At1(draw),
	}
	mean := chance.New(o.Seed, "availability mean", s.Zone+"/"+s.Type)
	p.Mean = r.Law.Mean + float64(r.Law.Spread*mean.Normal())
	p.Width = float64(r.Law.Width * mean.At1(0).LogNormal(r.Law.WidthSpread))
	for _, z := range r.Zones {
		if z.Zone == s.Zone {
			p.Mean, p.Width, p.Opposed = z.Mean, z.Width, z.Opposed
		}
	}
	return p
}

// A seen is what is written of a market's availability.
type seen struct {
	at     []policy.Time
	up     []int8
	gap    []int32
	hazard []float64
	nodes  []int32 // nil without depth
}

// draw draws the availability of one market, with a row at every change that a
// probe sees and at every hour in which the hazard is another.
func (o *AvailabilityOptions) draw(r *RegionLaw, s *trace.Series, draw uint64) *seen {
	p := o.place(r, s, draw)
	if p.Width > 0 {
		return o.drawDepth(r, p)
	}
	end := o.From + policy.Time(o.Days)*day
	outages := r.Law.Outages(nil, p, o.From, end)
	gap := policy.Time(o.Gap / time.Millisecond)
	var looked []policy.Time
	var ups []bool
	for next, t := 0, o.From; t < end; {
		for next < len(outages) && outages[next].Until <= t {
			next++
		}
		up := next == len(outages) || outages[next].From > t
		if n := len(ups); n == 0 || ups[n-1] != up || (t-o.From)/hourLong != (looked[n-1]-o.From)/hourLong {
			looked, ups = append(looked, t), append(ups, up)
		}
		t = o.after(t, gap, up, outages, next)
	}
	params := weather.DefaultParams()
	out := &seen{}
	for i, risk := range r.Law.Risks(p, o.From, looked) {
		hazard := 0.0
		if ups[i] {
			// A slot is taken with the probability of the mean depth.
			hazard = max(hazardLeast, coarse(risk*params.DepthMean()))
		}
		out.note(looked[i], ups[i], -1, int32(gap/1000), hazard)
	}
	return out
}

// hazardLeast is one reclaim in a hundred years, per hour: 0 is left to markets
// that are not available.
const hazardLeast = 1e-6

// after returns the instant that is looked at next: the next probe, or without
// probes the next change or whole hour.
func (o *AvailabilityOptions) after(t, gap policy.Time, up bool, outages []weather.Outage, next int) policy.Time {
	if gap > 0 {
		return t + gap
	}
	to := o.From + ((t-o.From)/hourLong+1)*hourLong
	switch {
	case next == len(outages):
	case up:
		to = min(to, outages[next].From)
	default:
		to = min(to, outages[next].Until)
	}
	return to
}

// note adds a row if it says something new.
func (s *seen) note(t policy.Time, up bool, nodes, gap int32, hazard float64) {
	state := int8(0)
	if up {
		state = 1
	}
	n := len(s.at)
	if n == 0 {
		gap = 0
	} else if s.up[n-1] == state && s.hazard[n-1] == hazard && (nodes < 0 || s.nodes[n-1] == nodes) {
		return
	}
	if nodes >= 0 {
		s.nodes = append(s.nodes, nodes)
	}
	s.at, s.up, s.gap, s.hazard = append(s.at, t), append(s.up, state), append(s.gap, gap), append(s.hazard, hazard)
}

// coarse rounds to three bits, so that a hazard that hardly moved makes no row.
func coarse(x float64) float64 {
	fraction, exponent := math.Frexp(x)
	return math.Ldexp(math.Round(fraction*8)/8, exponent)
}

// join adds the columns to a series, with the prices in force at their rows.
func join(s *trace.Series, a *seen) {
	old := *s
	*s = trace.Series{Provider: old.Provider, Region: old.Region, Zone: old.Zone, Type: old.Type, Product: old.Product}
	i, k := -1, -1
	for i+1 < len(old.At) || k+1 < len(a.at) {
		var t policy.Time
		switch {
		case k+1 == len(a.at) || i+1 < len(old.At) && old.At[i+1] < a.at[k+1]:
			i++
			t = old.At[i]
		default:
			k++
			t = a.at[k]
			if i+1 < len(old.At) && old.At[i+1] == t {
				i++
			}
		}
		appendRow(s, t, &old, i, a, k)
	}
}

// appendRow adds the row at t: prices of row i, availability of row k; −1 means
// before the first.
func appendRow(s *trace.Series, t policy.Time, old *trace.Series, i int, a *seen, k int) {
	s.At = append(s.At, t)
	price := policy.NoPrice
	if i >= 0 {
		price = old.Spot[i]
	}
	s.Spot = append(s.Spot, price)
	if old.OnDemand != nil {
		s.OnDemand = append(s.OnDemand, old.OnDemand[max(0, i)])
	}
	up, gap, hazard := int8(-1), int32(0), -1.0
	if k >= 0 {
		up, gap, hazard = a.up[k], a.gap[k], a.hazard[k]
	}
	if a.nodes != nil {
		requested, launched := int32(-1), int32(-1)
		if k >= 0 {
			requested, launched = weather.DepthMax, a.nodes[k]
		}
		s.Requested, s.Launched = append(s.Requested, requested), append(s.Launched, launched)
	}
	s.Available, s.ProbeGap, s.TrueHazard = append(s.Available, up), append(s.ProbeGap, gap), append(s.TrueHazard, hazard)
}
