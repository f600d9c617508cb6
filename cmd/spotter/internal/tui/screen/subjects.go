package screen

import (
	"fmt"
	"slices"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/tui/draw"
	"github.com/spotter-dev/spotter/eval/timeline"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/sim"
)

// ofMarket is what is known of a market.
func (s *show) ofMarket(name string, now policy.Time) []draw.Section {
	id := s.market(name)
	if id < 0 {
		return []draw.Section{{Title: "What", Items: []draw.Item{{Value: "this run has no such market", Ink: draw.Warn}}}}
	}
	m, f := &s.markets[id], &s.frame.Markets[id]
	what := draw.Section{Title: "What", Items: []draw.Item{{Key: "name", Value: m.Name}, {Key: "price", Value: s.priced(id), Ink: inkFor(m.Spot)}}}
	if m.OnDemand > 0 && m.Spot {
		what.Items = append(what.Items, draw.Item{Key: "on-demand", Value: draw.PerHour(m.OnDemand)})
	}
	if low, high, ok := s.extremes(id, now); ok && m.Spot {
		what.Items = append(what.Items, draw.Item{Key: "so far", Value: "from " + draw.PerHour(low) + " to " + draw.PerHour(high)})
	}
	if m.Spot {
		what.Items = append(what.Items, draw.Item{Key: "hazard", Value: taken(f.Hazard)})
	}
	what.Items = append(what.Items, draw.Item{Key: "nodes now", Value: counted(int(s.inUse[id]), "node", "nodes")})
	if m.Spot {
		what.Items = append(what.Items, draw.Item{Key: "reclaims", Value: fmt.Sprintf("%d so far", s.reclaimed[id])})
	}
	return []draw.Section{what, s.bought(name), s.possible(id), s.history(name, now)}
}

// extremes returns the least and the greatest price of a market up to an instant.
func (s *show) extremes(market int32, now policy.Time) (low, high policy.Money, ok bool) {
	_, prices := s.Timeline.Prices(int(market), s.from, max(now, s.from), chartPoints)
	for _, p := range prices {
		if p == policy.NoPrice {
			continue
		}
		if !ok {
			low, high, ok = p, p, true
		}
		low, high = min(low, p), max(high, p)
	}
	return low, high, ok
}

// boughtLooked is how many decisions are looked through for a launch in a market.
const boughtLooked = 200

// bought is the last decision at the shown time that launched in a market.
func (s *show) bought(market string) draw.Section {
	section := draw.Section{Title: "Why: the last launch asked for there"}
	for i := s.frame.Decision; i >= 0 && i > s.frame.Decision-boughtLooked; i-- {
		d := s.Timeline.Decision(i)
		for k := range d.Entries {
			if e := &d.Entries[k]; e.Market == market {
				section.Items = append([]draw.Item{{Key: "at", Value: draw.DaySecond(d.At)}}, s.reasons(e)...)
				return section
			}
		}
	}
	section.Items = []draw.Item{{Value: "no decision of late named it: a provisioner chooses among the markets that a pool may use", Ink: draw.Muted}}
	return section
}

// ofWorkload is what is known of a workload.
func (s *show) ofWorkload(name string, now policy.Time) []draw.Section {
	id := s.workload(name)
	if id < 0 {
		return []draw.Section{{Title: "What", Items: []draw.Item{{Value: "this run has no such workload", Ink: draw.Warn}}}}
	}
	w, f := &s.workloads[id], &s.frame.Workloads[id]
	sum := s.outageOf(id, now)
	ink := draw.Own
	if sum.now {
		ink = draw.Bad
	}
	what := draw.Section{Title: "What", Items: []draw.Item{{Key: "kind", Value: w.Kind.String()},
		{Key: "ready", Value: fmt.Sprintf("%d of %d desired, %d required", f.Ready, f.Desired, f.Required), Ink: ink,
			Bar: &draw.Meter{Value: float64(f.Ready), Tick: float64(f.Required), Whole: float64(max(f.Desired, 1)), Ink: draw.Accent}},
		{Key: "on spot", Value: fmt.Sprintf("%d of %d ready", f.OnSpot, f.Ready), Ink: draw.Spot}}}
	if w.PodValue > 0 {
		what.Items = append(what.Items, draw.Item{Key: "pod value", Value: draw.PerHour(w.PodValue) + ", what a pod costs on demand"})
	}
	what.Items = append(what.Items, draw.Item{Key: "outage", Value: draw.Span(sum.total) + " so far"})
	if sum.incidents > 0 {
		what.Items = append(what.Items, draw.Item{Key: "incidents", Value: fmt.Sprintf("%d, the longest %s from %s", sum.incidents, draw.Span(sum.longest), draw.DaySecond(sum.began))})
	}
	return []draw.Section{what, s.outagesOf(id, now), s.why(name, now), s.history(name, now)}
}

// outagesOf lists the times in which a workload had less than it must, newest
// first.
func (s *show) outagesOf(workload int32, now policy.Time) draw.Section {
	section := draw.Section{Title: "Outages, newest first"}
	for i := len(s.outages) - 1; i >= 0; i-- {
		o := &s.outages[i]
		if o.workload != workload || o.from > now {
			continue
		}
		text := "since " + draw.Span(now.Sub(o.from))
		if o.to != 0 && o.to <= now {
			text = "for " + draw.Span(o.to.Sub(o.from))
		}
		section.Items = append(section.Items, draw.Item{Key: draw.DaySecond(o.from), Value: text, Ink: draw.Bad})
	}
	if len(section.Items) == 0 {
		section.Items = []draw.Item{{Value: "none so far", Ink: draw.Good}}
	}
	return section
}

// ofBudget is what is known of a budget.
func (s *show) ofBudget(name string, now policy.Time) []draw.Section {
	id := s.budget(name)
	if id < 0 {
		return []draw.Section{{Title: "What", Items: []draw.Item{{Value: "this run has no such budget", Ink: draw.Warn}}}}
	}
	b, f := &s.budgets[id], &s.frame.Budgets[id]
	what := draw.Section{Title: "What", Items: []draw.Item{{Key: "action", Value: b.Action.String()}, {Key: "window", Value: spell(b.Window)}}}
	if b.HasGPUHours {
		what.Items = append(what.Items, draw.Item{Key: "GPU-hours", Value: fmt.Sprintf("%.1f of %.1f", f.GPUHours, b.GPUHours),
			Bar: &draw.Meter{Value: f.GPUHours, Whole: b.GPUHours, Ink: draw.Accent}})
	}
	if b.HasDollars {
		what.Items = append(what.Items, draw.Item{Key: "dollars", Value: draw.Dollars(f.Dollars) + " of " + draw.Dollars(b.Dollars),
			Bar: &draw.Meter{Value: f.Dollars.Float(), Whole: b.Dollars.Float(), Ink: draw.Accent}})
	}
	state, ink := "has room", draw.Good
	if f.Spent {
		state, ink = "spent", draw.Bad
	}
	if f.Closed {
		state += ", its gate is closed"
	}
	what.Items = append(what.Items, draw.Item{Key: "state", Value: state, Ink: ink})
	return []draw.Section{what, s.why(name, now), s.history(name, now)}
}

// ofDecision is an entry with its reasons and what was decided with it.
func (s *show) ofDecision(id entryID) []draw.Section {
	e := s.entryOf(id)
	if e == nil {
		return []draw.Section{{Title: "What", Items: []draw.Item{{Value: "this run has no such decision", Ink: draw.Warn}}}}
	}
	d := s.Timeline.Decision(id.decision)
	what := draw.Section{Title: "What and why", Items: append([]draw.Item{{Key: "at", Value: draw.DaySecond(d.At)}}, s.reasons(e)...)}
	if e.Pool != "" {
		what.Items = append(what.Items, draw.Item{Key: "pool", Value: e.Pool})
	}
	if e.Market != "" {
		what.Items = append(what.Items, draw.Item{Key: "market", Value: s.place(e.Market)})
	}
	with := draw.Section{Title: fmt.Sprintf("All %s of this decision", counted(len(d.Entries), "entry", "entries"))}
	for i := range d.Entries {
		x := &d.Entries[i]
		with.Items = append(with.Items, draw.Item{Key: x.Verb.String(), Value: join(x.Subject, "("+string(x.Why.Reason)+") "+x.Detail)})
	}
	with.Items = append(with.Items, draw.Item{Key: "next", Value: "decides again by " + draw.DaySecond(d.Wake), Ink: draw.Muted})
	sections := []draw.Section{what}
	if market := s.marketOfEntry(e); market >= 0 {
		sections = append(sections, s.possible(market))
	}
	return append(sections, with)
}

// marketOfEntry is the market that an entry is about, -1 without one.
func (s *show) marketOfEntry(e *timeline.Entry) int32 {
	if e.Market != "" {
		return s.market(e.Market)
	}
	if n := s.node(e.Subject); n != nil {
		return n.Market
	}
	return -1
}

// ofPolicy is what a run has come to.
func (m *Model) ofPolicy(name string) []draw.Section {
	for _, s := range m.all() {
		if s.Name == name {
			return m.ofRun(s)
		}
	}
	return nil
}

func (m *Model) ofRun(s *show) []draw.Section {
	k := &s.frame.Costs
	outages := append([]draw.Item{{Key: "outage cost", Value: draw.Dollars(k.OutageCost)}}, outageItems(&k.Outages)...)
	if s.about.Recorded {
		outages = []draw.Item{{Key: "outage cost", Value: "not known: a recording has the instants of decisions alone", Ink: draw.Muted}}
	}
	so := draw.Section{Title: "So far, at the time shown", Items: slices.Concat([]draw.Item{{Key: "bill", Value: draw.Dollars(k.Bill)}}, outages, []draw.Item{
		{Key: "reclaims", Value: draw.Thousands(k.Reclaims)}, {Key: "evictions", Value: draw.Thousands(k.Evictions) + " by choice"},
		{Key: "nodes", Value: fmt.Sprintf("%d, of which %d spot", k.Nodes, k.SpotNodes)}})}
	if k.Size > 0 {
		so.Items = append(so.Items, draw.Item{Key: "spot share", Value: draw.Percent(float64(k.SpotSize) / float64(k.Size))})
	}
	if saved, ok := m.saved(s); ok {
		so.Items = append(so.Items, draw.Item{Key: "net savings", Value: draw.Signed(saved) + share(saved, m.baseline.frame.Costs.Bill), Ink: gain(saved)})
	}
	r, err, done := s.Timeline.Ended()
	end := draw.Section{Title: "In the end"}
	switch {
	case err != nil:
		end.Items = []draw.Item{{Value: "the run failed: " + err.Error(), Ink: draw.Bad}}
	case !done:
		end.Items = []draw.Item{{Value: "simulating…", Ink: draw.Accent}}
	case r == nil:
		end.Items = []draw.Item{{Value: "a recording does not know what the run came to", Ink: draw.Muted}}
	default:
		end.Items = append([]draw.Item{{Key: "bill", Value: draw.Dollars(r.Bill)}, {Key: "outage cost", Value: draw.Dollars(r.OutageCost)}}, outageItems(&r.Outages)...)
		end.Items = append(end.Items, []draw.Item{
			{Key: "availability", Value: fmt.Sprintf("%.3f%%", 100*r.Availability)}, {Key: "spot share", Value: draw.Percent(r.SpotShare)},
			{Key: "decisions", Value: draw.Thousands(r.Decisions)}, {Key: "hash", Value: fmt.Sprintf("%x", r.Hash[:8])}}...)
	}
	return []draw.Section{so, end}
}

// outageItems say what incidents come to, and which is the longest.
func outageItems(o *sim.Outages) []draw.Item {
	items := []draw.Item{{Key: "outages", Value: counted(int(o.OutageMinutes), "minute", "minutes") + " in " + counted(int(o.Incidents), "incident", "incidents") +
		", " + counted(int(o.PodsAffected), "pod", "pods")}}
	if o.Incidents > 0 {
		items = append(items, draw.Item{Key: "they are", Value: o.Sources()}, draw.Item{Key: "longest", Value: o.Longest.String()})
	}
	return items
}
