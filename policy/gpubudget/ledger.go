package gpubudget

import (
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// msPerHour is the length of a bucket in milliseconds.
const msPerHour = 3_600_000

// A ledger is the use of one budget in hourly buckets, in ascending order.
//
// All sums are integers, so the result does not depend on the order of the pods.
type ledger []policy.BudgetBucket

// trimmed returns a copy of the buckets that overlap the window that ends at now, with capacity for
// later hours.
func trimmed(of []policy.BudgetBucket, now policy.Time, window time.Duration) ledger {
	from := now.Add(-window)
	for len(of) > 0 && of[0].Hour+msPerHour <= from {
		of = of[1:]
	}
	return append(make(ledger, 0, len(of)+2), of...)
}

// book adds the use of n thousandths of a device between from and to, at a cost per hour. Callers
// must exclude use before the window of the ledger.
func (l *ledger) book(from, to policy.Time, n int64, perHour policy.Money) {
	for n > 0 && from < to {
		hour := from - from%msPerHour
		end := min(to, hour+msPerHour)
		b := l.bucket(hour)
		b.Used += n * int64(end-from)
		b.Cost += (perHour*policy.Money(end-from) + msPerHour/2) / msPerHour
		from = end
	}
}

// bucket returns the bucket of an hour, and adds it if it does not exist. It searches from the end,
// where nearly all use is booked.
func (l *ledger) bucket(hour policy.Time) *policy.BudgetBucket {
	i := len(*l)
	for i > 0 && (*l)[i-1].Hour >= hour {
		i--
	}
	if i == len(*l) || (*l)[i].Hour != hour {
		*l = slices.Insert(*l, i, policy.BudgetBucket{Hour: hour})
	}
	return &(*l)[i]
}

// within returns the use within the window that ends at now. The bucket in which the window starts
// counts in proportion.
func (l ledger) within(now policy.Time, window time.Duration) use {
	from := now.Add(-window)
	var u use
	for i := range l {
		b := &l[i]
		switch {
		case b.Hour+msPerHour <= from:
		case b.Hour >= from:
			u.used += b.Used
			u.cost += b.Cost
		default:
			part := int64(b.Hour + msPerHour - from)
			u.used += inProportion(b.Used, part)
			u.cost += policy.Money(inProportion(int64(b.Cost), part))
		}
	}
	return u
}

// inProportion returns the part of x, the amount of an hour, for the given number of milliseconds.
// x is divided first, so that no product overflows.
func inProportion(x, part int64) int64 {
	return x/msPerHour*part + x%msPerHour*part/msPerHour
}

// A use is an amount that counts against a budget: thousandths of a device × milliseconds, and the
// cost.
type use struct {
	used int64
	cost policy.Money
}

// hours returns u in device-hours.
func (u use) hours() float64 { return float64(u.used) / (1000 * msPerHour) }

// atLeast reports whether u reaches the given part of a quota of b; the budget is spent at part 1.
func (u use) atLeast(b *policy.Budget, part float64) bool {
	return b.HasGPUHours && u.hours() >= float64(b.GPUHours*part) ||
		b.HasDollars && u.cost.Float() >= float64(b.Dollars.Float()*part)
}

// A rate is the present use of pods: thousandths of a device, and the cost per hour.
type rate struct {
	devices int64
	cost    policy.Money
}

// plus returns the sum of two rates.
func (r rate) plus(x rate) rate { return rate{r.devices + x.devices, r.cost + x.cost} }

// crossing returns the first instant after now, up to horizon, at which the use within the sliding
// window reaches the given part of a quota (if up is set), or has fallen below that part of every
// quota, if pods keep running at r; zero if there is no such instant.
//
// The use changes linearly between the instants at which a bucket starts to leave the window or has
// left it, so it is sufficient to interpolate between these.
func (l ledger) crossing(b *policy.Budget, now, horizon policy.Time, r rate, part float64, up bool) policy.Time {
	before, t := l.ahead(b, now, now, r), now
	for t < horizon {
		next := min(horizon, l.edge(b, t))
		after := l.ahead(b, now, next, r)
		if ms, ok := between(b, before, after, part, up, int64(next-t)); ok {
			return t + policy.Time(ms)
		}
		before, t = after, next
	}
	return 0
}

// ahead returns the use within the window that ends at t, at or after now, if pods keep running at
// r.
func (l ledger) ahead(b *policy.Budget, now, t policy.Time, r rate) use {
	u := l.within(t, b.Window)
	ms := int64(t - now)
	u.used += r.devices * ms
	u.cost += policy.Money(inProportion(int64(r.cost), ms%msPerHour)) + r.cost*policy.Money(ms/msPerHour)
	return u
}

// edge returns the next instant after t at which a bucket starts to leave the window, or has left
// it.
func (l ledger) edge(b *policy.Budget, t policy.Time) policy.Time {
	from := t.Add(-b.Window)
	for i := range l {
		switch {
		case l[i].Hour > from:
			return l[i].Hour.Add(b.Window)
		case l[i].Hour+msPerHour > from:
			return (l[i].Hour + msPerHour).Add(b.Window)
		}
	}
	return t.Add(b.Window)
}

// between returns the number of milliseconds, in [1, ms], after which a use that changes linearly
// from before to after within ms reaches the given part of a quota (if up is set), or is below that
// part of every quota; false if that does not happen.
func between(b *policy.Budget, before, after use, part float64, up bool, ms int64) (int64, bool) {
	below := span{0, float64(ms)}
	if b.HasGPUHours {
		below = below.under(before.hours(), after.hours(), float64(b.GPUHours*part), float64(ms))
	}
	if b.HasDollars {
		below = below.under(before.cost.Float(), after.cost.Float(), float64(b.Dollars.Float()*part), float64(ms))
	}
	at, found := below.from, below.from < below.to
	if up {
		at, found = below.to, below.to < float64(ms) || after.atLeast(b, part)
	}
	return min(ms, int64(at)+1), found
}

// A span is a time interval in milliseconds; it is empty unless from is before to.
type span struct{ from, to float64 }

// under returns the part of s in which a value that changes linearly from first to last over ms is
// below goal.
func (s span) under(first, last, goal, ms float64) span {
	switch {
	case first < goal && last < goal:
		return s
	case first >= goal && last >= goal:
		return span{ms, 0} // empty; any further cut keeps it empty
	}
	x := float64((goal-first)/(last-first)) * ms
	if last < goal {
		s.from = max(s.from, x)
	} else {
		s.to = min(s.to, x)
	}
	return s
}
