package generate

import (
	"math"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/portable"
	"github.com/spotter-dev/spotter/scenarios/chance"
)

// keys are the random streams of one market. Each draw has its own key, so that an additional draw
// in one stream does not affect the others.
type keys struct {
	begin, tick, skip, lasting, passing, rest, spike, height chance.Key
}

func newKeys(seed uint64, name string) keys {
	key := func(stream string) chance.Key { return chance.New(seed, "generate "+stream, name) }
	return keys{
		begin: key("begin"), tick: key("tick"), lasting: key("lasting"), passing: key("passing"),
		rest: key("rest"), skip: key("skip"), spike: key("spike"), height: key("height"),
	}
}

// A shared is the part of the process that all zones of a type have in common.
type shared struct {
	from policy.Time
	cell policy.Time
	keys keys

	// speed is the standard normal speed of the price in each time cell, starting with cell first.
	// If jointly is false, the zones have no speed in common.
	jointly bool
	speed   []float64
	first   int
	jitter  float64
	lasting memory

	dates []listDate // for a list
}

// walkCell is the length of a time cell of a walk, which is about the length of a tick.
const walkCell = 6 * hour

func newShared(c *Config, name string) *shared {
	s := &shared{from: c.From, cell: walkCell, keys: newKeys(c.Seed, name)}
	l := &c.Law
	if l.Kind == Auction {
		s.cell = auctionCell
	}
	if l.Kind == List {
		s.dates = c.dates()
	}
	momentum := 0.0
	if l.Kind == Walk {
		momentum, s.jitter = l.Walk.Momentum, l.Walk.Jitter
	}
	s.jointly, s.lasting = l.Together > 0 && (l.Kind == Walk || l.Kind == Auction), newMemory(momentum)
	return s
}

// extend draws the cells up to until and drops those before from. Neither time may be before that
// of the previous call.
func (s *shared) extend(from, until policy.Time) {
	if !s.jointly {
		return
	}
	past := min(int((from-s.from)/s.cell)-s.first, len(s.speed))
	s.speed = slices.Delete(s.speed, 0, past)
	s.first += past
	for i := s.first + len(s.speed); i <= int((until-s.from)/s.cell); i++ {
		k := uint64(i)
		s.speed = append(s.speed, mix(s.jitter, s.keys.passing.At1(k).Normal(), s.lasting.next(s.keys.lasting.At1(k))))
	}
}

// at returns the common speed in the cell of time t.
func (s *shared) at(t policy.Time) float64 {
	if !s.jointly {
		return 0
	}
	return s.speed[int((t-s.from)/s.cell)-s.first]
}

// A rhythm determines when a market moves: in one interval of each cycle, at a random place in the
// cycle.
type rhythm struct {
	own, common chance.Key
	together    float64
	from, cycle float64 // in milliseconds; the first cycle starts before the trace
	active      float64 // share of a cycle
	number      float64 // index of the current cycle
	begin, end  float64 // bounds of its interval
	length      float64
}

func (p *path) newRhythm(s *shared, active float64) rhythm {
	cycle := p.c.Law.Walk.Cycle * float64(day)
	return rhythm{
		own: p.keys.rest, common: s.keys.rest, together: p.c.Law.Together,
		// Cycles of different types have different offsets.
		from:  float64(p.c.From) - float64(cycle*s.keys.begin.Float()),
		cycle: cycle, active: active, length: float64(active * cycle), number: -1,
	}
}

// moves reports whether t is in an interval in which the market moves. Times must ascend.
func (r *rhythm) moves(t policy.Time) bool {
	if r.active >= 1 {
		return true
	}
	since := float64(t) - r.from
	if n := math.Floor(since / r.cycle); n != r.number {
		r.number = n
		k := uint64(n)
		place := r.common.At2(k, 0)
		if r.own.At2(k, 1).Float() >= r.together {
			place = r.own.At2(k, 0)
		}
		r.begin = float64(n*r.cycle) + float64((r.cycle-r.length)*place.Float())
		r.end = r.begin + r.length
	}
	return since >= r.begin && since < r.end
}

// A memory is a standard normal autoregressive process of order 1.
type memory struct {
	value, kept, fresh float64
	begun              bool
}

func newMemory(kept float64) memory {
	return memory{kept: kept, fresh: math.Sqrt(1 - float64(kept*kept))}
}

func (m *memory) next(k chance.Key) float64 {
	z := k.Normal()
	if !m.begun {
		m.begun, m.value = true, z
		return z
	}
	m.value = float64(m.kept*m.value) + float64(m.fresh*z)
	return m.value
}

// mix returns a standard normal number in which a has the share p of the variance, if a and b are
// independent and standard normal.
func mix(p, a, b float64) float64 {
	return float64(math.Sqrt(p)*a) + float64(math.Sqrt(1-p)*b)
}

// A tail transforms normal numbers to steps.
type tail struct{ cubic, flat, scale float64 }

func newTail(t float64) tail {
	if t <= 0 {
		// The variance of (1−f)z + f·sign(z). E|z| is the square root of 2/π.
		const meanSize = 0.7978845608028654
		f := -t
		v := float64((1-f)*(1-f)) + float64(f*f) + float64(2*meanSize*f*(1-f))
		return tail{flat: f, scale: 1 / math.Sqrt(v)}
	}
	return tail{cubic: t, scale: 1 / math.Sqrt(1+float64(6*t)+float64(15*t*t))}
}

// of returns a step with variance 1.
func (t *tail) of(z float64) float64 {
	if t.cubic > 0 {
		return float64(t.scale * z * (1 + float64(t.cubic*z*z)))
	}
	sign := 1.0
	if z < 0 {
		sign = -1
	}
	return float64(t.scale * (float64((1-t.flat)*z) + float64(t.flat*sign)))
}

// walk returns the function that draws a path. At each tick of its clock the market either rests or
// makes a step. Part of a step carries over to the next one, and part is common to all zones of the
// type.
func (p *path) walk(s *shared) drawer {
	l, w := &p.c.Law, p.c.Law.Walk
	p.note(p.c.From)
	tails := newTail(l.Tail)
	lasting, rhythm := newMemory(w.Momentum), p.newRhythm(s, p.pace())
	own, common := math.Sqrt(1-l.Together), math.Sqrt(l.Together)
	passes, lasts := math.Sqrt(w.Jitter), math.Sqrt(1-w.Jitter)
	width := w.TickMost - w.TickLeast
	// The trace starts in the middle of a tick.
	at := p.c.From + inHours(float64(w.TickMost*p.keys.tick.At2(0, 1).Float()))
	n := uint64(1)
	return func(until policy.Time) {
		for ; at < until; n++ {
			z := float64(passes*p.keys.passing.At1(n).Normal()) + float64(lasts*lasting.next(p.keys.lasting.At1(n)))
			if rhythm.moves(at) && !p.skips(s, n, at) {
				speed := s.at(at)
				step := float64(p.size * tails.of(float64(own*z)+float64(common*speed)))
				step = max(-l.StepMost, min(step, l.StepMost))
				p.x += step - float64(l.Pull*(p.x-p.level))
				p.x = max(p.least, min(p.x, p.most))
				p.follow(at)
			}
			at += inHours(w.TickLeast + float64(width*p.keys.tick.At1(n).Float()))
		}
	}
}

// skips reports whether the price remains unchanged at the n-th tick, which is at time t. Zones
// skip together as often as they move together.
func (p *path) skips(s *shared, n uint64, t policy.Time) bool {
	w := p.c.Law.Walk
	if w.Skip == 0 {
		return false
	}
	own := p.keys.skip.At1(n)
	if own.At1(1).Float() < p.c.Law.Together {
		own = s.keys.skip.At1(uint64((t - s.from) / s.cell))
	}
	return own.Float() < w.Skip
}

// pace returns the share of time in which the market has to move so that its price changes as often
// as its activity specifies. A step that is small compared with the unit of prices often causes no
// change, so a cheap market may move all the time and still change less often.
func (p *path) pace() float64 {
	w := p.c.Law.Walk
	ticks := 48 / (w.TickLeast + w.TickMost) * (1 - w.Skip)
	unit := float64(p.c.Law.Unit) / (float64(p.market.OnDemand) * portable.Exp(p.level))
	seen := seenShare(p.size, unit)
	if w.Hidden > 0 {
		seen = portable.Pow(seen, 1-w.Hidden)
	}
	return min(1, p.activity/(ticks*seen))
}

// seenShare returns the share of normal steps with standard deviation size that change a price.
// Unit is the unit of prices relative to the price. A step smaller than the unit changes the price
// with a probability equal to their ratio.
func seenShare(size, unit float64) float64 {
	r := unit / size
	if r < 1e-4 {
		return 1
	}
	const density = 0.3989422804014327 // of the standard normal distribution at 0
	below := float64(2*density*(1-portable.Exp(-float64(r*r)/2))) / r
	return below + float64(2*(1-chance.NormalCDF(r)))
}
