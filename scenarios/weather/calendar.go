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
	reclaim, alarm := b.process(mk.state, mk.rate), b.process(mk.state, b.p.falseAlarms(mk.rate+mk.shortageRate))
	shortages := w.shortages[mk.shortagesFrom:mk.shortagesUntil]
	window := w.cfg.takeWindow()
	for slot := range int(mk.slots) {
		from := len(w.events)
		w.starts = append(w.starts, int32(from))
		w.alarmStarts = append(w.alarmStarts, int32(len(w.alarms)))
		w.alarms = alarm.instants(w.alarms, alarms.At1(uint64(slot)))
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
		}
	}
}

// falseAlarms returns the rate of false alarms where nodes are reclaimed at this
// mean rate.
func (p *Params) falseAlarms(reclaims float64) float64 {
	return float64(reclaims*p.RecommendedShare) * (1 - p.RecommendedPrecision) / p.RecommendedPrecision
}

// A process strikes the slots of one market at a mean rate along a rhythm.
type process struct {
	*rhythm
	rate       float64 // mean, per node-hour
	begin, end float64 // the rhythm's integral over the time that is drawn

	// idle is a number below which a slot's first draw leaves it unharmed to
	// the end. It spares most slots a logarithm.
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

// instants appends the instants at which the process strikes the slot of this
// key: unit-exponential gaps, mapped through the inverse of the integrated rate.
// The n-th gap depends on the key and on n only.
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

// take returns when a shortage takes a slot of a market, and whether it does. A
// shortage shorter than the window takes what it takes before it ends.
func (s *Shortage) take(market uint64, slot int, window policy.Time) (at policy.Time, taken bool) {
	k := s.key.At2(market, uint64(slot))
	if k.At1(0).Float() >= s.Depth {
		return 0, false
	}
	return s.From + policy.Time(float64(k.At1(1).Float()*float64(min(window, s.Until-s.From)))), true
}

// takeWindow returns the time within which a shortage takes its slots.
func (c *Config) takeWindow() policy.Time { return policy.Time(c.Params.TakeWindow.Milliseconds()) }

// The draws of one reclaim's announcements.
const (
	drawNotice = iota
	drawLate
	drawRecommended
	drawRecommendedLead
	drawOrderedLate
)

// announce draws the notice and the recommendation of a reclaim, where notices
// come lead before it.
func (b *builder) announce(e *event, lead policy.Time, key chance.Key) {
	if e.silent {
		return
	}
	p := b.p
	if key.At1(drawRecommended).Float() < p.RecommendedShare {
		early := float64(key.At1(drawRecommendedLead).Exp1() * float64(p.RecommendedLead.Milliseconds()))
		e.recommended = int32(lead + policy.Time(min(early, float64(announcedMax-lead-1))))
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
