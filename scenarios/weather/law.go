package weather

import (
	"fmt"
	"math"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/portable"
	"github.com/spotter-dev/spotter/scenarios/chance"
)

// A Law is a stochastic model of the availability of a scarce type in the zones of one region.
//
// Every zone has a slack, which is its spare capacity. While the slack is above 0, the type is
// available. When it falls to 0 or below, nodes are taken and launches refused until it rises
// again. The slack is the sum of the zone's mean, an offset by hour and weekday, and levels. Levels
// are random numbers that are each redrawn at their own pace, some every few minutes and some every
// few days. An outage that has lasted long is therefore likely to continue, as in the recordings,
// although no part of the model depends on its age. For each pace, one level belongs to the region
// and is shared by all its zones, and one belongs to the zone alone. The shared levels make zones
// fail together.
type Law struct {
	// Paces are the mean times in hours after which levels are redrawn.
	Paces []float64

	// Common and Own are, for each pace, the variances of the region's level and of the zone's own
	// level. All variances add up to 1.
	Common, Own []float64

	// Unrest controls how unevenly the quicker levels, those with a pace below [UnrestPace], are
	// redrawn. They follow a clock of the region that runs at a varying rate. A rate applies for
	// UnrestPace hours on average, has mean 1, and its logarithm has the standard deviation Unrest.
	// Quiet days therefore alternate with days of frequent outages, while the shares of time do not
	// change.
	Unrest float64

	// Mean and Spread are the mean and the standard deviation of the zones' mean slacks. A zone
	// with mean slack m is available with a probability of about Φ(m).
	Mean, Spread float64

	// Width is the slack that corresponds to [DepthMax] nodes in the median zone, and WidthSpread
	// the standard deviation of its logarithm between zones. If the width is small, a zone usually
	// has either no nodes or all; if it is large, it often has some. At 0, the law does not model
	// depth.
	Width, WidthSpread float64

	// Hour and Weekday (Sunday first) are offsets of the slack by the local time of the region.
	// Each has mean 0.
	Hour    [24]float64
	Weekday [7]float64
}

// An Outage is an interval in which a zone has no capacity.
type Outage struct {
	// From is its first instant, Until the first instant after it.
	From, Until policy.Time
}

// A Place is a zone, or a group of markets in it, for which a law is drawn.
type Place struct {
	// Region determines the local time. Common is the key of the levels that all places of the
	// region share, Own the key of the levels of this place.
	Region      string
	Common, Own chance.Key

	// Mean is the mean slack of the place, and Width the slack that corresponds to DepthMax nodes
	// in it.
	Mean, Width float64

	// Opposed reports that the common levels of the region have the opposite sign in this place: it
	// has capacity when the others lack it.
	Opposed bool
}

// evenDraws is the number of intervals of equal probability into which the values of a level are
// divided. Of evenDraws successive draws, each comes from a different interval. A level thus covers
// its distribution after that number of draws, and a few weeks are representative of a law.
const evenDraws = 8

// A Level is a standard normal number that is redrawn after random times.
type Level struct {
	// Value applies before Until.
	Value float64
	Until policy.Time

	key   chance.Key
	pace  float64
	clock *Clock
	ticks policy.Time // reading of the clock at Until
	piece int         // index of the piece of the clock that contains ticks
	n     uint64
	order [evenDraws]uint8
}

// The draws for a level.
const (
	drawPace = iota
	drawOrder
	drawValue
)

// NewLevel returns the level with this key at from. Its pace is in hours of the clock, which starts
// at from; a nil clock means real time.
func NewLevel(key chance.Key, pace float64, clock *Clock, from policy.Time) Level {
	l := Level{key: key, pace: pace, clock: clock, Until: from}
	if pace >= UnrestPace {
		l.clock = nil
	}
	l.Next()
	return l
}

// Next redraws the level at Until.
func (l *Level) Next() {
	k := l.key.At1(l.n)
	if l.n%evenDraws == 0 {
		l.shuffle(l.key.At2(l.n, drawOrder))
	}
	// The interval determines the first bits of the draw.
	part := chance.Key(l.order[l.n%evenDraws]) << 61
	l.Value = (k.At1(drawValue)>>3 | part).Normal()
	wait := 1 + milliseconds(float64(l.pace*k.At1(drawPace).Exp1()))
	l.n++
	if l.clock == nil {
		l.Until += wait
		return
	}
	l.ticks += wait
	l.Until, l.piece = l.clock.time(l.ticks, l.piece)
}

// UnrestPace is the mean time in hours for which the rate of a [Clock] applies. Longer-lasting
// unrest is modelled by slow levels.
const UnrestPace = 32

// A Clock runs alternately faster and slower than time; see [Law.Unrest].
type Clock struct {
	unrest float64
	rate   Level

	// ticks[i] is the reading of the clock at times[i], in milliseconds. From there on, it runs at
	// rates[i].
	times, ticks []policy.Time
	rates        []float64
}

// NewClock returns the clock with this key, whose reading is 0 at from. It returns nil, for a clock
// that runs evenly, if unrest is 0.
func NewClock(key chance.Key, unrest float64, from policy.Time) *Clock {
	if unrest <= 0 {
		return nil
	}
	c := &Clock{unrest: unrest, rate: NewLevel(key, UnrestPace, nil, from)}
	c.add(from, 0)
	return c
}

func (c *Clock) add(t, ticks policy.Time) {
	c.times, c.ticks = append(c.times, t), append(c.ticks, ticks)
	exponent := float64(c.unrest*c.rate.Value) - float64(float64(c.unrest*c.unrest)/2)
	c.rates = append(c.rates, portable.Exp(exponent))
}

// time returns the time at which the clock reaches the given ticks, and the index of the piece that
// contains it, which is at least piece.
func (c *Clock) time(ticks policy.Time, piece int) (policy.Time, int) {
	for {
		last := len(c.times) - 1
		for piece < last && c.ticks[piece+1] <= ticks {
			piece++
		}
		span := float64(float64(c.rate.Until-c.times[last]) * c.rates[last])
		shown := c.ticks[last] + policy.Time(span)
		if piece < last || shown > ticks {
			return c.times[piece] + policy.Time(float64(ticks-c.ticks[piece])/c.rates[piece]), piece
		}
		t := c.rate.Until
		c.rate.Next()
		c.add(t, shown)
	}
}

// shuffle puts the intervals in a random order.
func (l *Level) shuffle(k chance.Key) {
	for i := range l.order {
		j := k.At1(uint64(i)).IntN(i + 1)
		l.order[i] = l.order[j]
		l.order[j] = uint8(i)
	}
}

// A slack is the slack of a place over time.
type slack struct {
	law    *Law
	levels []Level
	weight []float64
	mean   float64
	ahead  int64 // hours by which local time is ahead of UTC

	// season is the offset for the hour that starts at hourOf.
	season float64
	hourOf policy.Time
}

// slackAt returns the slack of a place, starting at from.
func (l *Law) slackAt(p Place, from policy.Time) slack {
	s := slack{law: l, mean: p.Mean, ahead: utcOffset(p.Region)}
	clock := NewClock(p.Common.At1(clockKey), l.Unrest, from)
	sign := 1.0
	if p.Opposed {
		sign = -1
	}
	for _, part := range []struct {
		variances []float64
		key       chance.Key
		sign      float64
	}{{l.Common, p.Common, sign}, {l.Own, p.Own, 1}} {
		for i, v := range part.variances {
			if v > 0 {
				s.levels = append(s.levels, NewLevel(part.key.At1(uint64(i)), l.Paces[i], clock, from))
				s.weight = append(s.weight, float64(part.sign*math.Sqrt(v)))
			}
		}
	}
	return s
}

// clockKey is the ordinal of the key of a region's clock, next to those of its levels.
const clockKey = 1 << 16

// scarceDraws is the ordinal of the keys of draws for the outages of a place.
const scarceDraws = 1 << 17

// next returns the level that is redrawn first.
func (s *slack) next() *Level {
	first := &s.levels[0]
	for i := range s.levels {
		if s.levels[i].Until < first.Until {
			first = &s.levels[i]
		}
	}
	return first
}

// at returns the slack at t for the present levels.
func (s *slack) at(t policy.Time) float64 {
	if t-s.hourOf >= hour {
		s.season, s.hourOf = s.law.offset(t, s.ahead), t-t%hour
	}
	x := s.mean + s.season
	for i := range s.levels {
		x += float64(s.weight[i] * s.levels[i].Value)
	}
	return x
}

// Offset returns the offset of slacks at t for the local time of a region.
func (l *Law) Offset(t policy.Time, region string) float64 { return l.offset(t, utcOffset(region)) }

func (l *Law) offset(t policy.Time, ahead int64) float64 {
	hourOfDay, weekday := localTime(t, ahead)
	return l.Hour[hourOfDay] + l.Weekday[weekday]
}

// Outages appends the outages of a place that overlap [from, to). The last one may end after to.
// The offset of the local time is updated only when a level is redrawn, which is often.
func (l *Law) Outages(outages []Outage, p Place, from, to policy.Time) []Outage {
	s := l.slackAt(p, from)
	down, since := false, from
	for t := from; ; {
		if low := s.at(t) <= 0; low != down {
			if down {
				outages = append(outages, Outage{since, t})
			}
			down, since = low, t
		}
		if t >= to && !down || t >= to+spanOf(30*24) {
			break
		}
		level := s.next()
		t = level.Until
		if t >= to && !down {
			break
		}
		level.Next()
	}
	if down {
		outages = append(outages, Outage{since, never})
	}
	return outages
}

// spanOf converts hours to milliseconds.
func spanOf(hours int64) policy.Time { return policy.Time(hours) * hour }

// Risks returns the hourly rate at which outages of a place start, at each of the times at, which
// must be ascending and not before from. The levels are drawn from from on. The rate is 0 during an
// outage. It is the sum over levels of the rate of redraws times the probability that a redraw
// makes the slack negative, given the other levels. The varying rate of the clock is ignored.
func (l *Law) Risks(p Place, from policy.Time, at []policy.Time) []float64 {
	s := l.slackAt(p, from)
	risks := make([]float64, len(at))
	for i, t := range at {
		for level := s.next(); level.Until <= t; level = s.next() {
			level.Next()
		}
		risks[i] = s.risk(t)
	}
	return risks
}

// risk returns the rate at t.
func (s *slack) risk(t policy.Time) float64 {
	x := s.at(t)
	if x <= 0 {
		return 0
	}
	rate := 0.0
	for i := range s.levels {
		rest := x - float64(s.weight[i]*s.levels[i].Value)
		rate += chance.NormalCDF(-rest/math.Abs(s.weight[i])) / s.levels[i].pace
	}
	return rate
}

// Rate returns the mean number of outages per hour that start in a place with this mean slack. It
// is the sum over levels of the rate of redraws times the probability that the slack is above 0
// before a redraw and not after it. A ninth is added, because two successive draws seldom come from
// the same interval of evenDraws. The hour and the weekday are ignored.
func (l *Law) Rate(mean float64) float64 {
	rate := 0.0
	for i, pace := range l.Paces {
		for _, v := range []float64{l.Common[i], l.Own[i]} {
			rate += upThenDown(mean, v) / pace
		}
	}
	return rate * 10 / 9
}

// upThenDown returns the probability that mean + z is above 0, and is no longer so after a part of
// z with variance v is redrawn, where z has variance 1. It is the mean of Φ(x)·(1 − Φ(x)) over the
// part of z that is not redrawn.
func upThenDown(mean, v float64) float64 {
	if v <= 0 {
		return 0
	}
	const steps = 64
	stay, fresh := math.Sqrt(max(0, 1-v)), math.Sqrt(v)
	sum := 0.0
	for i := range steps {
		z := chance.NormalQuantile((float64(i) + 0.5) / steps)
		up := chance.NormalCDF((mean + float64(stay*z)) / fresh)
		sum += float64(up * (1 - up))
	}
	return sum / steps
}

// validate returns an error that names the first field out of range.
func (l *Law) validate() error {
	if len(l.Paces) == 0 || len(l.Common) != len(l.Paces) || len(l.Own) != len(l.Paces) {
		return fmt.Errorf("weather: Law has %d Paces, %d Common and %d Own, must have as many of each and at least one",
			len(l.Paces), len(l.Common), len(l.Own))
	}
	sum := 0.0
	for i, pace := range l.Paces {
		if !within(pace, 0.01, 1e4) {
			return fmt.Errorf("weather: Law.Paces[%d] is %v, must be from 0.01 to 10000", i, pace)
		}
		if !within(l.Common[i], 0, 1) || !within(l.Own[i], 0, 1) {
			return fmt.Errorf("weather: Law.Common[%d] and Law.Own[%d] are %v and %v, must be from 0 to 1", i, i, l.Common[i],
				l.Own[i])
		}
		sum += l.Common[i] + l.Own[i]
	}
	if !within(sum, 0.99, 1.01) {
		return fmt.Errorf("weather: Law.Common and Law.Own add up to %v, must to 1", sum)
	}
	if !within(l.Unrest, 0, 3) {
		return fmt.Errorf("weather: Law.Unrest is %v, must be from 0 to 3", l.Unrest)
	}
	if !within(l.Mean, -5, 5) || !within(l.Spread, 0, 5) {
		return fmt.Errorf("weather: Law.Mean and Law.Spread are %v and %v, must be from -5 and 0 to 5", l.Mean, l.Spread)
	}
	if !within(l.Width, 0, 20) || !within(l.WidthSpread, 0, 3) {
		return fmt.Errorf("weather: Law.Width and Law.WidthSpread are %v and %v, must be from 0 to 20 and 3", l.Width,
			l.WidthSpread)
	}
	for _, x := range append(l.Hour[:], l.Weekday[:]...) {
		if !within(x, -5, 5) {
			return fmt.Errorf("weather: Law.Hour or Law.Weekday holds %v, must be from -5 to 5", x)
		}
	}
	return nil
}
