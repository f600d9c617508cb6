package fit

import (
	"math"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/portable"
	"github.com/spotter-dev/spotter/scenarios/chance"
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
func watch(series []trace.Series, markets []generate.Market, unit policy.Money, s *measure.Sampling, from, to policy.Time) []sight {
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

// jumps fills in what tells of spikes, lifts and lists.
func (m *moments) jumps(all []sight, movers []*sight) {
	var entries, hours, logs, heights, middles, peaks, relative, lifted []float64
	for i := range all {
		h, top := all[i].spells()
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

// spells returns the hours and the heights of the spikes that begin while the
// market is watched, and counts them.
func (s *sight) spells() (hours, heights []float64) {
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
// logarithms of the sizes beside their median.
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

// sinHalfPi returns the sine of x·π/2 for x in [0, 1], by its series: the
// functions of the standard library differ by machine.
func sinHalfPi(x float64) float64 {
	const halfPi = 1.5707963267948966
	y := float64(halfPi * x)
	term, total := y, y
	for n := 1.0; n < 8; n++ {
		term = -float64(term*y*y) / float64(2*n*(2*n+1))
		total += term
	}
	return min(total, 1)
}

// gapCounts count the times between changes.
type gapCounts struct{ all, skips, rests float64 }

// The bounds of a gap of about two ticks, in hours. Looks of four a day see one
// tick as up to ten.
const (
	skipLeast = 10.5
	skipMost  = 18
)

func (g *gapCounts) add(s *sight) {
	for j := 2; j < len(s.at); j++ {
		g.all++
		switch hours := s.at[j].Sub(s.at[j-1]).Hours(); {
		case hours > skipMost:
			g.rests++
		case hours > skipLeast:
			g.skips++
		}
	}
}

func sum(values []float64) float64 {
	total := 0.0
	for _, v := range values {
		total += v
	}
	return total
}

func middle(values []float64, p float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	slices.Sort(values)
	return interpolate(values, p)
}

// coarse reports whether the steps of a market are so small beside the unit of
// prices that their size says more of the unit.
func (s *sight) coarse() bool {
	return float64(s.size*portable.Exp(s.level)) < float64(3*s.unit)
}

// fineLeast is how many markets must not be coarse for the sizes of steps to be
// measured on them alone.
const fineLeast = 8

// describe fills in the figures of one market.
func (s *sight) describe() {
	hours, total := 0.0, 0.0
	for j, x := range s.x {
		hours += s.hours[j]
		total += float64(x * s.hours[j])
	}
	if hours == 0 {
		return
	}
	s.level = total / hours
	squares, n := 0.0, 0
	second := 0.0
	for j, x := range s.x {
		d := x - s.level
		squares += float64(s.hours[j] * d * d)
		if step, ok := s.step(j); ok {
			n++
			second += float64(step * step)
		}
	}
	s.wander = squares / hours
	s.rate = float64(n) / hours * 24
	if n > 0 {
		s.size = math.Sqrt(second / float64(n))
	}
}

// step returns the j-th change, unless the market was not offered before it.
func (s *sight) step(j int) (float64, bool) {
	if j == 0 || s.at[j].Sub(s.at[j-1]).Hours() > s.hours[j-1]+0.01 {
		return 0, false
	}
	step := s.x[j] - s.x[j-1]
	return step, step != 0
}

// momentum returns the sums of which the correlation of neighbouring steps is
// made.
func (s *sight) momentum() (products, squares float64) {
	last, chained := 0.0, false
	for j := range s.x {
		step, ok := s.step(j)
		if ok && chained {
			products += float64(last * step)
			squares += float64(float64(last*last)+float64(step*step)) / 2
		}
		last, chained = step, ok
	}
	return products, squares
}

// daily returns the moves from one midnight to the next, where the market was
// there at both, and else what is not a number.
func (s *sight) daily(from, to policy.Time) []float64 {
	moves := make([]float64, 0, (to-from)/day)
	last, j := math.NaN(), 0
	for d := (from + day - 1) / day * day; d <= to; d += day {
		for j < len(s.at) && s.at[j] <= d {
			j++
		}
		x := math.NaN()
		if j > 0 && d.Sub(s.at[j-1]).Hours() <= s.hours[j-1] {
			x = s.x[j-1]
		}
		moves = append(moves, x-last)
		last = x
	}
	return moves
}

// timeTable tabulates the logarithm over the time of all markets.
func timeTable(all []sight) table {
	// Logarithms are counted in steps of 0.0005, from −10 to 10.
	const cells, width = 40_000, 0.0005
	hours := make([]float64, cells)
	total := 0.0
	for i := range all {
		for j, x := range all[i].x {
			k := int(math.Floor(x/width)) + cells/2
			hours[max(0, min(k, cells-1))] += all[i].hours[j]
			total += all[i].hours[j]
		}
	}
	var t table
	k, below := 0, 0.0
	for i, p := range generate.Nodes {
		want := float64(max(0.002, min(p, 0.998)) * total)
		for k < cells-1 && below+hours[k] < want {
			below += hours[k]
			k++
		}
		t[i] = (float64(k-cells/2) + 0.5) * width
	}
	return t
}

// zoneCorrelation returns the median over pairs of zones of the correlation of
// daily moves.
func zoneCorrelation(movers []*sight, from, to policy.Time) float64 {
	slices.SortStableFunc(movers, func(a, b *sight) int { return a.group - b.group })
	moves := make([][]float64, len(movers))
	for i, s := range movers {
		moves[i] = s.daily(from, to)
	}
	var all []float64
	for i, a := range movers {
		for k := i + 1; k < len(movers) && movers[k].group == a.group; k++ {
			if r := correlation(moves[i], moves[k]); !math.IsNaN(r) {
				all = append(all, r)
			}
		}
	}
	return middle(all, 0.5)
}

// correlation is Pearson's, where both are numbers.
func correlation(a, b []float64) float64 {
	var n, sa, sb, saa, sbb, sab float64
	for i, x := range a {
		y := b[i]
		if math.IsNaN(x) || math.IsNaN(y) {
			continue
		}
		n++
		sa, sb = sa+x, sb+y
		saa, sbb, sab = saa+float64(x*x), sbb+float64(y*y), sab+float64(x*y)
	}
	va := float64(n*saa) - float64(sa*sa)
	vb := float64(n*sbb) - float64(sb*sb)
	if !(va > 1e-18 && vb > 1e-18) || n < 10 {
		return math.NaN()
	}
	return (float64(n*sab) - float64(sa*sb)) / math.Sqrt(float64(va*vb))
}

// stillByLevel returns the share of markets that never move, in each fifth by
// level.
func stillByLevel(all []sight) [5]float64 {
	order := make([]*sight, len(all))
	for i := range all {
		order[i] = &all[i]
	}
	slices.SortStableFunc(order, func(a, b *sight) int {
		switch {
		case a.level < b.level:
			return -1
		case a.level > b.level:
			return 1
		}
		return 0
	})
	var still, count, out [5]float64
	for i, s := range order {
		k := i * len(out) / len(order)
		count[k]++
		if s.rate == 0 {
			still[k]++
		}
	}
	overall := sum(still[:]) / float64(len(all))
	for k := range out {
		// With few markets a fifth tells little: four of the whole are added.
		out[k] = (still[k] + float64(4*overall)) / (count[k] + 4)
	}
	return out
}

// alike returns which share of the variance of a property the markets of a
// group have in common, after its values were made normal by their ranks.
func alike(all []sight, get func(*sight) float64) float64 {
	type entry struct {
		value float64
		index int
	}
	entries := make([]entry, len(all))
	for i := range all {
		entries[i] = entry{value: get(&all[i]), index: i}
	}
	slices.SortStableFunc(entries, func(a, b entry) int {
		switch {
		case a.value < b.value:
			return -1
		case a.value > b.value:
			return 1
		}
		return 0
	})
	normal := make([]float64, len(all))
	for i := 0; i < len(entries); {
		k := i
		for k < len(entries) && entries[k].value == entries[i].value {
			k++
		}
		z := chance.NormalQuantile((float64(i+k) / 2) / float64(len(entries)+1))
		if i+k == 0 || len(entries) < 2 {
			return 0
		}
		for ; i < k; i++ {
			normal[entries[i].index] = z
		}
	}
	byGroup := map[int][]float64{}
	groups := 0
	squares := 0.0
	for i := range all {
		byGroup[all[i].group] = append(byGroup[all[i].group], normal[i])
		groups = max(groups, all[i].group+1)
		squares += float64(normal[i] * normal[i])
	}
	products, pairs := 0.0, 0.0
	for g := range groups {
		list := byGroup[g]
		for i, a := range list {
			for _, b := range list[:i] {
				products += float64(a * b)
				pairs++
			}
		}
	}
	if pairs == 0 || squares == 0 {
		return 0
	}
	return max(0, min(products/pairs/(squares/float64(len(all))), 0.98))
}
