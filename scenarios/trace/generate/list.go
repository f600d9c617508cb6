package generate

import (
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/chance"
)

// list returns the drawer of prices of a list: at some of the dates on which the provider changes
// its list, the market gets a new price.
func (p *path) list(s *shared) drawer {
	p.note(p.c.From)
	dates := s.dates
	return func(until policy.Time) {
		for ; len(dates) > 0 && dates[0].at < until; dates = dates[1:] {
			p.change(s, dates[0])
		}
	}
}

// change may give the market a new price on a date.
func (p *path) change(s *shared, on listDate) {
	l := &p.c.Law
	// In part of the cases, all zones change together.
	k := p.keys
	if k.rest.At1(on.n).Float() < l.Together {
		k = s.keys
	}
	if k.tick.At1(on.n).Float() >= p.activity {
		return
	}
	size := min(l.StepMost, float64(p.size*k.lasting.At1(on.n).LogNormal(l.List.Spread)))
	// The farther a price is from its level, the more likely it returns.
	up := 0.5 - float64(l.Pull*(p.x-p.level))/float64(2*max(p.size, 1e-9))
	if k.passing.At1(on.n).Float() >= up {
		size = -size
	}
	p.x = max(p.least, min(p.x+size, p.most))
	p.note(on.at)
}

// A listDate is a date on which a list is changed, and the number of its period of months.
type listDate struct {
	n  uint64
	at policy.Time
}

// dates returns the dates on which the list changes: at the usual time of one month in each period
// of months. Periods are counted from 1970, so that the dates do not depend on the start of the
// trace.
func (c *Config) dates() []listDate {
	l := c.Law.List
	key := chance.Stream(c.Seed, "generate list dates")
	months := func(t policy.Time) float64 { return float64(t.Std().Year()*12 + int(t.Std().Month()) - 1) }
	// One date in each period, in any of its months.
	monthOf := func(n int) int { return int((float64(n) + key.At1(uint64(n)).Float()) / l.Dates) }
	var all []listDate
	for n := int(months(c.From) * l.Dates); ; n++ {
		month, k := monthOf(n), key.At1(uint64(n))
		if month == monthOf(n-1) {
			continue // at most one list per month
		}
		begin := time.Date(month/12, time.Month(month%12)+1, 1, 0, 0, 0, 0, time.UTC)
		day := l.DayOfMonth + k.At1(1).IntN(l.DaySpread+1)
		at := policy.TimeOf(begin.AddDate(0, 0, day-1))
		if at >= c.To {
			return all
		}
		if at > c.From {
			all = append(all, listDate{uint64(n), at})
		}
	}
}
