package fit

import (
	"math"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/portable"
	"github.com/spotter-dev/spotter/scenarios/trace"
	"github.com/spotter-dev/spotter/scenarios/trace/generate"
	"github.com/spotter-dev/spotter/scenarios/trace/measure"
)

// moments are what a fit compares a recording and a draw by.
type moments struct {
	// Tables over time (ratio) and over markets (the others), at the nodes.
	ratio, levels, rates, sizes table

	// still is the share of markets that never move, and stillAt that in each
	// fifth of markets by level.
	still   float64
	stillAt [5]float64

	// stepMost is the size of step that one in two thousand exceeds.
	stepMost float64

	// rateMean and rateMedian are changes a day, over all markets.
	rateMean, rateMedian float64

	// The correlation of a step with the next, of a day's move with that of
	// the next day (median over markets), and of the moves of zones.
	steps, days, zones float64

	// skips is the share of gaps between changes of about two ticks, rests that
	// of longer ones.
	skips, rests float64

	// wander is the root of the mean variance of a market's logarithm about
	// its own mean, over markets that move; peak the median size of a step of
	// the median market, in its standard deviations.
	wander, peak float64

	// spikes are entries above spikeLevel in a market-year, of which spikeHours
	// is the median length and spikeSpread the deviation of its logarithm;
	// spikeTail is the mean of the logarithm above spikeLevel, over the spikes.
	// above is the share of time above spikeLevel.
	spikes                             table
	above                              float64
	spikeHours, spikeSpread, spikeTail float64

	// middles are the median sizes of steps, by market; stepSpread is the
	// deviation of the logarithm of the size of a step from that. lifted
	// is the share of time in which a market that moves is above its least.
	middles            table
	stepSpread, lifted float64

	// What markets of a type have in common of each property.
	levelShared, stillShared, activityShared, sizeShared float64
}

// numbers returns every figure of m.
func (m *moments) numbers() []*float64 {
	all := []*float64{
		&m.still, &m.stepMost, &m.rateMean, &m.rateMedian, &m.steps, &m.days, &m.zones, &m.skips, &m.rests, &m.wander, &m.peak,
		&m.above, &m.spikeHours, &m.spikeSpread, &m.spikeTail, &m.stepSpread, &m.lifted,
		&m.levelShared, &m.stillShared, &m.activityShared, &m.sizeShared,
	}
	for i := range m.stillAt {
		all = append(all, &m.stillAt[i])
	}
	for _, t := range [...]*table{&m.ratio, &m.levels, &m.rates, &m.sizes, &m.spikes, &m.middles} {
		for i := range t {
			all = append(all, &t[i])
		}
	}
	return all
}

// distance returns how far other is from m: the greatest of the differences of
// the figures by which a trace is judged, each in units of what is still alike.
func (m *moments) distance(other *moments) float64 {
	rate := func(m *moments) float64 { return m.rateMedian }
	if m.rateMedian == 0 {
		rate = func(m *moments) float64 { return m.rateMean }
	}
	const p5, p50, p95 = 3, 13, 23 // their places among the nodes
	most := 0.0
	for _, d := range [...]float64{
		(rate(other)/rate(m) - 1) / 0.1,
		(other.still - m.still) / 0.05,
		(portable.Exp(other.ratio[p5]-m.ratio[p5]) - 1) / 0.15,
		(portable.Exp(other.ratio[p50]-m.ratio[p50]) - 1) / 0.15,
		(portable.Exp(other.ratio[p95]-m.ratio[p95]) - 1) / 0.15,
		(other.steps - m.steps) / 0.1,
		(other.zones - m.zones) / 0.1,
	} {
		if !math.IsNaN(d) {
			most = max(most, math.Abs(d))
		}
	}
	return most
}

// average returns the mean of each figure over those in which it is a number.
func average(all []moments) moments {
	if len(all) == 1 {
		return all[0]
	}
	var mean moments
	into := mean.numbers()
	counts := make([]float64, len(into))
	for i := range all {
		for k, v := range all[i].numbers() {
			if !math.IsNaN(*v) {
				*into[k] += *v
				counts[k]++
			}
		}
	}
	for k, v := range into {
		*v /= counts[k]
	}
	return mean
}

// A table holds quantiles at the nodes.
type table [len(generate.Nodes)]float64

func tableOf(values []float64) (t table) {
	if len(values) == 0 {
		for i := range t {
			t[i] = math.NaN()
		}
		return t
	}
	s := spreadOf(values, 0)
	copy(t[:], s.Quantiles)
	return t
}

// A sight is what was seen of one market: the logarithms of the ratio, and how
// many hours each held.
type sight struct {
	x, hours []float64
	at       []policy.Time
	group    int     // of the zones of a type
	unit     float64 // of prices, as a share of the on-demand price

	rate, size, level, wander float64

	spikes, middle, lifted float64
}

// watch returns what is seen of each market at the instants of s, or of every
// change when s has none.
func watch(series []trace.Series, markets []generate.Market, unit policy.Money, s *measure.Sampling, from,
	to policy.Time) []sight {
	groups := map[string]int{}
	looks := lookTimes(s, from, to)
	all := make([]sight, len(series))
	for i := range series {
		m := &markets[i]
		key := m.TypeName()
		if _, ok := groups[key]; !ok {
			groups[key] = len(groups)
		}
		all[i] = look(&series[i], float64(m.OnDemand), looks, to)
		all[i].group = groups[key]
		all[i].unit = float64(unit) / float64(m.OnDemand)
	}
	return all
}

func lookTimes(s *measure.Sampling, from, to policy.Time) []policy.Time {
	if s == nil || s.Interval == 0 {
		return nil
	}
	var looks []policy.Time
	for base := from; base <= to; base = base.Add(s.Period) {
		for _, o := range s.Offsets {
			if at := base.Add(o); at <= to {
				looks = append(looks, at)
			}
		}
	}
	return looks
}

// look returns what is seen of one market.
func look(s *trace.Series, onDemand float64, looks []policy.Time, to policy.Time) sight {
	var m sight
	last := policy.NoPrice
	push := func(at policy.Time, price policy.Money) {
		if n := len(m.at); n > 0 && last > 0 {
			m.hours[n-1] = at.Sub(m.at[n-1]).Hours()
		}
		if price > 0 {
			m.at = append(m.at, at)
			m.x = append(m.x, portable.Log(float64(price)/onDemand))
			m.hours = append(m.hours, 0)
		}
		last = price
	}
	if looks == nil {
		for i, at := range s.At {
			if s.Spot[i] != last {
				push(at, s.Spot[i])
			}
		}
	} else {
		i := 0
		for _, at := range looks {
			for i < len(s.At) && s.At[i] <= at {
				i++
			}
			if i > 0 && s.Spot[i-1] != last {
				push(at, s.Spot[i-1])
			}
		}
	}
	push(to, policy.NoPrice)
	return m
}

// momentsOf computes the moments of what was seen.
func momentsOf(all []sight, from, to policy.Time) moments {
	var m moments
	var every, rates, sizes, everySize, wanders, levels []float64
	var gaps gapCounts
	var steps []float64
	var products, squares, days []float64
	movers := make([]*sight, 0, len(all))
	for i := range all {
		s := &all[i]
		s.describe()
		levels = append(levels, s.level)
		m.rateMean += s.rate / float64(len(all))
		every = append(every, s.rate)
		if s.rate == 0 {
			m.still += 1 / float64(len(all))
			continue
		}
		movers = append(movers, s)
		rates = append(rates, s.rate)
		if everySize = append(everySize, s.size); !s.coarse() {
			sizes = append(sizes, s.size)
		}
		wanders = append(wanders, s.wander)
		p, q := s.momentum()
		products, squares = append(products, p), append(squares, q)
		gaps.add(s)
		for j := range s.x {
			if step, ok := s.step(j); ok {
				steps = append(steps, math.Abs(step))
			}
		}
		if d := s.daily(from, to); len(d) >= 10 {
			if r := correlation(d[:len(d)-1], d[1:]); !math.IsNaN(r) {
				days = append(days, r)
			}
		}
	}
	m.rateMedian = middle(every, 0.5)
	m.steps = sum(products) / sum(squares)
	if len(sizes) < fineLeast {
		sizes = everySize
	}
	m.levels, m.rates, m.sizes, m.ratio = tableOf(levels), tableOf(rates), tableOf(sizes), timeTable(all)
	m.days = middle(days, 0.5)
	m.skips, m.rests = gaps.skips/gaps.all, gaps.rests/gaps.all
	m.wander = math.Sqrt(sum(wanders) / float64(len(wanders)))
	m.stepMost = middle(steps, 0.9995)
	m.zones = zoneCorrelation(movers, from, to)
	m.stillAt = stillByLevel(all)
	m.jumps(all, movers)
	m.shared(all)
	return m
}

// shared finds what the zones of types have in common.
func (m *moments) shared(all []sight) {
	var movers []sight
	for i := range all {
		if all[i].rate > 0 {
			movers = append(movers, all[i])
		}
	}
	m.levelShared = alike(all, func(s *sight) float64 { return s.level })
	// Two normal numbers whose correlation is r agree in sign in the share
	// 1/2 + asin(r)/π.
	agree := alike(all, func(s *sight) float64 { return min(s.rate, 1e-9) })
	m.stillShared = sinHalfPi(agree)
	m.activityShared = alike(movers, func(s *sight) float64 { return s.rate })
	var fine []sight
	for i := range movers {
		if !movers[i].coarse() {
			fine = append(fine, movers[i])
		}
	}
	m.sizeShared = alike(fine, func(s *sight) float64 { return s.size })
}

// spikeLevel is the share of the on-demand price above which a price is a
// spike.
const spikeLevel = 0.9

// jumps fills in the figures of spikes, lifts and lists.
func (m *moments) jumps(all []sight, movers []*sight) {
	var entries, hours, logs, heights, middles, peaks, relative, lifted []float64
	for i := range all {
		h, top := all[i].intervals()
		entries = append(entries, all[i].spikes)
		hours, heights = append(hours, h...), append(heights, top...)
	}
	for _, s := range movers {
		relative = append(relative, s.sizes()...)
		middles, lifted = append(middles, s.middle), append(lifted, s.lifted)
		peaks = append(peaks, s.middle/s.size)
	}
	m.spikes, m.middles = tableOf(entries), tableOf(middles)
	m.above, m.peak = timeAbove(all), middle(peaks, 0.5)
	// The middle half of normal numbers is 1.349 deviations wide; few tiny or
	// huge steps do not count.
	m.stepSpread = (middle(relative, 0.75) - middle(relative, 0.25)) / 1.349
	m.lifted = sum(lifted) / float64(len(lifted))
	for _, h := range hours {
		logs = append(logs, portable.Log(h))
	}
	m.spikeHours, m.spikeSpread = middle(hours, 0.5), deviation(logs)
	m.spikeTail = sum(heights) / float64(len(heights))
}

// timeAbove returns the share of the time of all markets above spikeLevel.
func timeAbove(all []sight) float64 {
	line, above, total := portable.Log(spikeLevel), 0.0, 0.0
	for i := range all {
		for j, x := range all[i].x {
			total += all[i].hours[j]
			if x > line {
				above += all[i].hours[j]
			}
		}
	}
	return above / total
}

func deviation(values []float64) float64 {
	n := float64(len(values))
	mean := sum(values) / n
	squares := 0.0
	for _, v := range values {
		squares += float64((v - mean) * (v - mean))
	}
	return math.Sqrt(squares / n)
}

// intervals returns the hours and the heights of the spikes that begin while the
// market is watched, and counts them.
func (s *sight) intervals() (hours, heights []float64) {
	line := portable.Log(spikeLevel)
	total, length, top, inside := 0.0, 0.0, 0.0, false
	for j, x := range s.x {
		total += s.hours[j]
		if x <= line {
			if inside {
				hours, heights, inside = append(hours, length), append(heights, top), false
			}
			continue
		}
		if _, ok := s.step(j); ok && !inside && s.x[j-1] <= line {
			inside, length, top = true, 0, 0
		}
		length, top = length+s.hours[j], max(top, x-line)
	}
	if total > 0 {
		s.spikes = float64(len(hours)) / total * yearHours
	}
	return hours, heights
}

// sizes fills in what is typical of the size of the steps, and returns the
// logarithms of the sizes about their median.
func (s *sight) sizes() []float64 {
	var sizes, logs []float64
	least, hours, lifted := math.Inf(1), 0.0, 0.0
	for j, x := range s.x {
		least = min(least, x)
		if step, ok := s.step(j); ok {
			sizes, logs = append(sizes, math.Abs(step)), append(logs, portable.Log(math.Abs(step)))
		}
	}
	for j, x := range s.x {
		hours += s.hours[j]
		if x > least+0.1 {
			lifted += s.hours[j]
		}
	}
	s.middle, s.lifted = middle(sizes, 0.5), lifted/hours
	usual := portable.Log(s.middle)
	for i := range logs {
		logs[i] -= usual
	}
	return logs
}
