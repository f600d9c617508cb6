package fit

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/portable"
	"github.com/spotter-dev/spotter/scenarios/catalog"
	"github.com/spotter-dev/spotter/scenarios/chance"
	"github.com/spotter-dev/spotter/scenarios/trace"
	"github.com/spotter-dev/spotter/scenarios/trace/generate"
	"github.com/spotter-dev/spotter/scenarios/trace/measure"
)

// A Fitted is what a fit found.
type Fitted struct {
	Law generate.Law

	// Markets are those of the trace that have a price and an on-demand price,
	// Left those that have none of the latter.
	Markets []generate.Market
	Left    []string

	// From and To are the span of the trace.
	From, To policy.Time

	fitter *fitter
}

// Seed returns the seed to draw with, derived from the seed given by the user. A few weeks
// of one draw of a law differ from those of another by about as much as two recordings
// would. Seed therefore makes several draws with the markets and the time span of the
// trace, each from its own derived seed, and chooses the first whose figures are near
// enough to those of the trace, else the nearest. The options of the current request, such
// as more days, do not affect the choice.
func (f *Fitted) Seed(given uint64) uint64 {
	best, least := given, math.Inf(1)
	n := int(bound(candidateRows/f.fitter.rows(), 6, 60))
	for k := 0; k < n && least > nearEnough; k++ {
		seed := uint64(chance.Stream(given, "generate candidate").At1(uint64(k)))
		m := f.fitter.once(seed)
		if d := f.fitter.target.distance(&m); d < least {
			best, least = seed, d
		}
	}
	return best
}

// SeedChoice says in a sentence what [Fitted.Seed] does.
const SeedChoice = "the draw is one of several whose seeds follow from the given one: " +
	"the first that comes near the recording in the figures it is judged by, else the nearest"

// candidateRows bounds the work of choosing among draws, and nearEnough ends it:
// no figure is off by more than half of what is still alike.
const (
	candidateRows = 8_000_000
	nearEnough    = 0.5
)

// Fit fits a law to a trace. It draws from the law, sees the draw as the trace
// was seen, compares, and corrects the law, a fixed number of times, so that
// equal traces give equal laws. What a fetcher hid that looked four times a
// day is thereby undone.
func Fit(t *trace.Trace) (*Fitted, error) { return Of(t, nil) }

// Of fits a law whose draws for markets resemble t, a trace of other markets. The types
// that are drawn affect the figures, since prices are whole units: the price of a cheap
// type changes less often than that of an expensive type whose unrounded price moves as
// often. Without markets, those of t are drawn.
func Of(t *trace.Trace, markets []generate.Market) (*Fitted, error) {
	f, err := newFitter(t)
	if err != nil {
		return nil, fmt.Errorf("fitting %s: %w", t.Name, err)
	}
	if f.drawn = markets; len(markets) == 0 {
		f.drawn = f.Markets
	}
	for k := range rounds {
		f.round(k)
	}
	if err := f.Law.Validate(); err != nil {
		return nil, fmt.Errorf("fitting %s: %w", t.Name, err)
	}
	f.fitter = f
	return f.Fitted, nil
}

// newFitter measures t and makes the first guess.
func newFitter(t *trace.Trace) (*fitter, error) {
	f := &fitter{Fitted: &Fitted{From: t.From, To: t.To}}
	f.take(t)
	if len(f.Markets) == 0 {
		return nil, fmt.Errorf("%w: no market has a price and an on-demand price", trace.ErrEmpty)
	}
	if f.To-f.From < 2*day {
		return nil, fmt.Errorf("%w: it covers less than two days", trace.ErrEmpty)
	}
	f.sampling = measure.SamplingOf(t)
	f.Law.Unit = f.unit()
	f.target = f.measure(f.series, f.Markets)
	f.begin(t)
	return f, f.Law.Validate()
}

// rounds is how often a law is corrected. Corrections shrink after the first
// steady ones, so that the chance of single draws averages out.
const (
	rounds = 30
	steady = 14
)

// A fitter is the state of a fit.
type fitter struct {
	*Fitted
	series   []trace.Series
	drawn    []generate.Market // those that draws are made of
	sampling measure.Sampling
	target   moments
}

// take keeps the markets that can be fitted.
func (f *fitter) take(t *trace.Trace) {
	for i := range t.Series {
		s := &t.Series[i]
		priced := false
		for _, p := range s.Spot {
			priced = priced || p > 0
		}
		if !priced {
			continue
		}
		onDemand, _ := catalog.OnDemand(s.Provider, s.Region, s.Type)
		if onDemand == 0 {
			onDemand, _, _ = catalog.OnDemandModelled(s.Provider, s.Region, s.Type)
		}
		for _, p := range s.OnDemand {
			if p > 0 {
				onDemand = p
			}
		}
		if onDemand <= 0 {
			f.Left = append(f.Left, s.Name())
			continue
		}
		f.series = append(f.series, *s)
		f.Markets = append(f.Markets, generate.Market{Provider: s.Provider, Region: s.Region, Zone: s.Zone, Type: s.Type,
			Product: s.Product, OnDemand: onDemand})
	}
}

// kind tells from its moments how the prices of a trace came about.
func (f *fitter) kind() generate.Kind {
	m := &f.target
	const (
		weekly    = 3 * 24 * time.Hour // looks this far apart show no walk
		listRate  = 0.05               // changes a day, below which there is a list
		dailyRate = 12                 // changes a day, above which there is an auction
	)
	switch {
	case f.sampling.Interval >= weekly:
		return generate.Jumps
	case m.rateMean < listRate && f.dates().concentrated():
		return generate.List
	case m.rateMean > dailyRate:
		return generate.Auction
	}
	return generate.Walk
}

// begin makes the first guess.
func (f *fitter) begin(t *trace.Trace) {
	m, l := &f.target, &f.Law
	l.Name, l.Provider = t.Name, f.Markets[0].Provider
	l.Imitates = t.Name
	l.Kind = f.kind()
	l.Least = portable.Exp(m.ratio[1])
	l.Most = max(portable.Exp(m.ratio[len(generate.Nodes)-1]), 1.01*l.Least)
	if !f.above() { // the cells of the table may reach beyond what was seen
		l.Most = min(l.Most, max(1, 1.01*l.Least))
	}
	l.Level = m.levels.spread(m.levelShared, portable.Log(l.Least), portable.Log(l.Most))
	l.Still, l.StillShared = m.stillAt, min(m.stillShared, 0.75)
	l.Together = 0.3
	move(&l.Together, m.zones-0.3, 0, 0.99)
	l.Activity = m.rates.spread(m.activityShared, 1e-4, 1e4)
	l.Size = m.sizes.spread(m.sizeShared, 1e-6, 5)
	l.Pull = 0.002
	l.StepMost = m.stepMost
	if math.IsNaN(l.StepMost) { // nothing moves
		l.StepMost = 0.05
	}
	l.Scatter = 0.5
	if size := l.Size.At(0.5); m.wander > 0 {
		l.Scatter = bound(0.5*m.wander/size, 0, 1000)
	}
	switch l.Kind {
	case generate.Walk:
		l.Walk = &generate.WalkLaw{Momentum: 0.8, Jitter: 0.3, Cycle: 20, Skip: 0.05, TickLeast: 4.6, TickMost: 7.3,
			Hidden: 1}
		f.clock()
	case generate.Auction:
		f.beginAuction()
	case generate.Jumps:
		f.beginJumps()
	case generate.List:
		f.beginList()
	}
}

// above reports whether a price was ever above on-demand.
func (f *fitter) above() bool {
	for i := range f.series {
		s := &f.series[i]
		for j, p := range s.Spot {
			onDemand := f.Markets[i].OnDemand
			if s.OnDemand != nil && s.OnDemand[j] > 0 {
				onDemand = s.OnDemand[j]
			}
			if p > onDemand {
				return true
			}
		}
	}
	return false
}

// spread returns t as a spread within bounds. A table of nothing, because no
// market moves, becomes the least.
func (t *table) spread(shared, least, most float64) generate.Spread {
	s := constant(least)
	s.Shared = shared
	adjust(&s, least, most, func(i int, v float64) float64 { return t[i] })
	return s
}

// unit returns the greatest of the usual steps of published prices that nearly
// all prices are multiples of.
func (f *fitter) unit() policy.Money {
	for _, unit := range [...]policy.Money{policy.Dollar / 1000, policy.Dollar / 10_000} {
		n, fit := 0, 0
		for i := range f.series {
			for _, p := range f.series[i].Spot {
				if p > 0 {
					n++
					if p%unit == 0 {
						fit++
					}
				}
			}
		}
		if fit*100 >= n*99 {
			return unit
		}
	}
	return policy.Dollar / 1_000_000
}

// clock reads the clock of a walk off the gaps between changes, where the
// trace shows every change. A sampled one keeps the clock that recordings of
// every change have shown in all years.
func (f *fitter) clock() {
	if f.sampling.Interval > 0 {
		return
	}
	gaps := f.gaps()
	if len(gaps) < 200 {
		return
	}
	// A gap of one tick is at most about 1.7 times the shortest; longer ones
	// hold a rest.
	least := max(1.0/60, middle(gaps, 0.01))
	ticks := slices.DeleteFunc(gaps, func(g float64) bool { return g >= 1.7*least })
	f.Law.Walk.TickLeast = least
	f.Law.Walk.TickMost = max(1.01*least, 2*middle(ticks, 0.5)-least)
}

// round draws from the law, compares and corrects.
func (f *fitter) round(k int) {
	gain := 1.0
	if k > steady {
		gain = 1 / float64(k-steady+1)
	}
	m := f.draw(uint64(k) + 1)
	f.correct(&m, gain)
}

// A round draws as many times as make about drawsRows rows, and at most
// drawsMost times, so that small recordings are fitted as steadily as large
// ones.
const (
	drawsRows = 300_000
	drawsMost = 8
)

// draw returns the mean moments of some draws.
func (f *fitter) draw(seed uint64) moments {
	all := make([]moments, int(bound(drawsRows/f.rows(), 1, drawsMost)))
	for i := range all {
		all[i] = f.once(seed*drawsMost + uint64(i))
	}
	return average(all)
}

// rows is how many there are in the trace.
func (f *fitter) rows() float64 {
	n := 1.0
	for i := range f.series {
		n += float64(len(f.series[i].At))
	}
	return n
}

// once returns the moments of one draw.
func (f *fitter) once(seed uint64) moments {
	c := generate.Config{Seed: seed, From: f.From, To: f.To, Markets: f.drawn, Law: f.Law}
	series, err := generate.Draw(&c)
	if err != nil {
		panic(fmt.Sprintf("fit: a fit left the bounds of its law: %v", err))
	}
	return f.measure(series, f.drawn)
}

// measure returns the moments of the series of markets as the trace was seen.
func (f *fitter) measure(series []trace.Series, markets []generate.Market) moments {
	return momentsOf(watch(series, markets, f.Law.Unit, &f.sampling, f.From, f.To), f.From, f.To)
}

// correct moves every parameter towards what would have given the target.
func (f *fitter) correct(m *moments, gain float64) {
	l, t := &f.Law, &f.target
	adjust(&l.Level, portable.Log(l.Least), portable.Log(l.Most), func(i int, v float64) float64 {
		return v + float64(gain*bound(t.ratio[i]-m.ratio[i], -0.3, 0.3))
	})
	for i := range l.Still {
		move(&l.Still[i], gain*(t.still-m.still), 0, 1)
	}
	move(&l.Level.Shared, 0.5*gain*(t.levelShared-m.levelShared), 0, 0.99)
	move(&l.StillShared, 0.5*gain*(t.stillShared-m.stillShared), 0, 0.75)
	move(&l.Activity.Shared, 0.5*gain*(t.activityShared-m.activityShared), 0, 0.99)
	move(&l.Together, 1.2*gain*(t.zones-m.zones), 0, 0.99)
	// What moves as one moves as often.
	l.Activity.Shared = max(l.Activity.Shared, l.Together)
	switch l.Kind {
	case generate.Walk:
		f.correctWalk(m, gain)
	case generate.Auction:
		f.correctAuction(m, gain)
	case generate.Jumps:
		f.correctJumps(m, gain)
	case generate.List:
		f.correctList(m, gain)
	}
}

// rates corrects how often markets move, up to most times.
func (f *fitter) rates(m *moments, gain, most float64) {
	l, t := &f.Law, &f.target
	adjust(&l.Activity, 1e-4, most, func(i int, v float64) float64 {
		return float64(v * power(t.rates[i]/m.rates[i],
			gain))
	})
	f.rate(m, 0.6*gain, most)
}

// rate corrects how often all markets move as one.
func (f *fitter) rate(m *moments, gain, most float64) {
	whole := power(f.target.rateMean/m.rateMean, gain)
	adjust(&f.Law.Activity, 1e-4, most, func(_ int, v float64) float64 { return float64(v * whole) })
}

// scales corrects a table by the ratio of two others.
func scales(s *generate.Spread, want, got *table, gain, most float64) {
	adjust(s, 1e-6, most, func(i int, v float64) float64 { return float64(v * power(want[i]/got[i], gain)) })
}

func (f *fitter) correctWalk(m *moments, gain float64) {
	l, w, t := &f.Law, f.Law.Walk, &f.target
	f.rates(m, gain, 48/(w.TickLeast+w.TickMost))
	scales(&l.Size, &t.sizes, &m.sizes, gain, 5)
	move(&w.Jitter, gain*(m.steps-t.steps), 0, 0.97)
	move(&w.Momentum, 0.3*gain*(t.days-m.days), 0.2, 0.985)
	if w.Jitter == 0 {
		move(&w.Momentum, 0.5*gain*(t.steps-m.steps), 0.2, 0.985)
	}
	// A strong pull and a long momentum undo each other; prices whose levels last
	// for weeks have little of either.
	l.Pull = bound(float64(l.Pull*power(m.wander/t.wander, gain)), 1e-5, 0.03)
	f.tail(m, gain)
	move(&l.Size.Shared, 0.5*gain*(t.sizeShared-m.sizeShared), 0, 0.99)
	w.Cycle = bound(float64(w.Cycle*power(m.rests/t.rests, gain)), 1, max(1, f.To.Sub(f.From).Hours()/48))
	move(&w.Skip, gain*(t.skips-m.skips), 0, 0.9)
}

// tail corrects how much larger than usual large steps are.
func (f *fitter) tail(m *moments, gain float64) {
	move(&f.Law.Tail, 0.5*gain*(m.peak-f.target.peak), -1, 0.6)
}

// move adds delta to a parameter and keeps it within bounds. What cannot be
// computed, because a trace has no two zones or too few days, corrects nothing.
func move(p *float64, delta, least, most float64) {
	if !math.IsNaN(delta) {
		*p = bound(*p+float64(delta), least, most)
	}
}

// bound keeps v within bounds.
func bound(v, least, most float64) float64 { return max(least, min(v, most)) }

// power returns ratio to the power of gain, 1 where there is no ratio, and
// never more than a factor of two.
func power(ratio, gain float64) float64 {
	if !(ratio > 0) || math.IsInf(ratio, 0) {
		return 1
	}
	return portable.Pow(bound(ratio, 0.5, 2), gain)
}
