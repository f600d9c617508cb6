package models

import (
	"math"
	"sync"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/portable"
	"github.com/spotter-dev/spotter/policy/scratch"
)

// A ClosedForm forecasts by a formula that a reader can check by hand: a
// Gamma–Poisson rate per market,
//
//	hazard = (a + reclaims) / (b + node-hours),
//
// over the decaying experience of this cluster in the market. Its prior mean a/b is the rate of the
// published band of interruption frequency, multiplied by a factor for the market's zone and a
// factor for its type, each of the same form,
//
//	factor = (A + reclaims) / (A + reclaims expected of the bands),
//
// over the other markets of that zone or type. On-demand nodes are never reclaimed.
//
// It has no state between calls and is safe for concurrent use.
type ClosedForm struct {
	cfg   Config
	hours float64 // of the horizon

	// bands contains the forecast of each band without experience. The last entry is that of an
	// unknown band.
	bands [policy.BandCount + 1]prior

	scratch sync.Pool
}

// A prior is the expected behaviour of a market, given only its band.
type prior struct {
	hazard   float64 // per node-hour
	refusal  float64 // probability that a launch is refused
	forecast policy.Forecast
}

// refusals is the probability that a launch is refused, by band. No provider publishes it; it is
// assumed to increase with the band.
var refusals = [policy.BandCount]float64{0.01, 0.02, 0.03, 0.05, 0.10}

// NewClosedForm returns a forecaster with parameters cfg. It returns an error for a parameter that
// is out of range.
func NewClosedForm(cfg Config) (*ClosedForm, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	f := &ClosedForm{cfg: cfg, hours: cfg.Horizon.Hours()}
	f.scratch.New = func() any { return new(pooled) }
	unknown := &f.bands[policy.BandCount]
	for i, p := range policy.MonthlyReclaims() {
		b := &f.bands[i]
		b.hazard = -portable.Log(1-p) / policy.HoursPerMonth
		b.refusal = refusals[i]
		unknown.hazard += b.hazard / policy.BandCount
		unknown.refusal += b.refusal / policy.BandCount
	}
	for i := range f.bands {
		b := &f.bands[i]
		b.forecast = policy.Forecast{
			Hazard:     b.hazard,
			Capacity:   float64(cfg.ShortageDepth * b.refusal),
			Runtime:    f.lost(b.hazard),
			Confidence: cfg.ConfidencePublished,
			Source:     policy.SourceClosedForm,
		}
	}
	unknown.forecast.Confidence = cfg.ConfidenceUnknown
	return f, nil
}

// prior returns the expected behaviour of a market of band b; the mean over all bands if b is
// unknown.
func (f *ClosedForm) prior(b policy.Band) *prior {
	if b < 0 || b >= policy.BandCount {
		return &f.bands[policy.BandCount]
	}
	return &f.bands[b]
}

// lost returns the probability that a node is reclaimed within the horizon, 1 - exp(-x). For small
// x it uses a series whose error is below x⁴/24, which is less than the rounding error of the
// difference, and which is several times faster.
func (f *ClosedForm) lost(hazard float64) float64 {
	x := float64(hazard * f.hours)
	if x < 1e-3 {
		return float64(x * (1 - float64(float64(x/2)*(1-x/3))))
	}
	return 1 - portable.Exp(-x)
}

// Forecast sets the forecast of every market of s, except those with a recorded forecast. It never
// fails.
func (f *ClosedForm) Forecast(s *policy.Snapshot, _ *policy.Memory) error {
	all := f.scratch.Get().(*pooled)
	defer f.scratch.Put(all)
	seen := all.collect(f, s)
	for i := range s.Markets {
		m := &s.Markets[i]
		switch {
		case m.Forecast.Source == policy.SourceRecorded:
		case m.Capacity != policy.Spot:
			m.Forecast = policy.Forecast{Confidence: 1, Source: policy.SourceClosedForm}
		case !seen:
			m.Forecast = f.prior(m.Band).forecast
		default:
			f.forecast(s, m, all)
		}
	}
	return nil
}

// forecast sets the forecast of one Spot market from the experience in the market itself and in its
// zone and type.
func (f *ClosedForm) forecast(s *policy.Snapshot, m *policy.Market, all *pooled) {
	p := f.prior(m.Band)
	zone, kind := &all.zones[m.Zone], &all.types[m.Type]
	if !all.known[m.ID] {
		mean := float64(float64(p.hazard*zone.factor) * kind.factor)
		m.Forecast = p.forecast
		m.Forecast.Hazard, m.Forecast.Runtime = mean, f.lost(mean)
		return
	}
	own := all.markets[m.ID]
	mean := float64(float64(p.hazard*f.factor(zone.seen, own)) * f.factor(kind.seen, own))
	hazard := (f.cfg.PriorReclaims + own.reclaims) / (f.cfg.PriorReclaims/mean + own.hours)
	base := p.forecast.Confidence
	m.Forecast = policy.Forecast{
		Hazard:     hazard,
		Capacity:   f.short(s.Now, m, p, own),
		Runtime:    f.lost(hazard),
		Confidence: base + float64((1-base)*(own.hours/(own.hours+f.cfg.ConfidenceHours))),
		Source:     policy.SourceClosedForm,
	}
}

// short returns the probability that a running node is lost to a capacity shortage within the
// horizon: that a launch is refused, or that the shortage of the last refusal continues, and that
// the shortage reaches the node.
func (f *ClosedForm) short(now policy.Time, m *policy.Market, p *prior, own seen) float64 {
	rate := (float64(f.cfg.PriorLaunches*p.refusal) + own.refusals) / (f.cfg.PriorLaunches + own.launches + own.refusals)
	if m.Experience.Refused == 0 {
		return float64(f.cfg.ShortageDepth * rate)
	}
	lasts := portable.Exp(-now.Sub(m.Experience.Refused).Hours() / f.cfg.RefusalMemory.Hours())
	return float64(f.cfg.ShortageDepth * (1 - float64((1-rate)*(1-lasts))))
}

// factor returns the ratio of observed to expected reclaims in the other markets of a group,
// limited by FactorMax.
func (f *ClosedForm) factor(group, own seen) float64 {
	reclaims, expected := group.reclaims-own.reclaims, group.expected-own.expected
	x := (f.cfg.PooledReclaims + reclaims) / (f.cfg.PooledReclaims + expected)
	return min(max(x, 1/f.cfg.FactorMax), f.cfg.FactorMax)
}

// A seen is an experience, decayed to the current time. expected is the number of reclaims that the
// band predicts for its hours.
type seen struct {
	launches, refusals, reclaims, hours, expected float64
}

// A pooled is the experience of one snapshot by market, zone and type. Its slices are reused and
// overwritten in each call.
type pooled struct {
	markets      []seen
	known        []bool // whether there is experience in the market
	zones, types []group
}

// A group is the total experience of the markets of one zone or type, and the factor for its
// markets without experience.
type group struct {
	seen
	factor float64
}

// collect collects the experience of s and reports whether there is any.
func (all *pooled) collect(f *ClosedForm, s *policy.Snapshot) bool {
	met := false
	decay, at := 1.0, s.Now // of the last market: most experiences refer to the same instant
	for i := range s.Markets {
		m := &s.Markets[i]
		e := &m.Experience
		if m.Capacity != policy.Spot || e.Launches+e.Refusals+e.Reclaims+e.NodeHours == 0 && e.Refused == 0 {
			continue
		}
		if !met {
			met = true
			all.reset(s)
		}
		if e.At != at {
			decay, at = decayed(e.At, s.Now), e.At
		}
		own := seen{
			launches: float64(e.Launches * decay), refusals: float64(e.Refusals * decay),
			reclaims: float64(e.Reclaims * decay), hours: float64(e.NodeHours * decay),
		}
		own.expected = float64(own.hours * f.prior(m.Band).hazard)
		all.markets[i], all.known[i] = own, true
		all.zones[m.Zone].add(own)
		all.types[m.Type].add(own)
	}
	if !met {
		return false
	}
	for _, groups := range [...][]group{all.zones, all.types} {
		for i := range groups {
			groups[i].factor = f.factor(groups[i].seen, seen{})
		}
	}
	return true
}

func (x *seen) add(y seen) {
	x.reclaims += y.reclaims
	x.expected += y.expected
}

// decayed returns the weight at now of an observation at time at.
func decayed(at, now policy.Time) float64 {
	if at == 0 || at >= now {
		return 1
	}
	return portable.Exp(-float64(math.Ln2 * (float64(now-at) / float64(policy.ExperienceHalfLife.Milliseconds()))))
}

func (all *pooled) reset(s *policy.Snapshot) {
	all.markets = scratch.Zeroed(all.markets, len(s.Markets))
	all.known = scratch.Zeroed(all.known, len(s.Markets))
	all.zones = scratch.Zeroed(all.zones, len(s.Zones))
	all.types = scratch.Zeroed(all.types, len(s.Types))
}
