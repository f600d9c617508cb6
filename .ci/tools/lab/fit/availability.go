package fit

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/chance"
	"github.com/spotter-dev/spotter/scenarios/trace"
	"github.com/spotter-dev/spotter/scenarios/weather"
)

// ErrNoAvailability is returned for a recording from which no law of
// availability can be fitted.
var ErrNoAvailability = errors.New("no recorded availability to fit")

const hourLong = policy.Time(time.Hour / time.Millisecond)

// An AvailabilityLaw says when markets can be had: a law of the weather for
// each region and type that was recorded, or one for all scarce types.
type AvailabilityLaw struct {
	// Regions are ascending by provider, region and type.
	Regions []RegionLaw

	// Gap is the usual time between two probes of the recording; 0 when its
	// instants are exact.
	Gap time.Duration
}

// A RegionLaw is the law of a type in a region. An empty Type or Region is that
// of all types with accelerators, or of all regions.
type RegionLaw struct {
	Provider, Region, Type string
	Law                    weather.Law

	// Zones hold the mean slacks of the zones that were recorded. Another zone
	// has one drawn by the law's Mean and Spread.
	Zones []ZoneLaw

	// Fit says how near the law comes; nil for one that was not fitted.
	Fit []Figure

	// recorded is what was found at probes of this gap; nil for a law that was
	// not fitted.
	recorded *behaviour
	depth    *depthBehaviour // instead, where the recording has depth
	gap      policy.Time
}

// A ZoneLaw is the mean slack of a zone.
type ZoneLaw struct {
	Zone string
	Mean float64

	// Width is the slack that makes up weather.DepthMax nodes, and Opposed says
	// that the zone has capacity when the others of its region lack it; see
	// weather.Place. Width is 0 where depth was not recorded.
	Width   float64 `json:",omitempty"`
	Opposed bool    `json:",omitempty"`
}

// A Figure is a figure of a recording and that of its law, observed through
// the same probing.
type Figure struct {
	Name             string
	Recorded, Fitted float64

	// Events is on how many events the recorded figure rests, 0 where it is a
	// share or a correlation.
	Events int
}

// DefaultAvailability returns the law that runs use for scarce types without a
// recording: of all types with accelerators, in every region.
func DefaultAvailability() AvailabilityLaw {
	return AvailabilityLaw{Regions: []RegionLaw{{Law: weather.DefaultParams().Scarce}}}
}

// fallsMin is the least number of intervals that must have ended in a region for a
// law of it.
const fallsMin = 10

// Estimate fits a law to every region and type of a recording whose
// availability changes often enough. The law is observed through the probing of
// the recording while it is fitted.
func Estimate(recorded *trace.Trace) (AvailabilityLaw, error) {
	law := AvailabilityLaw{}
	groups := map[[3]string][]*trace.Series{}
	var names [][3]string
	var all []*trace.Series
	for i := range recorded.Series {
		s := &recorded.Series[i]
		if s.Available == nil {
			continue
		}
		name := [3]string{s.Provider, s.Region, s.Type}
		if groups[name] == nil {
			names = append(names, name)
		}
		groups[name] = append(groups[name], s)
		all = append(all, s)
	}
	law.Gap = probeGap(all).Sub(0)
	slices.SortFunc(names, func(a, b [3]string) int {
		return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]), cmp.Compare(a[2], b[2]))
	})
	fitted := make([]*RegionLaw, len(names))
	var fits sync.WaitGroup
	turns := make(chan struct{}, runtime.GOMAXPROCS(0)) // a fit takes megabytes
	for i, name := range names {
		turns <- struct{}{}
		fits.Go(func() {
			fitted[i] = fitRegion(groups[name], recorded.To)
			<-turns
		})
	}
	fits.Wait()
	for _, region := range fitted {
		if region != nil {
			law.Regions = append(law.Regions, *region)
		}
	}
	if len(law.Regions) == 0 {
		return law,
			fmt.Errorf("%s: %w: %d markets say whether they were available, in %d regions and types of which none has %d spells that ended",
				recorded.Name, ErrNoAvailability, len(all), len(names), fallsMin)
	}
	return law, nil
}

// exactGap is at which gap a recording of exact instants is looked at.
const exactGap = policy.Time(60_000)

// fitRegion fits the law of one type in one region; nil where too few intervals
// ended.
func fitRegion(series []*trace.Series, end policy.Time) *RegionLaw {
	s := series[0]
	out := &RegionLaw{Provider: s.Provider, Region: s.Region, Type: s.Type}
	gap := cmp.Or(probeGap(series), exactGap)
	if hasDepth(series) {
		return fitDepth(series, end, gap)
	}
	seen := probe(series, end, gap)
	want := seen.behaviour()
	if ends, _ := want.ups.total(); ends < fallsMin {
		return nil
	}
	out.recorded, out.gap = &want, gap
	out.Law.Paces = paces[:]
	out.Law.Hour, out.Law.Weekday = seen.season(want.shares, s.Region)
	means := meanSlacks(want.shares, &out.Law)
	for i, m := range means {
		out.Zones = append(out.Zones, ZoneLaw{Zone: series[i].Zone, Mean: m})
	}
	out.Law.Mean, out.Law.Spread = meanAndSpread(means)
	got := fitLaw(&out.Law, s.Region, &seen, &want, means)
	out.Fit = fitFigures(series, &want, &got)
	return out
}

// meanSlacks returns the mean slacks with which zones are available for these
// shares of time.
func meanSlacks(shares []float64, l *weather.Law) []float64 {
	variance := 1.0
	for _, x := range l.Hour {
		variance += float64(x*x) / 24
	}
	for _, x := range l.Weekday {
		variance += float64(x*x) / 7
	}
	means := make([]float64, len(shares))
	for i, share := range shares {
		share = max(0.002, min(share, 0.998))
		means[i] = float64(chance.NormalQuantile(share) * math.Sqrt(variance))
	}
	return means
}

func meanAndSpread(x []float64) (mean, spread float64) {
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		spread += float64((v-mean)*(v-mean)) / math.Max(1, float64(len(x)-1))
	}
	return mean, math.Sqrt(spread)
}

// fitFigures lists what was fitted.
func fitFigures(series []*trace.Series, want, got *behaviour) []Figure {
	var out []Figure
	for b, end := range ageEnds {
		name := fmt.Sprintf("hazard of a spell up to %v h", end)
		out = append(out, Figure{name, want.ups.hazard(b), got.ups.hazard(b), int(want.ups.ends[b])})
	}
	for b, end := range ageEnds {
		name := fmt.Sprintf("end of an outage up to %v h", end)
		out = append(out, Figure{name, want.downs.hazard(b), got.downs.hazard(b), int(want.downs.ends[b])})
	}
	for i, s := range series {
		out = append(out, Figure{"share available in " + s.Zone, want.shares[i], got.shares[i], 0})
	}
	return append(out,
		Figure{"correlation between zones", want.alike, got.alike, 0},
		Figure{"share without any zone", want.noneUp, got.noneUp, 0})
}

// Typical returns the mean of the laws of all regions, each weighed by its
// zones: what to expect of a region that was not recorded.
func (l *AvailabilityLaw) Typical() weather.Law {
	out := weather.Law{Paces: paces[:], Common: make([]float64, len(paces)), Own: make([]float64, len(paces))}
	var means []float64
	for i := range l.Regions {
		for _, z := range l.Regions[i].Zones {
			means = append(means, z.Mean)
		}
	}
	for i := range l.Regions {
		r := &l.Regions[i]
		weight := float64(len(r.Zones)) / float64(len(means))
		for k := range paces {
			out.Common[k] += float64(weight * r.Law.Common[k])
			out.Own[k] += float64(weight * r.Law.Own[k])
		}
		for h, x := range r.Law.Hour {
			out.Hour[h] += float64(weight * x)
		}
		for d, x := range r.Law.Weekday {
			out.Weekday[d] += float64(weight * x)
		}
		out.Unrest += float64(weight * r.Law.Unrest)
	}
	out.Mean, out.Spread = meanAndSpread(means)
	return out
}
