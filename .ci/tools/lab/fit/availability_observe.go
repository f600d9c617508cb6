package fit

import (
	"math"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// ageBuckets is the number of buckets of an interval's age, of which ageEnds are
// the ends in hours.
const ageBuckets = 7

var ageEnds = [ageBuckets]float64{0.5, 1, 2, 4, 8, 24, math.Inf(1)}

// A run is a number of probes in a row that found the same: up is 1 for
// available, 0 for not and −1 where nothing is known. It lasts from probe from
// to the next run.
type run struct {
	from int32
	up   int8
}

// A probing is what probes at regular instants found in the zones of one
// region: of each zone the runs, of which neighbours differ.
type probing struct {
	begin, gap policy.Time
	probes     int32
	zones      [][]run
}

// A behaviour holds the statistics of a region's availability that a fit must match.
type behaviour struct {
	shares []float64 // of time available, per zone

	// ups and downs are of intervals by their age.
	ups, downs ages

	// alike is the mean over pairs of zones of the correlation of their states,
	// and noneUp the share of time in which no zone is available.
	alike, noneUp float64
	pairs         int
}

// ages count the ends of intervals by the age at which they end, and the hours
// that intervals spent in each bucket of age. Intervals that had begun before the
// first probe have no age and do not count.
type ages struct{ ends, hours [ageBuckets]float64 }

// hazard returns the ends per hour in a bucket.
func (a *ages) hazard(b int) float64 { return a.ends[b] / max(a.hours[b], 1e-9) }

// total returns the number of ends and of hours.
func (a *ages) total() (ends, hours float64) {
	for b := range ageBuckets {
		ends += a.ends[b]
		hours += a.hours[b]
	}
	return ends, hours
}

// add counts an interval of this length, which ended or was cut off.
func (a *ages) add(length float64, ended bool) {
	from := 0.0
	for b, end := range ageEnds {
		if length <= end {
			a.hours[b] += length - from
			if ended {
				a.ends[b]++
			}
			return
		}
		a.hours[b] += end - from
		from = end
	}
}

// probe samples series at regular instants, from the latest of their starts to end.
func probe(series []*trace.Series, end, gap policy.Time) probing {
	p := probing{gap: gap}
	for _, s := range series {
		p.begin = max(p.begin, s.At[0])
	}
	p.probes = int32(max(0, (end-p.begin)/gap+1))
	for _, s := range series {
		var runs []run
		for i, t := range s.At {
			if t > end {
				break
			}
			// The first probe that sees the row.
			at := int32(max(0, (t-p.begin+gap-1)/gap))
			runs = appendRun(runs, at, s.Available[i])
		}
		p.zones = append(p.zones, runs)
	}
	return p
}

// appendRun adds what is found from a probe on, which is not before the last.
func appendRun(runs []run, from int32, up int8) []run {
	if n := len(runs); n > 0 && runs[n-1].from == from {
		runs = runs[:n-1] // changed again before it was seen
	}
	if n := len(runs); n > 0 && runs[n-1].up == up {
		return runs
	}
	return append(runs, run{from, up})
}

// behaviour measures what was found.
func (p *probing) behaviour() behaviour {
	b := behaviour{shares: make([]float64, len(p.zones))}
	for z, runs := range p.zones {
		b.shares[z] = p.intervals(runs, &b.ups, &b.downs)
	}
	b.noneUp = p.noneUp()
	sum := 0.0
	for i, x := range p.zones {
		for _, y := range p.zones[i+1:] {
			if r, ok := p.correlation(x, y); ok {
				sum += r
				b.pairs++
			}
		}
	}
	b.alike = sum / math.Max(1, float64(b.pairs))
	return b
}

// until returns the probe after the last of a run.
func (p *probing) until(runs []run, i int) int32 {
	if i+1 < len(runs) {
		return min(runs[i+1].from, p.probes)
	}
	return p.probes
}

// intervals counts the intervals of one zone and returns its share of time up.
func (p *probing) intervals(runs []run, ups, downs *ages) float64 {
	hours := float64(p.gap) / float64(hourLong)
	up, known := 0, 0
	for i, r := range runs {
		n := int(p.until(runs, i) - r.from)
		if r.up < 0 || n <= 0 {
			continue
		}
		known += n
		up += n * int(r.up)
		if i == 0 || runs[i-1].up < 0 {
			continue // it has no age
		}
		ended := i+1 < len(runs) && runs[i+1].up >= 0
		if length := float64(float64(n) * hours); r.up == 1 {
			ups.add(length, ended)
		} else {
			downs.add(length, ended)
		}
	}
	return float64(up) / math.Max(1, float64(known))
}

// noneUp returns the share of probes that found no zone up, of those that know
// all zones.
func (p *probing) noneUp() float64 {
	all := []run{{0, 0}}
	var next []run
	for _, zone := range p.zones {
		next = p.join(next[:0], all, zone)
		all, next = next, all
	}
	none, known := int32(0), int32(0)
	for i, r := range all {
		if n := p.until(all, i) - r.from; r.up >= 0 && n > 0 {
			known += n
			none += n * int32(1-r.up)
		}
	}
	return float64(none) / math.Max(1, float64(known))
}

// join appends the runs in which either of two is up: unknown where one is.
func (p *probing) join(to, x, y []run) []run {
	for i, j, t := 0, 0, int32(0); t < p.probes; {
		up := max(x[i].up, y[j].up)
		if x[i].up < 0 || y[j].up < 0 {
			up = -1
		}
		if n := len(to); n == 0 || to[n-1].up != up {
			to = append(to, run{t, up})
		}
		endX, endY := p.until(x, i), p.until(y, j)
		t = min(endX, endY)
		if endX == t {
			i++
		}
		if endY == t {
			j++
		}
	}
	return to
}

// correlation returns that of the states of two zones where both are known;
// false if one never changes there.
func (p *probing) correlation(x, y []run) (float64, bool) {
	var n, sx, sy, both float64
	for i, j, t := 0, 0, int32(0); t < p.probes; {
		a, b := x[i].up, y[j].up
		endX, endY := p.until(x, i), p.until(y, j)
		next := min(endX, endY)
		if d := float64(next - t); a >= 0 && b >= 0 {
			n += d
			sx += float64(d * float64(a))
			sy += float64(d * float64(b))
			both += float64(d * float64(a&b))
		}
		if endX == next {
			i++
		}
		if endY == next {
			j++
		}
		t = next
	}
	if sx == 0 || sy == 0 || sx == n || sy == n {
		return 0, false
	}
	mx, my := sx/n, sy/n
	deviations := math.Sqrt(float64(mx*(1-mx)) * float64(my*(1-my)))
	return (both/n - float64(mx*my)) / deviations, true
}

// probeGap returns the usual gap between the probes of series: the median of
// those that rows name, 0 if none does.
func probeGap(series []*trace.Series) policy.Time {
	var gaps []int32
	for _, s := range series {
		for _, g := range s.ProbeGap {
			if g > 0 {
				gaps = append(gaps, g)
			}
		}
	}
	if len(gaps) == 0 {
		return 0
	}
	slices.Sort(gaps)
	return policy.Time(gaps[len(gaps)/2]) * 1000
}
