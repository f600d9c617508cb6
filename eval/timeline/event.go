package timeline

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
)

// An eventLog contains the events of a timeline, ascending by time.
type eventLog struct {
	*store
	events []eventRow
}

// An eventRow is the stored form of an Event.
type eventRow struct {
	at              policy.Time
	amount          int64
	subject, object uint32
	kind            Kind
}

var kindNames = [...]string{
	Launched: "launched", Refused: "refused", Joined: "joined", Noticed: "noticed", Recommended: "recommended to leave",
	Reclaimed: "reclaimed", Outbid: "outbid", Draining: "draining", Undrained: "drain given up", Deleted: "deleted",
	PodEvicted: "pod evicted", PodLost: "pod lost", OutageBegan: "outage began", OutageEnded: "outage ended",
	ReplicasChanged: "replicas changed", JobDone: "job done", JobMissed: "job missed its deadline",
	FaultBegan: "fault began", FaultEnded: "fault ended", GateClosed: "gate closed", GateOpened: "gate opened",
	Paused: "job suspended", Resumed: "job resumed",
	LossBudgetUsedUp: "loss budget used up", LossBudgetRestored: "Spot again",
}

var faultNames = [...]string{
	scenarios.FaultZoneOutage: "zone outage", scenarios.FaultCapacityShortage: "shortage", scenarios.FaultPriceRamp: "price ramp",
	scenarios.FaultAPIThrottle: "API throttled", scenarios.FaultAPIError: "API down", scenarios.FaultLateNotice: "late notices",
	scenarios.FaultSlowNodes: "slow nodes", scenarios.FaultControllerDown: "controller down", scenarios.FaultModelFails: "model fails",
	scenarios.FaultOnDemandRefused: "on-demand refused", scenarios.FaultZonalShift: "zonal shift",
}

// String returns the kind in words.
func (k Kind) String() string { return kindNames[k] }

// addEvent adds an event, which must not be before the last one.
func (l *eventLog) addEvent(at policy.Time, kind Kind, subject, object string, amount int64) {
	l.events = append(l.events, eventRow{at: at, kind: kind, subject: l.names.id(subject), object: l.names.id(object),
		amount: amount})
}

// lastEvent returns the index of the last event at or before an instant, -1 if there is no such
// event.
func (l *eventLog) lastEvent(at policy.Time) int {
	return lastAt(l.events, at, func(e *eventRow) policy.Time { return e.at })
}

// Events returns the number of available events.
func (l *eventLog) Events() int {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return len(l.events)
}

// Event returns the i-th event, from 0.
func (l *eventLog) Event(i int) Event {
	l.mu.RLock()
	defer l.mu.RUnlock()
	e := &l.events[i]
	return Event{At: e.at, Kind: e.kind, Subject: l.names.list[e.subject], Object: l.names.list[e.object],
		Amount: e.amount}
}

// NextEvent returns the index of the first event after an instant, and whether there is one. If
// kinds are passed, the event must be of one of them.
func (l *eventLog) NextEvent(after policy.Time, kinds ...Kind) (int, bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return seek(l.lastEvent(after)+1, 1, len(l.events), l.isOf(kinds))
}

// PreviousEvent returns the index of the last event before an instant in the same way.
func (l *eventLog) PreviousEvent(before policy.Time, kinds ...Kind) (int, bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return seek(l.lastEvent(before-1), -1, len(l.events), l.isOf(kinds))
}

// isOf returns a function that reports whether event i is of one of kinds, or always true if kinds
// is empty.
func (l *eventLog) isOf(kinds []Kind) func(i int) bool {
	return func(i int) bool { return len(kinds) == 0 || slices.Contains(kinds, l.events[i].kind) }
}

// EventsAbout appends to into the indexes of the last events at or before an instant that name the
// given node, workload, market, pool, fault or budget, newest first and at most most of them.
func (l *eventLog) EventsAbout(name string, until policy.Time, most int, into []int) []int {
	l.mu.RLock()
	defer l.mu.RUnlock()
	id, ok := l.names.find(name)
	if !ok || name == "" {
		return into
	}
	for i := l.lastEvent(until); i >= 0 && most > 0; i-- {
		if e := &l.events[i]; e.subject == id || e.object == id {
			into = append(into, i)
			most--
		}
	}
	return into
}
