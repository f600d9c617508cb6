package fit

import (
	"math"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/trace"
	"github.com/spotter-dev/spotter/scenarios/weather"
)

// drawDepth draws the depth of one market, with a row at every change that a probe
// sees and at every hour in which the hazard is another.
func (o *AvailabilityOptions) drawDepth(r *RegionLaw, p weather.Place) *seen {
	end := o.From + policy.Time(o.Days)*day
	steps := r.Law.Depths(nil, p, o.From, end)
	gap := policy.Time(o.Gap / time.Millisecond)
	var looked []policy.Time
	var depths []int32
	for next, t := 0, o.From; t < end; {
		for next+1 < len(steps) && steps[next+1].From <= t {
			next++
		}
		depth := steps[next].Nodes
		if n := len(depths); n == 0 || depths[n-1] != depth || (t-o.From)/hourLong != (looked[n-1]-o.From)/hourLong {
			looked, depths = append(looked, t), append(depths, depth)
		}
		if gap > 0 {
			t += gap
			continue
		}
		t = o.From + ((t-o.From)/hourLong+1)*hourLong
		if next+1 < len(steps) {
			t = min(t, steps[next+1].From)
		}
	}
	params := weather.DefaultParams()
	out := &seen{}
	for i, risk := range r.Law.Risks(p, o.From, looked) {
		hazard := 0.0
		if depths[i] > 0 {
			hazard = max(hazardLeast, coarse(risk*params.DepthMean()))
		}
		out.note(looked[i], depths[i] > 0, depths[i], int32(gap/1000), hazard)
	}
	return out
}

// depthAway returns how far a draw of a region's depth is from its recording.
func (o *AvailabilityOptions) depthAway(r *RegionLaw, draw uint64) float64 {
	end := o.From + policy.Time(o.Days)*day
	d := depthSeen{begin: o.From, gap: r.gap}
	var steps []weather.Step
	for _, z := range r.Zones {
		s := trace.Series{Provider: r.Provider, Region: r.Region, Zone: z.Zone, Type: r.Type}
		steps = r.Law.Depths(steps[:0], o.place(r, &s, draw), o.From, end)
		d.zones = append(d.zones, sharesOf(steps, o.From, end, r.gap))
	}
	got := d.behaviour()
	return got.from(r.depth)
}

// sharesOf returns what probes see of the depth of a place, as a share.
func sharesOf(steps []weather.Step, from, end, gap policy.Time) []float64 {
	out := make([]float64, 0, (end-from)/gap+1)
	i := 0
	for t := from; t < end; t += gap {
		for i+1 < len(steps) && steps[i+1].From <= t {
			i++
		}
		out = append(out, float64(steps[i].Nodes)/weather.DepthMax)
	}
	return out
}

// upWeight is how many times less a misfit of availability counts than one of depth,
// which alone was fitted.
const upWeight = 8

// deepDraws is how many times more draws of depth are compared than of
// availability: there is more to be matched.
const deepDraws = 4

// hourLag is the place of one hour among depthLags.
const hourLag = 2

// from returns how far a behaviour is from the recorded one, in squares of what
// would be tolerable.
func (b *depthBehaviour) from(want *depthBehaviour) float64 {
	sum := 0.0
	add := func(away, tolerable float64) {
		if away /= tolerable; !math.IsNaN(away) {
			sum += float64(away * away)
		}
	}
	for z := range want.none {
		add(b.none[z]-want.none[z], 0.04)
		add(b.all[z]-want.all[z], 0.04)
		add(b.lagged[z][hourLag]-want.lagged[z][hourLag], 0.1)
	}
	for i := range want.pairs {
		add(b.pairs[i]-want.pairs[i], 0.05)
	}
	return sum + distance(&want.up, &b.up)/upWeight
}
