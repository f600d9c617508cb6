package main

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/internal/bundles"
	"github.com/spotter-dev/spotter/models"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/catalog"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// A marketForecaster asks a model of the markets of a trace at one time after another.
type marketForecaster struct {
	in     *trace.Trace
	bundle *models.Bundle
	model  *models.Trained
	every  policy.Time

	snap policy.Snapshot

	// Of each market of the snapshot: the series that it is of, the interval that is in
	// force, and the last prices.
	series   []int
	interval []int
	history  [][]policy.Money

	// forecasts holds of each series what was forecast, where it changed; changes how
	// often that was a number.
	forecasts []hazardCurve
	changes   []int
	unknown   []string
	ticks     int
}

// A hazardCurve is what is forecast from each time on; below zero where nothing is.
type hazardCurve struct {
	at    []policy.Time
	value []float64
}

// Prices of a snapshot stand on a grid of ten minutes, the last being that in force.
const (
	historyStep = policy.Time(600_000)
	historySize = 24

	// hazardGrid is the reciprocal of the step to which decisions round a hazard: what
	// is stored is what they would round it to.
	hazardGrid = 65536
)

// newMarketForecaster returns what asks the forecaster of b of the markets of t.
func newMarketForecaster(t *trace.Trace, b *bundles.Loaded, every time.Duration) (*marketForecaster, error) {
	closed, err := models.NewClosedForm(models.DefaultConfig())
	if err != nil {
		return nil, err
	}
	if b.Bundle.Forecaster == nil {
		return nil, errors.New("the bundle has no forecaster")
	}
	if b.Bundle.Forecaster.Model.HorizonHours == 0 {
		return nil, errors.New("its manifest states no horizon, so that no hazard follows from its scores")
	}
	x := &marketForecaster{in: t, bundle: b.Bundle, every: policy.Time(every.Milliseconds()),
		forecasts: make([]hazardCurve, len(t.Series)), changes: make([]int, len(t.Series))}
	if x.model, err = models.NewTrained(b.Bundle, closed, b.ForecasterSession, nil, models.TrainedConfig{}); err != nil {
		return nil, err
	}
	x.tabulate()
	return x, nil
}

// tabulate makes the snapshot of the markets whose type and price on demand are known.
// One pool may buy in all of them.
func (x *marketForecaster) tabulate() {
	types, zones := map[string]policy.TypeID{}, map[string]policy.ZoneID{}
	pool := policy.Pool{Name: "all", Mode: policy.ModeActive, Share: policy.ShareRange{Max: 1}}
	for i := range x.in.Series {
		s := &x.in.Series[i]
		found, ok := catalog.Lookup(s.Provider, s.Type)
		onDemand := onDemandPrice(s, len(s.At)-1)
		if !ok || onDemand <= 0 {
			x.unknown = append(x.unknown, s.Name())
			continue
		}
		kind, seen := types[s.Provider+"/"+s.Type]
		if !seen {
			kind = policy.TypeID(len(x.snap.Types))
			types[s.Provider+"/"+s.Type], found.ID = kind, kind
			x.snap.Types = append(x.snap.Types, found)
		}
		zone, seen := zones[s.Zone]
		if !seen {
			zone = policy.ZoneID(len(x.snap.Zones))
			zones[s.Zone] = zone
			x.snap.Zones = append(x.snap.Zones, s.Zone)
		}
		id := policy.MarketID(len(x.snap.Markets))
		x.snap.Markets = append(x.snap.Markets, policy.Market{
			ID: id, Name: s.Name() + "/spot", Provider: s.Provider, Region: s.Region, Zone: zone, Type: kind,
			Capacity: policy.Spot, Band: policy.BandUnknown, PlacementScore: -1,
		})
		x.series, x.interval = append(x.series, i), append(x.interval, 0)
		x.history = append(x.history, make([]policy.Money, historySize))
		pool.Markets = append(pool.Markets, id)
	}
	x.snap.Pools = []policy.Pool{pool}
}

// onDemandPrice returns the on-demand price in force at interval i, the first that the
// series has if none is in force, else the catalog's; 0 if unknown.
func onDemandPrice(s *trace.Series, i int) policy.Money {
	if s.OnDemand != nil {
		for k := i; k >= 0; k-- {
			if s.OnDemand[k] > 0 {
				return s.OnDemand[k]
			}
		}
		if k := slices.IndexFunc(s.OnDemand, func(p policy.Money) bool { return p > 0 }); k >= 0 {
			return s.OnDemand[k]
		}
	}
	price, _ := catalog.OnDemand(s.Provider, s.Region, s.Type)
	if price == 0 {
		price, _, _ = catalog.OnDemandModelled(s.Provider, s.Region, s.Type)
	}
	return price
}

// run asks at every time in the span of the trace.
func (x *marketForecaster) run() error {
	from := x.in.From
	if rest := from % x.every; rest > 0 {
		from += x.every - rest
	}
	for t := from; t <= x.in.To; t += x.every {
		x.look(t)
		if err := x.model.Forecast(&x.snap, &policy.Memory{}); err != nil {
			return err
		}
		x.note()
		x.ticks++
	}
	return nil
}

// look brings the snapshot to t, of which it holds nothing from after t.
func (x *marketForecaster) look(t policy.Time) {
	x.snap.Now = t
	for id := range x.snap.Markets {
		m, s := &x.snap.Markets[id], &x.in.Series[x.series[id]]
		h := x.history[id]
		for k := range h {
			h[k] = x.price(id, t-t%historyStep-policy.Time(historySize-1-k)*historyStep)
		}
		for x.interval[id]+1 < len(s.At) && s.At[x.interval[id]+1] <= t {
			x.interval[id]++
		}
		i := x.interval[id]
		m.Forecast, m.History = policy.Forecast{}, h
		m.Price, m.Offered = s.Spot[i], s.Spot[i] > 0 && s.At[i] <= t
		if !m.Offered {
			m.Price = 0
		}
		m.OnDemand = onDemandPrice(s, i)
		m.Band = policy.BandUnknown
		if s.Band != nil {
			m.Band = policy.Band(max(-1, s.Band[i]))
		}
	}
}

// price returns the price of a market at t, at or before the next time of asking; the
// first one before there was any.
func (x *marketForecaster) price(id int, t policy.Time) policy.Money {
	s, i := &x.in.Series[x.series[id]], x.interval[id]
	for i > 0 && s.At[i] > t {
		i--
	}
	for i+1 < len(s.At) && s.At[i+1] <= t {
		i++
	}
	if s.Spot[i] <= 0 {
		return policy.NoPrice
	}
	return s.Spot[i]
}

// note keeps what was forecast now, where it is another number than before. Where the
// hazard is left to the closed form nothing is: a run has a better one, that knows what
// its cluster met.
func (x *marketForecaster) note() {
	for id := range x.snap.Markets {
		m, value := &x.snap.Markets[id], -1.0
		f := &m.Forecast
		if f.Source == policy.SourceModel && x.bundle.GivesHazard(&x.snap.Types[m.Type]) {
			value = float64(int64(f.Hazard*hazardGrid+0.5)) / hazardGrid
		}
		k := x.series[id]
		h := &x.forecasts[k]
		if n := len(h.at); n > 0 && h.value[n-1] == value || n == 0 && value < 0 {
			continue
		}
		h.at, h.value = append(h.at, x.snap.Now), append(h.value, value)
		if value >= 0 {
			x.changes[k]++
		}
	}
}

// trace returns the trace with what was forecast. A hazard that stood in it before is
// no more.
func (x *marketForecaster) trace() (*trace.Trace, error) {
	series := make([]trace.Series, len(x.in.Series))
	for i := range series {
		series[i] = joined(&x.in.Series[i], &x.forecasts[i])
	}
	t, err := trace.New(x.in.Name, series)
	if err != nil {
		return nil, err
	}
	t.From, t.To, t.WholeFrom, t.WholeTo = x.in.From, x.in.To, x.in.From, x.in.To
	t.Synthetic, t.Scripted, t.About, t.Meta = x.in.Synthetic, x.in.Scripted, x.in.About, maps.Clone(x.in.Meta)
	if t.Meta == nil {
		t.Meta = map[string]string{}
	}
	return t, nil
}

// joined returns s with an interval wherever it or what was forecast changes.
func joined(s *trace.Series, h *hazardCurve) trace.Series {
	at := slices.Concat(s.At, h.at)
	slices.Sort(at)
	at = slices.Compact(at)
	at = at[max(0, slices.Index(at, s.At[0])):] // nothing is forecast of what is not there yet
	intervals, forecasts := inForce(s.At, at), inForce(h.at, at)
	out := trace.Series{
		Provider: s.Provider, Region: s.Region, Zone: s.Zone, Type: s.Type, Product: s.Product, At: at,
		Spot: taken(s.Spot, intervals), OnDemand: taken(s.OnDemand, intervals), Available: taken(s.Available, intervals),
		Band: taken(s.Band, intervals), Score: taken(s.Score, intervals), TrueHazard: taken(s.TrueHazard, intervals),
		ProbeGap: taken(s.ProbeGap, intervals), Requested: taken(s.Requested, intervals), Launched: taken(s.Launched,
			intervals),
	}
	for k := range s.Bids {
		out.Bids[k] = taken(s.Bids[k], intervals)
	}
	out.Hazard = make([]float64, len(at))
	for i, k := range forecasts {
		out.Hazard[i] = -1
		if k >= 0 {
			out.Hazard[i] = h.value[k]
		}
	}
	for i, k := range intervals { // a row that is only there for a forecast restates what is in force
		if out.ProbeGap != nil && s.At[k] != at[i] {
			out.ProbeGap[i] = 0
		}
	}
	return out
}

// inForce returns for each of times the index of the latest start at or before it, or
// -1 without one. Both slices ascend.
func inForce(begins, times []policy.Time) []int {
	out, k := make([]int, len(times)), -1
	for i, t := range times {
		for k+1 < len(begins) && begins[k+1] <= t {
			k++
		}
		out[i] = k
	}
	return out
}

// taken returns the values of a column at intervals; nil for a column that is not there.
func taken[T any](column []T, intervals []int) []T {
	if column == nil {
		return nil
	}
	out := make([]T, len(intervals))
	for i, k := range intervals {
		out[i] = column[k]
	}
	return out
}
