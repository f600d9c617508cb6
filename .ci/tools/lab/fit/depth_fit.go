package fit

import (
	"math"
	"slices"

	"github.com/spotter-dev/spotter/.ci/tools/lab/measure"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/portable"
	"github.com/spotter-dev/spotter/scenarios/chance"
	"github.com/spotter-dev/spotter/scenarios/trace"
	"github.com/spotter-dev/spotter/scenarios/weather"
)

// depthPaces are the paces in hours of the levels of a law that was fitted to
// depth. The first is that of what has changed again by the next probe.
var depthPaces = []float64{0.05, 0.25, 1, 4, 16, 100}

// depthLags are the lags in hours at which the autocorrelation of depth is fitted.
var depthLags = []float64{1. / 6, 0.5, 1, 2, 4, 8, 24}

// A depthSeen is the depth of the zones of one region at regular probes, as the
// share of the nodes requested that came up; −1 where it is unknown.
type depthSeen struct {
	begin, gap policy.Time
	zones      [][]float64
}

// hasDepth reports whether all of series have recorded depth.
func hasDepth(series []*trace.Series) bool {
	return !slices.ContainsFunc(series, func(s *trace.Series) bool { return s.Launched == nil })
}

// probeDepth samples series at regular instants, from the latest of their starts to end.
func probeDepth(series []*trace.Series, end, gap policy.Time) depthSeen {
	d := depthSeen{gap: gap}
	for _, s := range series {
		d.begin = max(d.begin, s.At[0])
	}
	for _, s := range series {
		var zone []float64
		i := 0
		for t := d.begin; t <= end; t += gap {
			for i+1 < len(s.At) && s.At[i+1] <= t {
				i++
			}
			share := -1.0
			if s.Launched[i] >= 0 {
				share = float64(s.Launched[i]) / float64(s.Requested[i])
			}
			zone = append(zone, share)
		}
		d.zones = append(d.zones, zone)
	}
	return d
}

// A depthBehaviour holds the statistics of a region's depth that a fit must match: for each
// zone the shares of time with no nodes and with all nodes, and the autocorrelation at each
// of depthLags; for each pair of zones, in order, the correlation. They are NaN where depth
// is constant.
type depthBehaviour struct {
	up        behaviour // of whether any came up
	none, all []float64
	lagged    [][]float64
	pairs     []float64
}

func (d *depthSeen) behaviour() depthBehaviour {
	b := depthBehaviour{up: d.up()}
	for i, zone := range d.zones {
		none, all, known := 0.0, 0.0, 0.0
		for _, x := range zone {
			switch x {
			case 0:
				none++
			case 1:
				all++
			}
			if x >= 0 {
				known++
			}
		}
		b.none, b.all = append(b.none, none/known), append(b.all, all/known)
		lagged := make([]float64, len(depthLags))
		for k, lag := range depthLags {
			n := max(1, int(math.Round(float64(lag*float64(hourLong))/float64(d.gap))))
			lagged[k] = measure.DepthCorrelation(zone[:max(0, len(zone)-n)], zone[min(n, len(zone)):])
		}
		b.lagged = append(b.lagged, lagged)
		for _, other := range d.zones[:i] {
			b.pairs = append(b.pairs, measure.DepthCorrelation(zone, other))
		}
	}
	return b
}

// up returns the behaviour of whether any node came up.
func (d *depthSeen) up() behaviour {
	p := probing{begin: d.begin, gap: d.gap, probes: int32(len(d.zones[0]))}
	for _, zone := range d.zones {
		var runs []run
		for i, share := range zone {
			up := int8(0)
			switch {
			case share < 0:
				up = -1
			case share > 0:
				up = 1
			}
			runs = appendRun(runs, int32(i), up)
		}
		p.zones = append(p.zones, runs)
	}
	return p.behaviour()
}

// fitDepth fits the law of one type in one region of which the depth was
// recorded: the shares of time with none and with all set the mean slack and the
// width of each zone, and the variances are those with which the correlations of
// depth, over time and between zones, come nearest to the recorded ones. The
// correlations of a law follow from it in closed form; see [hermite].
func fitDepth(series []*trace.Series, end, gap policy.Time) *RegionLaw {
	s := series[0]
	seen := probeDepth(series, end, gap)
	want := seen.behaviour()
	out := &RegionLaw{Provider: s.Provider, Region: s.Region, Type: s.Type, depth: &want, gap: gap}
	law := &out.Law
	law.Paces = depthPaces
	law.Hour, law.Weekday = seen.season(s.Region)
	fit := depthFit{law: law, want: &want, hours: float64(len(seen.zones[0])) * float64(gap) / float64(hourLong)}
	deviation := math.Sqrt(1 + seasonAt(law, 0))
	for i, s := range series {
		none, all := kept(want.none[i]), kept(1-want.all[i])
		z := ZoneLaw{Zone: s.Zone, Mean: -float64(chance.NormalQuantile(none) * deviation)}
		z.Width = max(depthWidthLeast, float64((chance.NormalQuantile(max(none, all))-chance.NormalQuantile(none))*deviation))
		// The first pairs of zone i are with those before it.
		z.Opposed = i > 0 && want.pairs[i*(i-1)/2] < -opposedFrom
		out.Zones = append(out.Zones, z)
		fit.zones = append(fit.zones, hermite(z.Mean/deviation, z.Width/deviation))
	}
	fit.laws = out.Zones
	fit.run()
	out.summarise()
	out.Fit = fit.figures(series)
	return out
}

// opposedFrom is the correlation, below 0, from which two zones are taken to have
// capacity by turns: less is within the reach of chance in ten days.
const opposedFrom = 0.3

// depthWidthLeast is the least width, which makes next to no time partial.
const depthWidthLeast = 0.01

// kept keeps a share of time off 0 and 1, which no law has.
func kept(share float64) float64 { return max(0.002, min(share, 0.998)) }

// summarise sets what the law says of zones that were not recorded.
func (r *RegionLaw) summarise() {
	means, widths := make([]float64, len(r.Zones)), make([]float64, len(r.Zones))
	for i, z := range r.Zones {
		means[i], widths[i] = z.Mean, portable.Log(max(z.Width, depthWidthSeldom))
	}
	r.Law.Mean, r.Law.Spread = meanAndSpread(means)
	middle, spread := meanAndSpread(widths)
	r.Law.Width, r.Law.WidthSpread = portable.Exp(middle), spread
}

// depthWidthSeldom is the width below which zones do not differ: what is partial
// less than one hour in a hundred hardly ever is.
const depthWidthSeldom = 0.05

// season returns the offsets of the slack by hour and weekday: those of whether a
// zone has more than its median depth.
func (d *depthSeen) season(region string) (hours [24]float64, weekdays [7]float64) {
	p := probing{begin: d.begin, gap: d.gap, probes: int32(len(d.zones[0]))}
	var shares []float64
	for _, zone := range d.zones {
		known := slices.DeleteFunc(slices.Clone(zone), func(x float64) bool { return x < 0 })
		slices.Sort(known)
		median := known[len(known)/2]
		above, _ := slices.BinarySearch(known, median)
		over := slices.IndexFunc(known, func(x float64) bool { return x > median })
		strict := over >= 0 && len(known)/2-above > over-len(known)/2 // which side is the more even
		var runs []run
		ups := 0.0
		for i, x := range zone {
			up := int8(-1)
			if x >= 0 {
				up = 0
				if x > median || x == median && !strict {
					up = 1
					ups++
				}
			}
			runs = appendRun(runs, int32(i), up)
		}
		p.zones, shares = append(p.zones, runs), append(shares, ups/float64(len(known)))
	}
	return p.season(shares, region)
}

// hermites is how many terms of the expansion of depth are taken. What is left
// out is depth that forgets itself at once.
const hermites = 24

// hermite returns the coefficients of depth, as a function of a normal slack of
// deviation 1, in Hermite polynomials, from the first on, scaled so that the
// covariance of two depths whose slacks correlate by ρ is the sum of their
// products times ρ to the power of the order (Mehler's formula). Depth is a sum
// of steps, each at the slack from which one more node is there.
func hermite(mean, width float64) []float64 {
	out := make([]float64, hermites)
	for j := range weather.DepthMax {
		at := float64(width*float64(j))/(weather.DepthMax-1) - mean
		density := portable.Exp(-float64(at*at)/2) / math.Sqrt(2*math.Pi)
		// The normalised polynomials follow from the two before.
		before, now := 0.0, 1.0
		for k := range out {
			out[k] += float64(density*now) / (weather.DepthMax * math.Sqrt(float64(k+1)))
			next := (float64(at*now) - float64(math.Sqrt(float64(k))*before)) / math.Sqrt(float64(k+1))
			before, now = now, next
		}
	}
	return out
}

// covariance returns that of two depths whose slacks correlate by rho.
func covariance(x, y []float64, rho float64) float64 {
	sum, power := 0.0, 1.0
	for k := range x {
		power = float64(power * rho)
		sum += float64(float64(x[k]*y[k]) * power)
	}
	return sum
}
