package fit

import (
	"math"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/portable"
	"github.com/spotter-dev/spotter/scenarios/chance"
	"github.com/spotter-dev/spotter/scenarios/trace/generate"
)

// orElse returns v, or other if v is NaN or infinite.
func orElse(v, other float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return other
	}
	return v
}

// beginAuction makes the first guess at an auction.
func (f *fitter) beginAuction() {
	l, m := &f.Law, &f.target
	gaps := f.gaps()
	l.Most = max(l.Most, 1.05)
	a := &generate.AuctionLaw{TickLeast: 1.0 / 60, TickSpread: 1.2, Noise: bound(-2*orElse(m.steps, -0.4), 0.05, 0.98)}
	if len(gaps) >= 200 {
		a.TickLeast = max(1.0/3600, 0.98*middle(gaps, 0.01))
		half, high := middle(gaps, 0.5)-a.TickLeast, middle(gaps, 0.95)-a.TickLeast
		if half > 0 && high > half {
			// The pooled gaps of fast and slow markets spread more than those of
			// each.
			const within, at95 = 0.7, 1.6448536269514722
			a.TickSpread = bound(within*portable.Log(high/half)/at95, 0.1, 3)
		}
	}
	a.Spikes = m.spikes.spread(0, 0, 1e4)
	a.SpikeLeast = 0.95
	a.SpikeTail = bound(orElse(m.spikeTail, 0.3), 0.01, 3)
	a.SpikeHours = bound(orElse(m.spikeHours, 3), 0.1, 1000)
	a.SpikeSpread = bound(orElse(m.spikeSpread, 1), 0.1, 2.5)
	l.Auction = a
	l.Pull = 0.01
}

// gaps returns the hours between changes of all markets.
func (f *fitter) gaps() []float64 {
	var gaps []float64
	for i := range f.series {
		s := &f.series[i]
		last := policy.Time(0)
		for j := 1; j < len(s.At); j++ {
			if s.Spot[j] == s.Spot[j-1] {
				continue
			}
			if last > 0 {
				gaps = append(gaps, s.At[j].Sub(last).Hours())
			}
			last = s.At[j]
		}
	}
	return gaps
}

func (f *fitter) correctAuction(m *moments, gain float64) {
	l, a, t := &f.Law, f.Law.Auction, &f.target
	f.rates(m, gain, 24/a.TickLeast)
	scales(&l.Size, &t.sizes, &m.sizes, gain, 5)
	move(&a.Noise, gain*(m.steps-t.steps), 0.01, 0.99)
	l.Pull = bound(float64(l.Pull*power(m.wander/t.wander, 2*gain)), 1e-5, 0.5)
	f.tail(m, gain)
	// Noise carries a market that stands high across the line, too: all spikes
	// are scaled until their number is right.
	want, got := sum(t.spikes[:]), sum(m.spikes[:])
	a.SpikeHours = bound(float64(a.SpikeHours*power(t.above/m.above, 0.5*gain)), 0.1, 1000)
	adjust(&a.Spikes, 0, 1e4, func(_ int, v float64) float64 { return float64(v * power(want/got, 0.5*gain)) })
}

// beginJumps makes the first guess at prices that rest and are lifted.
func (f *fitter) beginJumps() {
	l, m := &f.Law, &f.target
	l.Jumps = &generate.JumpsLaw{Every: 1, Stay: 84, Spread: bound(orElse(m.stepSpread, 0.3), 0.05, 2)}
	l.Together = 0
	l.Size = m.middles.spread(0, 0.01, 5)
	// Few looks say little of how markets differ. That some move more often is
	// taken from elsewhere: by a factor of two to either side.
	l.Activity = constant(1)
	adjust(&l.Activity, 1e-3, 5e4, func(i int, _ float64) float64 {
		p := bound(generate.Nodes[i], 0.01, 0.99)
		return float64(10 * portable.Exp(float64(0.7*chance.NormalQuantile(p))))
	})
	l.Scatter = 0
}

func (f *fitter) correctJumps(m *moments, gain float64) {
	l, j, t := &f.Law, f.Law.Jumps, &f.target
	l.Together = 0
	f.rate(m, gain, 5e4)
	scales(&l.Size, &t.middles, &m.middles, gain, 5)
	j.Stay = bound(float64(j.Stay*power(t.lifted/m.lifted, gain)), 1, 2000)
}

// A calendar counts the changes of a trace by UTC day.
type calendar struct {
	days   []policy.Time
	counts []int
	total  int
}

func (f *fitter) dates() *calendar {
	c := &calendar{}
	byDay := map[policy.Time]int{}
	for i := range f.series {
		s := &f.series[i]
		for j := 1; j < len(s.At); j++ {
			if s.Spot[j] > 0 && s.Spot[j-1] > 0 && s.Spot[j] != s.Spot[j-1] {
				at := s.At[j] - s.At[j]%day
				if byDay[at] == 0 {
					c.days = append(c.days, at)
				}
				byDay[at]++
				c.total++
			}
		}
	}
	slices.Sort(c.days)
	for _, d := range c.days {
		c.counts = append(c.counts, byDay[d])
	}
	return c
}

// common returns the days on which at least a share of all changes fell.
func (c *calendar) common(share float64) (days []policy.Time, held int) {
	for i, d := range c.days {
		if float64(c.counts[i]) >= share*float64(c.total) {
			days = append(days, d)
			held += c.counts[i]
		}
	}
	return days, held
}

// concentrated reports whether most changes fall on few days.
func (c *calendar) concentrated() bool {
	days, held := c.common(0.01)
	return c.total > 0 && 2*held > c.total && len(days) <= 60
}

// beginList makes the first guess at a list.
func (f *fitter) beginList() {
	l, m := &f.Law, &f.target
	days, _ := f.dates().common(0.02)
	months := max(1, f.To.Sub(f.From).Hours()/24/30.44)
	list := &generate.ListLaw{Dates: bound(float64(len(days))/months, 0.02, 1),
		Spread: bound(orElse(m.stepSpread, 0.3), 0.05, 2)}
	var ofMonth []float64
	for _, d := range days {
		ofMonth = append(ofMonth, float64(d.Std().Day()))
	}
	first, last := middle(ofMonth, 0.1), middle(ofMonth, 0.9)
	list.DayOfMonth = int(bound(orElse(first, 1), 1, 28))
	list.DaySpread = int(bound(orElse(last-first, 0), 0, float64(28-list.DayOfMonth)))
	l.List = list
	l.Size = m.middles.spread(0, 1e-4, 5)
	l.Scatter = 0.5
	dates := max(1, float64(len(days)))
	adjust(&l.Activity, 1e-4, 1, func(_ int, v float64) float64 {
		return v * f.To.Sub(f.From).Hours() / 24 / dates
	})
	l.Pull = 0.05
}

func (f *fitter) correctList(m *moments, gain float64) {
	l, t := &f.Law, &f.target
	f.rate(m, gain, 1)
	scales(&l.Size, &t.middles, &m.middles, gain, 5)
	// A price that returns sooner has steps of alternating direction.
	move(&l.Pull, gain*(m.steps-t.steps), 0, 1)
}
