package screen

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/tui/draw"
	"github.com/spotter-dev/spotter/eval/timeline"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
	"github.com/spotter-dev/spotter/sim"
)

// A comparison is the runs that are shown together under the same weather. It is also the pane that
// shows their savings.
type comparison struct {
	// shows are empty until runs are opened. baseline is one of them, a separate run, or nil.
	shows    []*show
	baseline *show

	// savings are the lines of the runs, up to the time that each had reached when last measured.
	savings []line

	// bound is a lower bound on the cost of any policy, or 0 if unknown.
	bound policy.Money

	// story is an event that distinguishes the runs; nil if there is no such event or runs
	// continue.
	story *story

	// now is the time of all frames.
	now policy.Time
}

// open shows other runs.
func (c *comparison) open(o *Opened) {
	c.shows, c.baseline = nil, nil
	for _, r := range o.Runs {
		s := newShow(r)
		c.shows = append(c.shows, s)
		if o.Baseline == r.Timeline {
			c.baseline = s
		}
	}
	if o.Baseline != nil && c.baseline == nil {
		c.baseline = newShow(Run{Name: "on-demand", Timeline: o.Baseline})
	}
	c.bound = 0
	c.measure()
	c.tell()
}

// tell determines the story once all runs have ended.
func (c *comparison) tell() {
	c.story = nil
	if c.simulating() {
		return
	}
	if x, ok := findStory(c.shows); ok {
		c.story = &x
	}
}

// at moves all runs to an instant.
func (c *comparison) at(now policy.Time) {
	c.now = now
	for _, s := range c.all() {
		s.at(now)
	}
}

// look updates the progress of the runs.
func (c *comparison) look() {
	news := false
	for _, s := range c.all() {
		news = s.look(s.Timeline, &s.inventory) || news
	}
	if news {
		c.measure()
		c.tell()
	}
}

// simulating reports whether a run has not ended yet.
func (c *comparison) simulating() bool {
	return slices.ContainsFunc(c.all(), func(s *show) bool { return !s.done })
}

// err returns the errors of failed runs.
func (c *comparison) err() (err error) {
	for _, s := range c.all() {
		if s.err != nil {
			err = errors.Join(err, fmt.Errorf("policy %s: %w", s.Name, s.err))
		}
	}
	return err
}

// all returns the runs and the baseline, each once.
func (c *comparison) all() []*show {
	if c.baseline == nil || c.isShown(c.baseline) {
		return c.shows
	}
	return append(append([]*show{}, c.shows...), c.baseline)
}

func (c *comparison) isShown(s *show) bool { return slices.Contains(c.shows, s) }

// A line is the savings of one run over time against the baseline, or its cost without one.
type line struct {
	show *show
	draw.Series
}

// measure computes the lines of all runs: net savings against the baseline, or the cost of each run
// without one.
func (c *comparison) measure() {
	c.savings = c.savings[:0]
	for i, s := range c.shows {
		if s == c.baseline && len(c.shows) > 1 {
			continue
		}
		l := line{show: s, Series: draw.Series{Name: s.Name, Key: letter(i), Ink: draw.SeriesInk(i), Straight: true}}
		for _, p := range s.costs {
			base, ok := policy.Money(0), true
			if c.baseline != nil {
				base, ok = spentAt(c.baseline.costs, p.At)
			}
			if !ok {
				break // the baseline has not reached this time
			}
			value := (base - spent(&p.Costs)).Float()
			if c.baseline == nil {
				value = -value
			}
			l.At, l.Value = append(l.At, p.At), append(l.Value, value)
		}
		c.savings = append(c.savings, l)
	}
}

// spent returns the sum of bill and outage cost.
func spent(c *timeline.Costs) policy.Money { return c.Bill + c.OutageCost }

// spentAt returns the costs of a run at an instant, interpolated linearly between the adjacent
// points. It returns false for an instant that the run has not reached.
func spentAt(points []timeline.CostPoint, at policy.Time) (policy.Money, bool) {
	i, found := slices.BinarySearchFunc(points, at, func(p timeline.CostPoint, at policy.Time) int {
		return int(min(max(p.At-at, -1), 1))
	})
	switch {
	case found:
		return spent(&points[i].Costs), true
	case i == 0 || i == len(points):
		return 0, false
	}
	a, b := &points[i-1], &points[i]
	part := float64(at-a.At) / float64(b.At-a.At)
	return spent(&a.Costs) + (spent(&b.Costs) - spent(&a.Costs)).Times(part), true
}

// saved returns the net savings of a run at the time shown. It returns false if there is no
// baseline or a run has not reached that time.
func (c *comparison) saved(s *show) (policy.Money, bool) {
	if c.baseline == nil || c.baseline == s || c.now > min(c.baseline.until, s.until) {
		return 0, false
	}
	return spent(&c.baseline.frame.Costs) - spent(&s.frame.Costs), true
}

// attainable returns the upper bound on savings that the oracle determined, and the on-demand bill
// of the whole run. It returns false while they are unknown. With GPU budgets there is no such
// bound, since a closed gate lowers a bill.
func (c *comparison) attainable() (saved, bill policy.Money, ok bool) {
	b := c.baseline
	if c.bound <= 0 || b == nil || !b.done || b.err != nil || len(b.costs) == 0 || len(b.gpuBudgets) > 0 {
		return 0, 0, false
	}
	last := &b.costs[len(b.costs)-1].Costs
	return spent(last) - c.bound, last.Bill, true
}

// partOf formats the saved share of an on-demand bill, or a dash if there is no bill yet. Net
// savings above the whole bill are possible if on-demand had outage costs; [comparison.ofRun]
// explains them.
func partOf(saved, bill policy.Money) string {
	if bill <= 0 {
		return figures.Unknown
	}
	return atMostAll(saved.Float() / bill.Float())
}

// atMostAll formats a share of an on-demand bill. A share above 1 is shown as ">100%".
func atMostAll(part float64) string {
	if part > 1 {
		return ">100%"
	}
	return figures.RoughShare(part)
}

// share returns [partOf] in brackets for use after an amount, or empty if there is no percentage.
func share(saved, bill policy.Money) string {
	if bill <= 0 || saved > bill {
		return ""
	}
	return " (" + partOf(saved, bill) + ")"
}

func gain(m policy.Money) draw.Ink {
	if m < 0 {
		return draw.Bad
	}
	return draw.Good
}

// ofPolicy returns the results of the run of a policy, nil if no run has that name.
func (c *comparison) ofPolicy(name string) []draw.Section {
	for _, s := range c.all() {
		if s.Name == name {
			return c.ofRun(s)
		}
	}
	return nil
}

func (c *comparison) ofRun(s *show) []draw.Section {
	k := &s.frame.Costs
	outages := append([]draw.Item{{Key: "outage cost", Value: figures.Dollars(k.OutageCost.Float())}},
		outageItems(&k.Outages)...)
	if s.about.Recorded {
		outages = []draw.Item{{Key: "outage cost", Value: "not known: a recording has the instants of decisions alone",
			Ink: draw.Muted}}
	}
	so := draw.Section{Title: "So far, at the time shown", Items: slices.Concat([]draw.Item{{Key: "bill",
		Value: figures.Dollars(k.Bill.Float())}}, outages, []draw.Item{
		{Key: "notices", Value: figures.Integer(k.Notices) + " of reclaims to come"},
		{Key: "reclaims", Value: figures.Integer(k.Reclaims) + " of nodes that still ran"}, {Key: "evictions",
			Value: figures.Integer(k.Evictions) + " by choice"},
		{Key: "nodes", Value: fmt.Sprintf("%d, of which %d spot", k.Nodes, k.SpotNodes)}})}
	if k.Size > 0 {
		so.Items = append(so.Items,
			draw.Item{Key: "spot share", Value: figures.RoughShare(float64(k.SpotSize) / float64(k.Size))})
	}
	if loss := lossBudget(s); loss != "" {
		so.Items = append(so.Items, draw.Item{Key: "loss budget", Value: strings.TrimPrefix(loss, "loss budget ")})
	}
	if saved, ok := c.saved(s); ok {
		so.Items = append(so.Items, draw.Item{Key: "net savings", Value: figures.DollarChange(saved.Float()) +
			share(saved, c.baseline.frame.Costs.Bill), Ink: gain(saved)})
		if b := &c.baseline.frame.Costs; saved > b.Bill && b.Bill > 0 {
			so.Items = append(so.Items,
				draw.Item{Key: "above 100%", Value: fmt.Sprintf("on-demand paid %s and had outages of %s: both are saved",
					figures.Dollars(b.Bill.Float()), figures.Dollars(b.OutageCost.Float()))})
		}
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
		end.Items = append([]draw.Item{{Key: "bill", Value: figures.Dollars(r.Bill.Float())},
			{Key: "outage cost", Value: figures.Dollars(r.OutageCost.Float())}}, outageItems(&r.Outages)...)
		end.Items = append(end.Items, []draw.Item{
			{Key: "availability", Value: figures.Share(r.Availability, 3)}, {Key: "spot share",
				Value: figures.RoughShare(r.SpotShare)},
			{Key: "decisions", Value: figures.Integer(r.Decisions)}, {Key: "hash", Value: fmt.Sprintf("%x", r.Hash[:8])}}...)
	}
	return []draw.Section{so, end}
}

// outageItems describe the outages: their total, their sources and the longest.
func outageItems(o *sim.Outages) []draw.Item {
	items := []draw.Item{{Key: "outages", Value: figures.Count(o.OutageMinutes, "minute") + " in " +
		figures.Count(o.Incidents, "incident") +
		", " + figures.Count(o.PodsAffected, "pod")}}
	if o.Incidents > 0 {
		items = append(items, draw.Item{Key: "they are", Value: o.Sources()},
			draw.Item{Key: "longest", Value: o.Longest.String()})
	}
	return items
}
