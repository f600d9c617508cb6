package screen

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/tui/draw"
	"github.com/spotter-dev/spotter/eval/timeline"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
)

// A facts provides what is known about the parts of a run up to an instant.
type facts struct {
	*run
	now policy.Time

	// past is a buffer for an earlier frame, for nodes that no longer exist.
	past *timeline.Frame
}

// onward returns the subject to inspect after from: for a decision its subject, and for anything
// else the last decision about it.
func (s *facts) onward(from *subject) (subject, bool) {
	if from.pane != Decisions {
		d, k, ok := s.decided(from.name)
		return subject{Decisions, from.name, entryID{d, k}}, ok
	}
	e := s.entryOf(from.entry)
	switch {
	case e == nil:
		return subject{}, false
	case s.workload(e.Subject) >= 0:
		return subject{pane: Workloads, name: e.Subject}, true
	case s.gpuBudget(e.Subject) >= 0:
		return subject{pane: GPUBudgets, name: e.Subject}, true
	case e.Market != "" && s.market(e.Market) >= 0:
		return subject{pane: Markets, name: e.Market}, true
	case e.Verb == timeline.Drain || nodeIn(&s.frame, e.Subject) != nil:
		return subject{pane: Nodes, name: e.Subject}, true
	}
	return subject{}, false
}

// eventsShown is the maximum number of events in a history, newest first.
const eventsShown = 40

// entryOf returns an entry of a decision, or nil if it does not exist, since decisions differ
// between runs.
func (s *facts) entryOf(id entryID) *timeline.Entry {
	if id.decision < 0 || id.decision >= s.decisions {
		return nil
	}
	d := s.Timeline.Decision(id.decision)
	if id.entry < 0 || id.entry >= len(d.Entries) {
		return nil
	}
	return &d.Entries[id.entry]
}

// history returns the events about a subject up to an instant. Equal events of one instant are
// combined.
func (s *facts) history(name string) draw.Section {
	var times []int
	section := draw.Section{Title: "History, newest first"}
	for _, i := range s.Timeline.EventsAbout(name, s.now, eventsShown, nil) {
		e := s.Timeline.Event(i)
		item := draw.Item{Key: draw.DaySecond(e.At), Value: sentence(&s.inventory, &e), Ink: inkOf(e.Kind)}
		if n := len(section.Items); n > 0 && section.Items[n-1] == item {
			times[n-1]++
			continue
		}
		section.Items, times = append(section.Items, item), append(times, 1)
	}
	for i, n := range times {
		if n > 1 {
			section.Items[i].Value += fmt.Sprintf(" (%d times)", n)
		}
	}
	if len(section.Items) == 0 {
		section.Items = []draw.Item{{Value: "nothing has happened to it so far", Ink: draw.Muted}}
	}
	return section
}

func inkOf(k timeline.Kind) draw.Ink {
	switch k {
	case timeline.Noticed, timeline.Reclaimed, timeline.Outbid, timeline.OutageBegan, timeline.PodLost, timeline.JobMissed, timeline.FaultBegan:
		return draw.Bad
	case timeline.Recommended, timeline.Draining, timeline.Refused, timeline.GateClosed, timeline.Paused, timeline.LossBudgetUsedUp:
		return draw.Warn
	case timeline.Joined, timeline.OutageEnded, timeline.JobDone, timeline.FaultEnded, timeline.GateOpened, timeline.LossBudgetRestored:
		return draw.Good
	}
	return draw.Own
}

// decided returns the last decision about a subject up to an instant, and the entry. Decisions that
// only rank a node are used if there are no others.
func (s *facts) decided(name string) (decision, entry int, ok bool) {
	if d, k, ok := s.Timeline.DecisionAbout(name, s.now, judging...); ok {
		return d, k, ok
	}
	return s.Timeline.DecisionAbout(name, s.now)
}

// ranked returns when the pods of a node are removed as workloads shrink. It is empty if that was
// not decided, or if [facts.why] contains it.
func (s *facts) ranked(name string) []draw.Item {
	d, k, ok := s.Timeline.DecisionAbout(name, s.now, timeline.Rank)
	if _, _, other := s.Timeline.DecisionAbout(name, s.now, judging...); !ok || !other {
		return nil
	}
	all := s.Timeline.Decision(d)
	e := &all.Entries[k]
	return []draw.Item{{Key: "ranked", Value: draw.Day(all.At) + ", " + e.Detail + ": " + e.Why.Text}}
}

// why returns the last decision about a subject up to an instant.
func (s *facts) why(name string) draw.Section {
	section := draw.Section{Title: "Why: the last decision about it"}
	d, k, ok := s.decided(name)
	if !ok {
		section.Items = []draw.Item{{Value: "nothing has been decided about it so far", Ink: draw.Muted}}
		return section
	}
	all := s.Timeline.Decision(d)
	section.Items = append([]draw.Item{{Key: "at", Value: draw.DaySecond(all.At)}}, s.reasons(&all.Entries[k])...)
	return section
}

// reasons returns the reasons that an entry states.
func (s *facts) reasons(e *timeline.Entry) []draw.Item {
	items := []draw.Item{{Key: "what", Value: join(e.Verb.String(), e.Subject), Ink: draw.Title}}
	if e.Detail != "" {
		items = append(items, draw.Item{Key: "how", Value: e.Detail})
	}
	items = append(items, draw.Item{Key: "reason", Value: string(e.Why.Reason), Ink: draw.Accent})
	if e.Why.Text != "" {
		items = append(items, draw.Item{Key: "because", Value: e.Why.Text})
	}
	if e.Why.Before != 0 || e.Why.After != 0 {
		change := e.Why.After - e.Why.Before
		items = append(items, draw.Item{Key: "dollars", Value: fmt.Sprintf("%s before, %s after (%s/h)",
			draw.PerHour(e.Why.Before),
			draw.PerHour(e.Why.After), figures.DollarChange(change.Float())), Ink: gain(-change)})
	}
	other := s.place(e.Why.RunnerUp)
	if other == "" {
		other = "no other came into question"
	}
	return append(items, draw.Item{Key: "second was", Value: other})
}

func join(a, b string) string {
	if b == "" {
		return a
	}
	return a + " " + b
}

// ofNode returns the facts about a node. For a node that no longer exists they include its history.
func (s *facts) ofNode(name string) []draw.Section {
	n, f, at := nodeIn(&s.frame, name), &s.frame, s.now
	what := draw.Section{Title: "What"}
	if n == nil {
		if n, at = s.wasNode(name); n == nil {
			what.Items = []draw.Item{{Value: "it does not exist yet", Ink: draw.Warn}}
			return []draw.Section{what, s.why(name), s.history(name)}
		}
		f = s.past
		what.Title = "What it was at " + draw.DaySecond(at) + ", before it went"
	}
	what.Items = append(s.lookOf(n, f, at), s.ranked(name)...)
	return []draw.Section{what, s.why(name), s.possible(n.Market), s.history(name)}
}

// wasNode returns a node that no longer exists as it was just before it terminated, and that time.
// It returns nil if the node never existed.
func (s *facts) wasNode(name string) (*timeline.Node, policy.Time) {
	for _, i := range s.Timeline.EventsAbout(name, s.now, eventsShown, nil) {
		at := s.Timeline.Event(i).At - 1
		s.Timeline.At(at, s.past)
		if n := nodeIn(s.past, name); n != nil {
			return n, at
		}
	}
	return nil, 0
}

// lookOf returns the properties of a node in a frame.
func (s *facts) lookOf(n *timeline.Node, frame *timeline.Frame, at policy.Time) []draw.Item {
	items := []draw.Item{{Key: "pool", Value: s.poolName(n.Pool)}, {Key: "market",
		Value: s.place(s.marketName(n.Market)), Ink: inkFor(n.Spot)}}
	if n.Market >= 0 {
		f := &frame.Markets[n.Market]
		items = append(items, draw.Item{Key: "price", Value: s.priced(n.Market)})
		if n.Spot {
			items = append(items, draw.Item{Key: "hazard", Value: taken(f.Hazard)})
		}
	}
	state := n.Phase.String()
	if n.By != policy.ActorNone {
		state += ", by " + n.By.String()
	}
	items = append(items, draw.Item{Key: "state", Value: state},
		draw.Item{Key: "launched", Value: draw.Day(n.Since) + ", " + figures.Duration(at.Sub(n.Since)) + " ago"})
	items = append(items, danger(n, at)...)
	items = append(items, filled("CPU", n.CPU), filled("memory", n.Memory))
	if n.GPU >= 0 {
		items = append(items, filled("GPU", n.GPU))
	}
	return append(items, draw.Item{Key: "pods", Value: strconv.Itoa(int(n.Pods))})
}

func danger(n *timeline.Node, now policy.Time) (items []draw.Item) {
	if n.Notice != 0 {
		items = append(items, draw.Item{Key: "notice", Value: "the provider takes it in " +
			figures.Duration(n.Notice.Sub(now)), Ink: draw.Bad})
	}
	if n.Recommended {
		items = append(items, draw.Item{Key: "rebalance", Value: "the provider recommends to leave it", Ink: draw.Warn})
	}
	return items
}

func filled(key string, thousandths int16) draw.Item {
	part := float64(thousandths) / 1000
	return draw.Item{Key: key, Value: figures.RoughShare(part) + " requested",
		Bar: &draw.Meter{Value: part, Whole: 1, Ink: draw.Accent}}
}

func inkFor(spot bool) draw.Ink {
	if spot {
		return draw.Spot
	}
	return draw.OnDemand
}

// priced formats the price of a market and its ratio to the on-demand price.
func (s *facts) priced(market int32) string {
	m, p := &s.markets[market], s.frame.Markets[market].Price
	if p == policy.NoPrice {
		return "nothing is offered"
	}
	text := draw.PerHour(p)
	if m.Spot && m.OnDemand > 0 {
		text += ", " + figures.RoughShare(p.Float()/m.OnDemand.Float()) + " of on-demand"
	}
	return text
}

// taken describes a hazard.
func taken(hazard float64) string {
	return figures.RoughShare(perMonth(hazard)) + " of nodes taken in a month"
}

// possible returns the other markets of the same instance type, ascending by price.
func (s *facts) possible(market int32) draw.Section {
	section := draw.Section{Title: "What else was possible: the same type elsewhere"}
	if market < 0 {
		return section
	}
	var others []int32
	for i := range s.markets {
		if int32(i) != market && s.markets[i].Type == s.markets[market].Type {
			others = append(others, int32(i))
		}
	}
	price := func(i int32) policy.Money {
		if p := s.frame.Markets[i].Price; p != policy.NoPrice {
			return p
		}
		return 1 << 62
	}
	slices.SortStableFunc(others, func(a, b int32) int { return cmp.Compare(price(a), price(b)) })
	for _, i := range others {
		m := &s.markets[i]
		text := s.priced(i)
		if m.Spot {
			text += ", " + taken(s.frame.Markets[i].Hazard)
		}
		section.Items = append(section.Items, draw.Item{Key: s.shortZone(m.Zone) + " " + capacity(m.Spot), Value: text,
			Ink: inkFor(m.Spot)})
	}
	if len(others) == 0 {
		section.Items = []draw.Item{{Value: "no other market sells this type", Ink: draw.Muted}}
	}
	return section
}
