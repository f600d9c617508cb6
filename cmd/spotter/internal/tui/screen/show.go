package screen

import (
	"slices"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/eval/timeline"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/sim"
)

// A Run is one run to show.
type Run struct {
	// Name is the policy as the viewer wrote it.
	Name     string
	Timeline *timeline.Timeline

	// Synthetic says that the prices of a recording are; a run knows it of itself.
	Synthetic bool
}

// A show is a run on the screen: what never changes of it, what has happened so
// far, and how it is at the shown time.
type show struct {
	Run

	about            timeline.About
	warmup, from, to policy.Time
	pools            []string
	markets          []timeline.MarketInfo
	workloads        []timeline.WorkloadInfo
	budgets          []timeline.BudgetInfo

	// until is how far the run had come when it was last looked at; done and err
	// say that it has ended, and how.
	until policy.Time
	done  bool
	err   error

	// events and decisions are how many were there then. What follows was read from
	// them: the nodes that the provider took, the times in which a workload had less
	// than it must, the places of the decisions that did more than hold something
	// back, and when one moved something; each ascending.
	events, decisions int
	reclaims          []reclaim
	outages           []outage
	acts              []int
	moved             []policy.Time

	// frame is the run at the shown time, inUse the nodes of each market in it.
	frame timeline.Frame
	inUse []int32

	// entry is what is selected among the decisions.
	entry entryID

	// past is an instant before, for what is gone.
	past timeline.Frame

	costs []timeline.CostPoint

	// region is what the names of all zones begin with.
	region string

	lists
}

// A reclaim is one node taken by the provider.
type reclaim struct {
	at     policy.Time
	market int32
}

// An outage is a time in which a workload had less than it must; to is 0 while it
// lasts.
type outage struct {
	from, to policy.Time
	workload int32
}

// costPoints is how many points a line of costs has: more than the widest chart
// has columns of braille dots.
const costPoints = 500

func newShow(r Run) *show {
	s := &show{Run: r, about: r.Timeline.About(), pools: r.Timeline.Pools(), markets: r.Timeline.Markets(),
		workloads: r.Timeline.Workloads(), budgets: r.Timeline.Budgets(), entry: follow}
	s.warmup, s.from, s.to = r.Timeline.Span()
	s.inUse = make([]int32, len(s.markets))
	s.region = region(s.markets)
	s.look()
	return s
}

// region returns what the names of all zones begin with up to a hyphen: "us-east-"
// of "us-east-1a" and "us-east-1b".
func region(markets []timeline.MarketInfo) string {
	if len(markets) == 0 {
		return ""
	}
	all := markets[0].Zone
	for i := range markets {
		for !strings.HasPrefix(markets[i].Zone, all) {
			all = all[:len(all)-1]
		}
	}
	return all[:strings.LastIndexByte(all, '-')+1]
}

// shortZone is the name of a zone without the region that all have.
func (s *show) shortZone(zone string) string { return strings.TrimPrefix(zone, s.region) }

// look reads what has happened since it was last called. It reports whether
// anything has.
func (s *show) look() bool {
	if s.done {
		return false
	}
	// How far it has come is read first: all up to there is then there.
	_, err, done := s.Timeline.Ended()
	until := s.Timeline.Until()
	if until == s.until && done == s.done {
		return false
	}
	s.until, s.done, s.err = until, done, err
	for n := s.Timeline.Events(); s.events < n; s.events++ {
		s.happened(s.Timeline.Event(s.events))
	}
	for n := s.Timeline.Decisions(); s.decisions < n; s.decisions++ {
		d := s.Timeline.Decision(s.decisions)
		if does(&d, acting) {
			s.acts = append(s.acts, s.decisions)
		}
		if does(&d, moving) {
			s.moved = append(s.moved, d.At)
		}
	}
	s.costs = s.Timeline.Costs(costPoints, s.costs[:0])
	return true
}

// happened notes what of an event is shown on more than the log.
func (s *show) happened(e timeline.Event) {
	switch e.Kind {
	case timeline.Reclaimed:
		s.reclaims = append(s.reclaims, reclaim{e.At, s.market(e.Object)})
	case timeline.OutageBegan:
		s.outages = append(s.outages, outage{from: e.At, workload: s.workload(e.Subject)})
	case timeline.OutageEnded:
		w := s.workload(e.Subject)
		for i := len(s.outages) - 1; i >= 0; i-- {
			if o := &s.outages[i]; o.workload == w && o.to == 0 {
				o.to = e.At
				return
			}
		}
	}
}

// at brings the frame to an instant.
func (s *show) at(at policy.Time) {
	s.Timeline.At(at, &s.frame)
	clear(s.inUse)
	for i := range s.frame.Nodes {
		if m := s.frame.Nodes[i].Market; m >= 0 {
			s.inUse[m]++
		}
	}
}

// market returns the place of a market in the table of them, -1 without it.
func (s *show) market(name string) int32 {
	i, ok := slices.BinarySearchFunc(s.markets, name, func(m timeline.MarketInfo, name string) int {
		if m.Name < name {
			return -1
		}
		if m.Name > name {
			return 1
		}
		return 0
	})
	if !ok {
		return -1
	}
	return int32(i)
}

func (s *show) workload(name string) int32 {
	return int32(slices.IndexFunc(s.workloads, func(w timeline.WorkloadInfo) bool { return w.Name == name }))
}

// node returns the node of that name in the frame, nil without it.
func (s *show) node(name string) *timeline.Node {
	return nodeIn(&s.frame, name)
}

func nodeIn(f *timeline.Frame, name string) *timeline.Node {
	for i := range f.Nodes {
		if f.Nodes[i].Name == name {
			return &f.Nodes[i]
		}
	}
	return nil
}

// An outageSum is what the outages of a workload come to within the window, up to an
// instant: how long it had less than it must, in how many incidents, and the longest of
// these. now says that it has less at that instant.
type outageSum struct {
	total, longest time.Duration
	incidents      int
	began          policy.Time // the longest
	now            bool
}

// outageOf sums up the outages of a workload, those that join to an incident as one.
func (s *show) outageOf(workload int32, at policy.Time) (sum outageSum) {
	var incident time.Duration
	var began, until policy.Time
	for _, o := range s.outages {
		if o.workload != workload || o.from > at {
			continue
		}
		from, to := max(o.from, s.from), o.to
		if to == 0 || to > at {
			to, sum.now = at, true
		}
		if to <= from {
			continue
		}
		if sum.incidents == 0 || from.Sub(until) >= sim.IncidentGap {
			sum.incidents++
			incident, began = 0, from
		}
		until = to
		incident += to.Sub(from)
		sum.total += to.Sub(from)
		if incident > sum.longest {
			sum.longest, sum.began = incident, began
		}
	}
	return sum
}
