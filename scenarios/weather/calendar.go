package weather

import (
	"cmp"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/portable"
	"github.com/spotter-dev/spotter/scenarios/chance"
)

// calendars draws the reclaims and the false alarms of every slot of a market.
func (b *builder) calendars(mk *market) {
	w := b.w
	mk.first = int32(len(w.starts))
	reclaims, alarms, notices := b.calendar.At1(mk.hash), b.alarm.At1(mk.hash), b.notice.At1(mk.hash)
	reclaim := b.process(mk.state, mk.rate)
	alarm := b.process(mk.state, float64(b.p.falseAlarms(mk.rate)*b.p.RecommendedShare))
	shortages := w.shortages[mk.shortagesFrom:mk.shortagesUntil]
	bursts := b.alarmBursts(mk)
	window := w.cfg.takeWindow()
	for slot := range int(mk.slots) {
		from := len(w.events)
		w.starts = append(w.starts, int32(from))
		w.alarmStarts = append(w.alarmStarts, int32(len(w.alarms)))
		w.alarms = b.falseAlarms(w.alarms, &alarm, alarms.At1(uint64(slot)), bursts, mk, slot)
		b.scratch = reclaim.instants(b.scratch[:0], reclaims.At1(uint64(slot)))
		for _, t := range b.scratch {
			w.events = append(w.events, event{at: t, cause: CauseCalendar})
		}
		calendar := len(w.events)
		for i := range shortages {
			if at, taken := shortages[i].take(mk.hash, slot, window); taken && at >= w.cfg.From && at < b.end {
				w.events = append(w.events, event{at: at, cause: shortages[i].Cause, silent: shortages[i].silent})
			}
		}
		own := w.events[from:]
		if calendar < len(w.events) {
			slices.SortStableFunc(own, func(a, b event) int { return cmp.Compare(a.at, b.at) })
		}
		for i := range own {
			b.announce(&own[i], mk.lead, notices.At2(uint64(slot), uint64(own[i].at)))
			mk.taken = append(mk.taken, own[i].at)
		}
	}
	slices.Sort(mk.taken)
}

// falseAlarms returns the rate of reclaims that are recommended but do not occur, given the rate of
// those that occur.
func (p *Params) falseAlarms(reclaims float64) float64 {
	return reclaims * (1 - p.RecommendedPrecision) / p.RecommendedPrecision
}

// alarmBursts draws the shortages that the provider expects in a market but that do not occur. They
// have the same distribution of depth as actual shortages, so that several simultaneous
// recommendations are right as often as a single one. Recorded markets have none, since the
// frequency of their falls is not known in advance.
func (b *builder) alarmBursts(mk *market) []Shortage {
	key := b.alarmBurst.At1(mk.hash)
	process := b.process(mk.state, b.p.falseAlarms(mk.shortageRate/b.p.DepthMean()))
	bursts := b.bursts[:0]
	for i, at := range process.instants(nil, key) {
		k := key.At2(burstDraws, uint64(i))
		bursts = append(bursts, Shortage{From: at, Until: never, Depth: b.p.depth(k.At1(drawDepth)), key: k.At1(drawTakes)})
	}
	b.bursts = bursts
	return bursts
}

// falseAlarms appends the false alarms of one slot, ascending: single ones, drawn from the process
// with key, and those in bursts.
func (b *builder) falseAlarms(to []policy.Time, alone *process, key chance.Key, bursts []Shortage, mk *market,
	slot int) []policy.Time {
	from := len(to)
	to = alone.instants(to, key)
	for i := range bursts {
		at, taken := bursts[i].take(mk.hash, slot, b.w.cfg.takeWindow())
		k := bursts[i].key.At2(mk.hash, uint64(slot))
		if taken && k.At1(drawRecommendedShare).Float() < b.p.RecommendedShare {
			to = append(to, at-b.early(k.At1(drawEarly), announcedMax))
		}
	}
	if len(bursts) > 0 {
		slices.Sort(to[from:])
	}
	return to
}

// burstDraws is the ordinal of the draws of bursts of false alarms. The draws for each slot follow
// the two of [Shortage.take].
const (
	burstDraws = 1 << 32

	drawRecommendedShare = 2
	drawEarly            = 3
)

// early draws the time by which a recommendation precedes the notice of a reclaim; it is less than
// most.
func (b *builder) early(k chance.Key, most policy.Time) policy.Time {
	drawn := float64(k.Exp1() * float64(b.p.RecommendedLead.Milliseconds()))
	return policy.Time(min(drawn, float64(most-1)))
}

// A process generates events for the slots of one market, at a mean rate modulated by a rhythm.
type process struct {
	*rhythm
	rate       float64 // mean number of events per node-hour
	begin, end float64 // integral of the rhythm at the bounds of the drawn time

	// idle is the bound below which a slot's first draw means no event until the end. It avoids
	// computing a logarithm for most slots.
	idle float64
}

func (b *builder) process(r *rhythm, rate float64) process {
	p := process{rhythm: r, rate: rate}
	if r != nil && rate > 0 {
		p.begin, p.end = r.integral(b.w.cfg.From), r.integral(b.end)
		// The margin is far above the rounding of both sides.
		p.idle = float64(portable.Exp(-float64((p.end-p.begin)*rate)) * (1 - 1e-9))
	}
	return p
}

// instants appends the times of the events for the slot with this key: unit-exponential gaps,
// mapped through the inverse of the integrated rate. The n-th gap depends only on the key and n.
func (p *process) instants(to []policy.Time, key chance.Key) []policy.Time {
	if p.rhythm == nil || p.rate <= 0 || 1-key.At1(0).Float() < p.idle {
		return to
	}
	x := p.begin
	for n := uint64(0); ; n++ {
		x += key.At1(n).Exp1() / p.rate
		if x >= p.end {
			return to
		}
		to = append(to, p.inverse(x))
	}
}

// take returns the time at which a shortage takes a slot of a market, and whether it does. A
// shortage shorter than the window takes its slots before it ends.
func (s *Shortage) take(market uint64, slot int, window policy.Time) (at policy.Time, taken bool) {
	k := s.key.At2(market, uint64(slot))
	if k.At1(0).Float() >= s.Depth {
		return 0, false
	}
	return s.From + policy.Time(float64(k.At1(1).Float()*float64(min(window, s.Until-s.From)))), true
}

// takeWindow returns the time within which a shortage takes its slots.
func (c *Config) takeWindow() policy.Time { return policy.Time(c.Params.TakeWindow.Milliseconds()) }

// The draws for the announcements of a reclaim.
const (
	drawNotice = iota
	drawLate
	drawRecommended
	drawRecommendedLead
	drawOrderedLate
)

// announce draws the notice and the recommendation of a reclaim. Lead is the regular time from the
// notice to the reclaim.
func (b *builder) announce(e *event, lead policy.Time, key chance.Key) {
	if e.silent {
		return
	}
	p := b.p
	if key.At1(drawRecommended).Float() < p.RecommendedShare {
		e.recommended = int32(lead + b.early(key.At1(drawRecommendedLead), announcedMax-lead))
	}
	switch u := key.At1(drawNotice).Float(); {
	case u < p.NoticeLost:
		lead = 0
	case u < p.NoticeLost+p.NoticeLate:
		lead = policy.Time(float64(key.At1(drawLate).Float() * float64(lead)))
	}
	lead = b.w.cfg.Truth.LeadOf(lead)
	due := e.at - lead
	for i := range b.w.cfg.NoticeFaults {
		s := &b.w.cfg.NoticeFaults[i]
		if due < s.At || due >= s.At.Add(s.Duration) || key.At2(drawOrderedLate, uint64(s.At)).Float() >= s.Share {
			continue
		}
		if s.Delay == 0 {
			lead = 0
		}
		lead = max(0, lead-policy.Time(s.Delay.Milliseconds()))
	}
	e.notice = int32(lead)
}
