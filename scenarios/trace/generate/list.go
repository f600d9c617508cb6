package generate

import (
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/chance"
)

// list draws the whole path: at some of the dates on which the provider
// changes its list the market gets another price.
func (p *path) list(s *shared) {
	l := &p.c.Law
	p.note(p.c.From)
	for n, at := range p.c.dates() {
		// Zones are priced as one in part of the cases.
		k := p.keys
		if k.rest.At1(uint64(n)).Float() < l.Together {
			k = s.keys
		}
		if k.tick.At1(uint64(n)).Float() >= p.activity {
			continue
		}
		size := min(l.StepMost, float64(p.size*k.lasting.At1(uint64(n)).LogNormal(l.List.Spread)))
		// The farther from its level, the likelier a price returns.
		up := 0.5 - float64(l.Pull*(p.x-p.level))/float64(2*max(p.size, 1e-9))
		if k.passing.At1(uint64(n)).Float() >= up {
			size = -size
		}
		p.x = max(p.least, min(p.x+size, p.most))
		p.note(at)
	}
}

// dates returns when the list is changed: at the usual time of one month in
// each stretch of months. It counts them from 1970, so that they do not depend
// on where a trace begins.
func (c *Config) dates() func(yield func(int, policy.Time) bool) {
	l := c.Law.List
	key := chance.Stream(c.Seed, "generate list dates")
	months := func(t policy.Time) float64 { return float64(t.Std().Year()*12 + int(t.Std().Month()) - 1) }
	return func(yield func(int, policy.Time) bool) {
		// One date in each stretch, in any month of it.
		monthOf := func(n int) int { return int((float64(n) + key.At1(uint64(n)).Float()) / l.Dates) }
		for n := int(months(c.From) * l.Dates); ; n++ {
			month, k := monthOf(n), key.At1(uint64(n))
			if month == monthOf(n-1) {
				continue // a month has one list
			}
			begin := time.Date(month/12, time.Month(month%12)+1, 1, 0, 0, 0, 0, time.UTC)
			day := l.DayOfMonth + k.At1(1).IntN(l.DaySpread+1)
			at := policy.TimeOf(begin.AddDate(0, 0, day-1))
			if at >= c.To {
				return
			}
			if at > c.From && !yield(n, at) {
				return
			}
		}
	}
}
