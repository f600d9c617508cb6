package fit

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/portable"
	"github.com/spotter-dev/spotter/scenarios/chance"
	"github.com/spotter-dev/spotter/scenarios/weather"
)

// paces are the paces of the levels of a fitted law, in hours: from that of a
// few probes to that of a few days, beyond which recordings of weeks cannot
// tell one from another.
var paces = [...]float64{0.25, 1, 4, 16, 100}

// commonFrom is the first pace with a part that zones share: what comes and
// goes within minutes is a matter of single zones.
const commonFrom = 1

// A point is a law in the coordinates of the search: the logarithms of the
// variances of all but the first pace, relative to it, and the logit of the
// share of what zones have in common.
type point [len(paces)]float64

// start is where the search starts, with all paces alike. A weak penalty holds the search
// near it, so that parameters that a recording does not determine stay there.
var start point

// law returns the variances at a point.
func (x *point) law() (common, own []float64) {
	n := len(paces)
	weights, sum := make([]float64, n), 1.0
	weights[0] = 1
	for i := 1; i < n; i++ {
		weights[i] = portable.Exp(max(-6, min(6, x[i-1])))
		sum += weights[i]
	}
	shared := 1 / (1 + portable.Exp(-max(-8, min(8, x[n-1]))))
	common, own = make([]float64, n), make([]float64, n)
	for i, w := range weights {
		w /= sum
		if i >= commonFrom {
			common[i] = float64(w * shared)
		}
		own[i] = w - common[i]
	}
	return common, own
}

// A bench holds levels that were drawn once, as probes see them, so that laws
// can be tried on the same draws and differ by the laws only.
type bench struct {
	probing
	unrest float64
	means  []float64   // of zones
	events [][]redrawn // by zone, ascending by probe
}

// A redrawn is a level that is drawn again, or the next value of the season, before a probe.
type redrawn struct {
	probe int32
	level uint8 // its place among the weights
	value float32
}

// The places among the weights: the levels of the region, those of the zone, and
// the season.
const (
	ownLevel    = len(paces)
	seasonLevel = 2 * len(paces)
)

// benchHours is how many hours a bench holds, over all of its zones, and
// benchDays how many days it lasts at most.
const (
	benchHours = 60_000
	benchDays  = 1000
)

// newBench draws the levels for zones of these mean slacks under a law of which
// the season only is looked at.
func newBench(l *weather.Law, region string, begin, gap policy.Time, means []float64) *bench {
	span := min(benchHours/policy.Time(len(means))*hourLong, benchDays*day)
	b := &bench{probing: probing{begin: begin, gap: gap, probes: int32(span / gap)}, unrest: l.Unrest, means: means}
	clock := weather.NewClock(benchKey("clock", 0, 0), l.Unrest, begin)
	var shared []redrawn
	for i, pace := range paces {
		if i >= commonFrom {
			shared = b.redraws(shared, benchKey("common", 0, i), pace, clock, i)
		}
	}
	for t := begin; t < begin+span; t += hourLong {
		at := int32((t - begin + gap - 1) / gap)
		shared = append(shared, redrawn{at, uint8(seasonLevel), float32(l.Offset(t, region))})
	}
	for z := range means {
		events := slices.Clone(shared)
		for i, pace := range paces {
			events = b.redraws(events, benchKey("own", z, i), pace, clock, ownLevel+i)
		}
		slices.SortStableFunc(events, func(a, b redrawn) int { return cmp.Compare(a.probe, b.probe) })
		b.events = append(b.events, events)
		b.zones = append(b.zones, nil)
	}
	return b
}

// benchKey returns the key of a level of the bench, the same in every fit.
func benchKey(part string, zone, pace int) chance.Key {
	return chance.New(1, "availability fit "+part, strconv.Itoa(zone)).At1(uint64(pace))
}

// redraws appends what probes see of a level.
func (b *bench) redraws(to []redrawn, key chance.Key, pace float64, clock *weather.Clock, place int) []redrawn {
	level := weather.NewLevel(key, pace, clock, b.begin)
	for at := int32(0); at < b.probes; level.Next() {
		to = append(to, redrawn{at, uint8(place), float32(level.Value)})
		at = int32((level.Until - b.begin + b.gap - 1) / b.gap)
	}
	return to
}

// try returns the behaviour at a point within the first probes.
func (b *bench) try(x *point, probes int32) behaviour {
	common, own := x.law()
	var weights [seasonLevel + 1]float64
	for i := range paces {
		weights[i], weights[ownLevel+i] = math.Sqrt(common[i]), math.Sqrt(own[i])
	}
	weights[seasonLevel] = 1
	for z, mean := range b.means {
		b.zones[z] = runs(b.zones[z][:0], b.events[z], weights, mean, probes)
	}
	p := b.probing
	p.probes = probes
	return p.behaviour()
}

// runs appends what probes find of a zone.
func runs(to []run, events []redrawn, weights [seasonLevel + 1]float64, mean float64, probes int32) []run {
	var values [seasonLevel + 1]float64
	slack, at, found := mean, int32(0), int8(-1)
	for _, e := range events {
		if e.probe != at { // all that the probe at sees is known
			if up := sold(slack); up != found {
				to = append(to, run{at, up})
				found = up
			}
			if at = e.probe; at >= probes {
				return to
			}
		}
		value := float64(weights[e.level] * float64(e.value))
		slack += value - values[e.level]
		values[e.level] = value
	}
	if up := sold(slack); up != found {
		to = append(to, run{at, up})
	}
	return to
}

// sold returns what a probe finds at this slack.
func sold(slack float64) int8 {
	if slack > 0 {
		return 1
	}
	return 0
}

// The figures of a search. They are counts, so that a fit is the same on every
// machine.
const (
	// searchRough rounds with a third of the bench are gone for every unrest,
	// and searchFine with the whole of it for the best.
	searchRough = 9
	searchFine  = 8

	// searchStep is the first step along a coordinate; a step that brought
	// something is lengthened and one that brought nothing shortened.
	searchStep = 1.6
	lengthen   = 1.5
	shorten    = 0.5

	// holdBack is the weight of the distance from the start.
	holdBack = 0.02
)

// A search looks for the point whose behaviour is nearest to the wanted one: it
// tries a step each way along one coordinate after the other and keeps what is
// better.
type search struct {
	want  *behaviour
	best  point
	found behaviour
	least float64
	steps point
}

// run searches for the given number of rounds, with steps of the length step at first, on
// the first probes of a bench.
func (s *search) run(b *bench, rounds int, step float64, probes int32) {
	for i := range s.steps {
		s.steps[i] = step
	}
	s.found = b.try(&s.best, probes)
	s.least = distance(s.want, &s.found) + s.best.held()
	for range rounds {
		for i := range s.best {
			s.along(b, i, probes)
		}
	}
}

// along tries a step along one coordinate.
func (s *search) along(b *bench, i int, probes int32) {
	for range 2 {
		x := s.best
		x[i] += s.steps[i]
		got := b.try(&x, probes)
		if d := distance(s.want, &got) + x.held(); d < s.least {
			s.best, s.found, s.least = x, got, d
			s.steps[i] *= lengthen
			return
		}
		s.steps[i] = -s.steps[i]
	}
	s.steps[i] *= shorten
}

// unrests are those that are tried.
var unrests = [...]float64{0, 0.6, 1.2}

// fitLaw finds the unrest and the variances of a law whose season is known.
func fitLaw(l *weather.Law, region string, seen *probing, want *behaviour, means []float64) behaviour {
	var best *search
	var bench *bench
	for _, unrest := range unrests {
		l.Unrest = unrest
		b := newBench(l, region, seen.begin, seen.gap, means)
		s := &search{want: want, best: start}
		s.run(b, searchRough, searchStep, b.probes/3)
		if best == nil || s.least < best.least {
			best, bench = s, b
		}
	}
	best.run(bench, searchFine, searchStep/4, bench.probes)
	l.Unrest = bench.unrest
	l.Common, l.Own = best.best.law()
	return best.found
}

// held returns the cost of being far from the start.
func (x *point) held() float64 {
	sum := 0.0
	for i := range x {
		away := x[i] - start[i]
		sum += float64(away * away)
	}
	return holdBack * sum
}

// distance returns how far a behaviour is from the wanted one, in squares of
// what would be tolerable.
func distance(want, got *behaviour) float64 {
	d := agesDistance(&want.ups, &got.ups) + agesDistance(&want.downs, &got.downs)/2
	if want.pairs > 0 {
		away := (want.alike - got.alike) / 0.05
		d += float64(away * away)
		away = portable.Log((want.noneUp+0.003)/(got.noneUp+0.003)) / 0.12
		d += float64(away * away)
	}
	return d
}

// sharesDistance compares the shares of time of the zones.
func sharesDistance(want, got *behaviour) float64 {
	d := 0.0
	for z := range want.shares {
		away := (want.shares[z] - got.shares[z]) / 0.05
		d += float64(away*away) / float64(len(want.shares))
	}
	return d
}

// agesDistance compares the hazards, by how well the recorded ones are known.
func agesDistance(want, got *ages) float64 {
	d := 0.0
	for b := range ageBuckets {
		if want.hours[b] <= 0 {
			continue
		}
		// Half an end more on both sides keeps an empty bucket from having a
		// hazard of 0, which no law has.
		w := (want.ends[b] + 0.5) / (want.hours[b] + 0.5)
		g := (got.ends[b] + 0.5) / (got.hours[b] + 0.5)
		away := portable.Log(g / w)
		variance := 1/(want.ends[b]+0.5) + 0.01
		if b == 0 {
			variance += 0.03 // the probes see little of the shortest intervals
		}
		if b == ageBuckets-1 {
			variance /= 3 // the longest intervals are few and fill most of the time
		}
		square := float64(away*away) / variance
		d += square + float64(square*square)/8
	}
	return d
}
