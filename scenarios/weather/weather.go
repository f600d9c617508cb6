// Package weather draws all events of a run that no policy can influence: capacity shortages,
// reclaims, notices, recommendations, and calls that fail.
//
// All events are drawn before any policy acts. A node does not draw its lifetime when it is
// launched: it occupies a slot of its market, and each slot has a calendar of reclaims. Two
// policies that use the same slot at the same time therefore lose it at the same time, regardless
// of their earlier actions, and differences between their results are due to the policies.
//
// Draws are keyed by the seed, by hashes of names and by ordinals in order of time. An additional
// market or a later end does not change existing events.
//
// Common types are unavailable during shortages of groups of markets, with Weibull lengths and
// gaps; the availability of scarce types follows the slack of a [Law]. [Params.Assumptions] lists
// what is modelled and the evidence for it.
package weather

import (
	"crypto/sha256"
	"math"
	"sort"
	"sync"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/portable"
	"github.com/spotter-dev/spotter/scenarios/chance"
)

// A Cause is the cause of a reclaim.
type Cause uint8

// The causes of a reclaim.
const (
	CauseCalendar Cause = iota // outside of shortages, at the market's own rate
	CauseShortage              // in a drawn shortage
	CauseRecorded              // in a fall of a recorded availability
	CauseOrdered               // in a shortage that the scenario orders
)

// String returns the name used in output.
func (c Cause) String() string {
	return [...]string{"calendar", "squeeze", "recorded", "ordered"}[c]
}

// A Reclaim is the loss of a node to the provider.
type Reclaim struct {
	At policy.Time

	// Notice is the time of the provider's notice; zero means no notice.
	Notice policy.Time

	Cause Cause
}

// A Shortage is an interval in which a market refuses all launches for lack of capacity.
type Shortage struct {
	// From is its first instant, Until the first instant after it.
	From, Until policy.Time

	// Depth is the share of the market's slots that are taken at its start.
	Depth float64

	Cause Cause

	// key is the key of the draws that take slots; silent suppresses notices.
	key    chance.Key
	silent bool
}

// Unlimited is the number of slots of an on-demand market.
const Unlimited = math.MaxInt32

// Weather contains all events drawn for one run. It is immutable after [New] and may be read by
// concurrent runs.
type Weather struct {
	cfg     Config
	markets []market

	// The events of all markets are stored in flat arrays. The reclaims of slot s of market m are
	// events[starts[i]:starts[i+1]] with i = m.first + s, and its false alarms
	// alarms[alarmStarts[i]:alarmStarts[i+1]]; both ascend.
	starts, alarmStarts []int32
	events              []event
	alarms              []policy.Time

	// shortages are the shortages of all markets, ascending by From within each market; closed are
	// the same intervals, merged where they overlap or touch.
	shortages []Shortage
	closed    []interval

	// steps are the changes of depth of all markets, ascending within each market.
	steps []Step

	digest    sync.Once
	digestSum [sha256.Size]byte
}

// A market is the internal form of a Market.
type market struct {
	hash     uint64 // of the name
	name     string
	spot     bool
	band     policy.Band
	modelled bool
	slots    int32
	lead     policy.Time // from a notice to the reclaim

	// rate is the mean rate of the calendars in reclaims per node-hour, including frailty and
	// intensity. state is the rhythm that it follows, nil if the market's reclaims are not
	// modelled.
	rate  float64
	state *rhythm

	// shortageRate is the mean number of times per node-hour that shortages take a slot.
	shortageRate float64

	// taken are the times at which nodes of any slot are taken, ascending.
	taken []policy.Time

	first                         int32 // index of its first slot in starts; Spot only
	shortagesFrom, shortagesUntil int32
	closedFrom, closedUntil       int32
	stepsFrom, stepsUntil         int32
}

// An event is a reclaim of one slot with its announcements, in milliseconds before At. Zero means
// no announcement.
type event struct {
	at                  policy.Time
	notice, recommended int32
	cause               Cause
	silent              bool // it has no announcements
}

// An interval is the time span [from, until).
type interval struct{ from, until policy.Time }

// Band returns the published or drawn band of market m, and whether it was drawn. It is unknown for
// on-demand markets.
func (w *Weather) Band(m int) (b policy.Band, modelled bool) {
	return w.markets[m].band, w.markets[m].modelled
}

// Slots returns the maximum number of nodes that market m can hold.
func (w *Weather) Slots(m int) int { return int(w.markets[m].slots) }

// Open reports whether market m accepts launches at t. On-demand markets are closed by ordered
// shortages, and those of scarce types also by deep shortages.
func (w *Weather) Open(m int, t policy.Time) bool {
	mk := &w.markets[m]
	closed := w.closed[mk.closedFrom:mk.closedUntil]
	i := sort.Search(len(closed), func(i int) bool { return closed[i].until > t })
	return i == len(closed) || closed[i].from > t
}

// Shortages returns the intervals in which market m is closed and their causes, ascending by From;
// those of different groups may overlap. The result is shared and must not be modified.
func (w *Weather) Shortages(m int) []Shortage {
	mk := &w.markets[m]
	return w.shortages[mk.shortagesFrom:mk.shortagesUntil:mk.shortagesUntil]
}

// Reclaim returns the reclaim of the node that has held the given slot of market m since after: the
// slot's first reclaim later than that. It reports false if there is no such reclaim before the
// end. A notice that is due before the node exists comes a millisecond later than after.
func (w *Weather) Reclaim(m, slot int, after policy.Time) (Reclaim, bool) {
	mk := &w.markets[m]
	if !mk.spot {
		return w.lostOnDemand(mk, slot, after)
	}
	e := w.next(mk, slot, after)
	if e == nil {
		return Reclaim{}, false
	}
	r := Reclaim{At: e.at, Cause: e.cause}
	if e.notice > 0 {
		r.Notice = max(e.at-policy.Time(e.notice), after+1)
	}
	return r, true
}

// Recommendation returns the first time later than after at which the provider recommends leaving
// the given slot of market m, and whether there is one. It includes false alarms.
func (w *Weather) Recommendation(m, slot int, after policy.Time) (policy.Time, bool) {
	mk := &w.markets[m]
	if !mk.spot || slot >= int(mk.slots) {
		return 0, false
	}
	at, ok := policy.Time(0), false
	i := int(mk.first) + slot
	for _, t := range w.alarms[w.alarmStarts[i]:w.alarmStarts[i+1]] {
		if t > after {
			at, ok = t, true
			break
		}
	}
	for _, e := range w.events[w.starts[i]:w.starts[i+1]] {
		if ok && e.at-announcedMax >= at {
			break // no later reclaim is recommended before at
		}
		t := e.at - policy.Time(e.recommended)
		if e.recommended > 0 && t > after && (!ok || t < at) {
			at, ok = t, true
		}
	}
	return at, ok
}

// next returns the first reclaim of the slot later than after, or nil.
func (w *Weather) next(mk *market, slot int, after policy.Time) *event {
	if slot >= int(mk.slots) {
		return nil
	}
	i := int(mk.first) + slot
	events := w.events[w.starts[i]:w.starts[i+1]]
	n := sort.Search(len(events), func(n int) bool { return events[n].at > after })
	if n == len(events) {
		return nil
	}
	return &events[n]
}

// lostOnDemand returns the first loss later than after of an on-demand node, and whether there is
// one. Its market has an unlimited number of slots, so whether an ordered shortage takes a slot is
// drawn only when needed, from the same keys as elsewhere.
func (w *Weather) lostOnDemand(mk *market, slot int, after policy.Time) (Reclaim, bool) {
	first, ok := Reclaim{}, false
	for i := mk.shortagesFrom; i < mk.shortagesUntil; i++ {
		s := &w.shortages[i]
		at, taken := s.take(mk.hash, slot, w.cfg.takeWindow())
		if taken && at > after && (!ok || at < first.At) {
			first, ok = Reclaim{At: at, Cause: s.Cause}, true
		}
	}
	return first, ok
}

// knownFor is the time for which a provider counts its reclaims.
const knownFor = 24 * hour

// ExpectedHazard returns the rate, per node-hour, at which the provider can expect to reclaim nodes
// of Spot market m at t. It is based on the published band and the reclaims of all slots in the
// last day, which have a greater weight the longer the slots were observed. It does not depend on
// future events. It determines where launches are placed, and no policy may use it.
func (w *Weather) ExpectedHazard(m int, t policy.Time) float64 {
	mk := &w.markets[m]
	if !mk.spot || mk.band == policy.BandUnknown {
		return 0
	}
	from := max(w.cfg.From, t-knownFor)
	hours := float64(max(0, t-from)) / float64(hour) * float64(mk.slots)
	taken := float64(mk.takenBy(t) - mk.takenBy(from))
	// Markets with the same band differ by frailty: a gamma distribution with the same mean and
	// deviation.
	variance := portable.Exp(float64(w.cfg.Params.FrailtySigma*w.cfg.Params.FrailtySigma)) - 1
	shape := 1 / max(variance, 1e-3)
	return (shape + taken) / (float64(shape/w.cfg.Params.rate(mk.band)) + hours)
}

// takenBy returns the number of nodes of all slots that are taken until t.
func (mk *market) takenBy(t policy.Time) int {
	return sort.Search(len(mk.taken), func(i int) bool { return mk.taken[i] > t })
}

// CallFails reports whether a call of the provider's or the cluster's API at t fails. It is drawn
// once per second, for all calls in that second.
func (w *Weather) CallFails(t policy.Time) bool {
	for i := range w.cfg.APIFaults {
		f := &w.cfg.APIFaults[i]
		if t < f.At || t >= f.At.Add(f.Duration) {
			continue
		}
		key := chance.Stream(w.cfg.Seed, "api").At2(uint64(f.At), uint64(t/1000))
		if key.Float() < f.Share {
			return true
		}
	}
	return false
}
