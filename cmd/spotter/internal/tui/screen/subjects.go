package screen

import (
	"fmt"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/tui/draw"
	"github.com/spotter-dev/spotter/eval/timeline"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
)

// ofMarket returns the facts about a market.
func (s *facts) ofMarket(name string) []draw.Section {
	id := s.market(name)
	if id < 0 {
		return []draw.Section{{Title: "What", Items: []draw.Item{{Value: "this run has no such market", Ink: draw.Warn}}}}
	}
	m, f := &s.markets[id], &s.frame.Markets[id]
	what := draw.Section{Title: "What", Items: []draw.Item{{Key: "name", Value: m.Name},
		{Key: "price", Value: s.priced(id), Ink: inkFor(m.Spot)}}}
	if m.OnDemand > 0 && m.Spot {
		what.Items = append(what.Items, draw.Item{Key: "on-demand", Value: draw.PerHour(m.OnDemand)})
	}
	if low, high, ok := s.extremes(id); ok && m.Spot {
		what.Items = append(what.Items, draw.Item{Key: "so far", Value: "from " + draw.PerHour(low) + " to " +
			draw.PerHour(high)})
	}
	if m.Spot {
		what.Items = append(what.Items, draw.Item{Key: "hazard", Value: taken(f.Hazard)})
	}
	what.Items = append(what.Items, draw.Item{Key: "nodes now", Value: figures.Count(s.inUse[id], "node")})
	if m.Spot {
		what.Items = append(what.Items, draw.Item{Key: "reclaims", Value: fmt.Sprintf("%d so far", s.reclaimed(id, s.now))})
	}
	return []draw.Section{what, s.bought(name), s.possible(id), s.history(name)}
}

// extremes returns the minimum and maximum price of a market up to an instant.
func (s *facts) extremes(market int32) (low, high policy.Money, ok bool) {
	_, prices := s.Timeline.Prices(int(market), s.from, max(s.now, s.from), chartPoints)
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

// boughtLooked is the maximum number of decisions that are searched for a launch in a market.
const boughtLooked = 200

// bought returns the last decision up to the time shown that launched in a market.
func (s *facts) bought(market string) draw.Section {
	section := draw.Section{Title: "Why: the last launch requested there"}
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

// ofWorkload returns the facts about a workload.
func (s *facts) ofWorkload(name string) []draw.Section {
	id := s.workload(name)
	if id < 0 {
		return []draw.Section{{Title: "What", Items: []draw.Item{{Value: "this run has no such workload", Ink: draw.Warn}}}}
	}
	w, f := &s.workloads[id], &s.frame.Workloads[id]
	sum := s.outageOf(id, s.from, s.now)
	ink := draw.Own
	if sum.now {
		ink = draw.Bad
	}
	what := draw.Section{Title: "What", Items: []draw.Item{{Key: "kind", Value: w.Kind.String()},
		{Key: "ready", Value: fmt.Sprintf("%d of %d desired, %d required", f.Ready, f.Desired, f.Required), Ink: ink,
			Bar: &draw.Meter{Value: float64(f.Ready), Tick: float64(f.Required), Whole: float64(max(f.Desired, 1)),
				Ink: draw.Accent}},
		{Key: "on spot", Value: fmt.Sprintf("%d of %d ready", f.OnSpot, f.Ready), Ink: draw.Spot}}}
	if w.PodValue > 0 {
		what.Items = append(what.Items, draw.Item{Key: "pod value", Value: draw.PerHour(w.PodValue) +
			", what a pod costs on demand"})
	}
	what.Items = append(what.Items, draw.Item{Key: "outage", Value: figures.Duration(sum.total) + " so far"})
	if sum.incidents > 0 {
		what.Items = append(what.Items, draw.Item{Key: "incidents", Value: fmt.Sprintf("%d, the longest %s from %s",
			sum.incidents, figures.Duration(sum.longest), draw.DaySecond(sum.began))})
	}
	return []draw.Section{what, s.outagesOf(id), s.why(name), s.history(name)}
}

// outagesOf lists the outages of a workload, newest first.
func (s *facts) outagesOf(workload int32) draw.Section {
	section := draw.Section{Title: "Outages, newest first"}
	for i := len(s.outages) - 1; i >= 0; i-- {
		o := &s.outages[i]
		if o.workload != workload || o.from > s.now {
			continue
		}
		text := "since " + figures.Duration(s.now.Sub(o.from))
		if o.to != 0 && o.to <= s.now {
			text = "for " + figures.Duration(o.to.Sub(o.from))
		}
		section.Items = append(section.Items, draw.Item{Key: draw.DaySecond(o.from), Value: text, Ink: draw.Bad})
	}
	if len(section.Items) == 0 {
		section.Items = []draw.Item{{Value: "none so far", Ink: draw.Good}}
	}
	return section
}

// ofGPUBudget returns the facts about a GPU budget.
func (s *facts) ofGPUBudget(name string) []draw.Section {
	id := s.gpuBudget(name)
	if id < 0 {
		return []draw.Section{{Title: "What", Items: []draw.Item{{Value: "this run has no such budget", Ink: draw.Warn}}}}
	}
	b, f := &s.gpuBudgets[id], &s.frame.Budgets[id]
	what := draw.Section{Title: "What", Items: []draw.Item{{Key: "action", Value: b.Action.String()},
		{Key: "window", Value: figures.Duration(b.Window)}}}
	if b.HasGPUHours {
		what.Items = append(what.Items, draw.Item{Key: "GPU-hours", Value: figures.Number(f.GPUHours, 1) + " of " +
			figures.Number(b.GPUHours, 1),
			Bar: &draw.Meter{Value: f.GPUHours, Whole: b.GPUHours, Ink: draw.Accent}})
	}
	if b.HasDollars {
		what.Items = append(what.Items, draw.Item{Key: "dollars", Value: figures.Dollars(f.Dollars.Float()) + " of " +
			figures.Dollars(b.Dollars.Float()),
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
	return []draw.Section{what, s.why(name), s.history(name)}
}

// ofDecision returns an entry with its reasons, and the other entries of its decision.
func (s *facts) ofDecision(id entryID) []draw.Section {
	e := s.entryOf(id)
	if e == nil {
		return []draw.Section{{Title: "What", Items: []draw.Item{{Value: "this run has no such decision", Ink: draw.Warn}}}}
	}
	d := s.Timeline.Decision(id.decision)
	what := draw.Section{Title: "What and why", Items: append([]draw.Item{{Key: "at", Value: draw.DaySecond(d.At)},
		{Key: "means", Value: draw.Meaning(e.Verb), Ink: draw.Muted}}, s.reasons(e)...)}
	if e.Pool != "" {
		what.Items = append(what.Items, draw.Item{Key: "pool", Value: e.Pool})
	}
	if e.Market != "" {
		what.Items = append(what.Items, draw.Item{Key: "market", Value: s.place(e.Market)})
	}
	with := draw.Section{Title: fmt.Sprintf("All %s of this decision", figures.Count(len(d.Entries), "entry"))}
	for i := range d.Entries {
		x := &d.Entries[i]
		with.Items = append(with.Items, draw.Item{Key: x.Verb.String(),
			Value: join(x.Subject, "("+string(x.Why.Reason)+") "+x.Detail)})
	}
	with.Items = append(with.Items, draw.Item{Key: "next", Value: "decides again by " + draw.DaySecond(d.Wake),
		Ink: draw.Muted})
	sections := []draw.Section{what}
	if market := s.marketOfEntry(e); market >= 0 {
		sections = append(sections, s.possible(market))
	}
	return append(sections, with)
}

// marketOfEntry returns the index of the market that an entry is about, or -1.
func (s *facts) marketOfEntry(e *timeline.Entry) int32 {
	if e.Market != "" {
		return s.market(e.Market)
	}
	if n := nodeIn(&s.frame, e.Subject); n != nil {
		return n.Market
	}
	return -1
}
