package screen

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/tui/draw"
	"github.com/spotter-dev/spotter/eval/timeline"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/sim"
)

// lists are what the panes of one run show, ready to be drawn.
type lists struct {
	grid draw.Grid

	// markets are rows of the table, ids the places of the markets in them, and
	// likewise workloads and budgets.
	markets     []draw.MarketRow
	marketIDs   []int32
	workloads   []draw.WorkloadRow
	workloadIDs []int32
	budgets     []draw.BudgetRow
	budgetIDs   []int32

	// charted are the markets in the charts, the first in the chart first.
	charted         []int32
	prices, hazards draw.Chart
	chartedUntil    policy.Time

	// log holds the entries of the decisions around the shown time, and entries
	// which of them each one is.
	log     draw.Log
	entries []entryID
	logged  *logKey // nil before the first time

	reclaimed []int32 // per market, up to the shown time
}

// list makes what the panes of s show of its frame.
func (s *show) list(m *Model) {
	now := m.at()
	s.listNodes(now, m.filters[Nodes], m.chosen[Nodes])
	s.listMarkets(now, m.filters[Markets], m.chosen[Markets])
	s.listWorkloads(now, m.filters[Workloads])
	s.listBudgets(m.filters[Budgets])
	s.listDecisions(now, m.filters[Decisions], m.withHolds())
}

// matches reports whether the words of a filter, in lower case, all stand in one
// of the texts.
func matches(filter string, texts ...string) bool {
	if filter == "" {
		return true
	}
	for word := range strings.FieldsSeq(filter) {
		if !slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(strings.ToLower(t), word) }) {
			return false
		}
	}
	return true
}

// nothingHas says that a filter lets nothing through.
func nothingHas(filter string) string { return "nothing here has “" + filter + "”" }

// listNodes leaves those that the filter lets through. What is in danger can be
// filtered for by its phase and by "notice" and "rebalance".
func (s *show) listNodes(now policy.Time, filter, selected string) {
	g := &s.grid
	if len(g.Markets) != len(s.markets) {
		g.Pools, g.Markets = s.pools, make([]draw.GridMarket, len(s.markets))
		for i, m := range s.markets {
			g.Markets[i] = draw.GridMarket{Type: m.Type, Zone: m.Zone, Spot: m.Spot}
		}
	}
	for i := range s.frame.Markets {
		g.Markets[i].Price = s.frame.Markets[i].Price
	}
	g.Now, g.Selected, g.Empty = now, selected, "no nodes"
	if filter == "" {
		g.Nodes = s.frame.Nodes
		return
	}
	g.Nodes, g.Empty = nil, nothingHas(filter)
	for i := range s.frame.Nodes {
		n := &s.frame.Nodes[i]
		if matches(filter, n.Name, s.poolName(n.Pool), s.marketName(n.Market), n.Phase.String(), capacity(n.Spot), dangerOf(n)) {
			g.Nodes = append(g.Nodes, *n)
		}
	}
}

func (s *show) poolName(i int32) string {
	if i < 0 {
		return "no pool"
	}
	return s.pools[i]
}

func (s *show) marketName(i int32) string {
	if i < 0 {
		return "unknown market"
	}
	return s.markets[i].Name
}

func capacity(spot bool) string {
	if spot {
		return "spot"
	}
	return "on-demand"
}

func dangerOf(n *timeline.Node) string {
	switch {
	case n.Notice != 0:
		return "notice"
	case n.Recommended:
		return "rebalance recommended"
	}
	return ""
}

// listMarkets puts those first in which most nodes are.
func (s *show) listMarkets(now policy.Time, filter, selected string) {
	s.reclaimed = slices.Grow(s.reclaimed[:0], len(s.markets))[:len(s.markets)]
	clear(s.reclaimed)
	for _, r := range s.reclaims {
		if r.at <= now && r.market >= 0 {
			s.reclaimed[r.market]++
		}
	}
	s.marketIDs = s.marketIDs[:0]
	for i := range s.markets {
		if matches(filter, s.markets[i].Name) {
			s.marketIDs = append(s.marketIDs, int32(i))
		}
	}
	slices.SortStableFunc(s.marketIDs, func(a, b int32) int { return cmp.Compare(s.inUse[b], s.inUse[a]) })
	s.chart(now, selected)
	s.marketsRows()
}

func (s *show) marketsRows() {
	s.lists.markets = s.lists.markets[:0]
	for _, id := range s.marketIDs {
		m, f := &s.markets[id], &s.frame.Markets[id]
		row := draw.MarketRow{Type: m.Type, Zone: s.shortZone(m.Zone), Spot: m.Spot, Price: f.Price, OnDemand: m.OnDemand, Hazard: f.Hazard,
			Nodes: int(s.inUse[id]), Reclaims: int(s.reclaimed[id])}
		if i := slices.Index(s.charted, id); i >= 0 {
			row.Key, row.Ink = letter(i), draw.SeriesInk(i)
		}
		s.lists.markets = append(s.lists.markets, row)
	}
}

func (s *show) listWorkloads(now policy.Time, filter string) {
	s.workloadIDs, s.lists.workloads = s.workloadIDs[:0], s.lists.workloads[:0]
	for i := range s.workloads {
		if w := &s.workloads[i]; matches(filter, w.Name, w.Kind.String()) {
			s.workloadIDs = append(s.workloadIDs, int32(i))
		}
	}
	// Nobody misses a DaemonSet: they come last.
	slices.SortStableFunc(s.workloadIDs, func(a, b int32) int { return cmp.Compare(s.rank(a), s.rank(b)) })
	for _, i := range s.workloadIDs {
		w, f := &s.workloads[i], &s.frame.Workloads[i]
		total := s.outageOf(i, now).total
		desired := f.Desired
		if w.Kind == policy.KindDaemonSet {
			desired = max(desired, f.Ready) // it wants a pod on every node, whatever is written
		}
		s.lists.workloads = append(s.lists.workloads, draw.WorkloadRow{Name: w.Name, Kind: w.Kind.String(), Ready: f.Ready, Required: f.Required,
			Desired: desired, OnSpot: f.OnSpot, Out: f.Ready < f.Required, Outage: sim.OutageMinutes(total)})
	}
}

func (s *show) rank(workload int32) int {
	if s.workloads[workload].Kind == policy.KindDaemonSet {
		return 1
	}
	return 0
}

func (s *show) listBudgets(filter string) {
	s.budgetIDs, s.lists.budgets = s.budgetIDs[:0], s.lists.budgets[:0]
	for i := range s.budgets {
		b, f := &s.budgets[i], &s.frame.Budgets[i]
		if !matches(filter, b.Name) {
			continue
		}
		row := draw.BudgetRow{Name: b.Name, GPUHours: f.GPUHours, Dollars: f.Dollars, Spent: f.Spent, Closed: f.Closed}
		if b.HasGPUHours {
			row.HourMax = b.GPUHours
		}
		if b.HasDollars {
			row.MoneyMax = b.Dollars
		}
		s.budgetIDs = append(s.budgetIDs, int32(i))
		s.lists.budgets = append(s.lists.budgets, row)
	}
}

// An entryID is the place of a decision and of one of its entries.
type entryID struct{ decision, entry int }

// follow selects what was decided last, whenever that is.
var follow = entryID{-1, -1}

// A logKey is what the entries of a log depend on.
type logKey struct {
	middle, decisions int
	filter            string
	holds             bool
}

// How many entries of decisions are kept before and after the shown time, and
// how many decisions are looked through for those that a filter lets through.
const (
	entriesBefore, entriesAfter = 240, 60
	decisionsLooked             = 1500
)

// listDecisions gathers the entries around the shown time.
func (s *show) listDecisions(now policy.Time, filter string, holds bool) {
	middle, n := s.frame.Decision, s.decisions
	if s.entry != follow {
		middle = s.entry.decision
	}
	of := func(i int) int { return i }
	if !holds {
		i, found := slices.BinarySearch(s.acts, middle)
		if !found {
			i--
		}
		middle, n, of = i, len(s.acts), func(i int) int { return s.acts[i] }
	}
	if k := (logKey{middle, n, filter, holds}); s.logged == nil || k != *s.logged {
		s.logged = &k
		s.gather(middle, n, of, filter, holds)
	}
	s.log.Now, s.log.Selected = now, s.selectedEntry(s.entry)
	switch {
	case filter != "":
		s.log.Empty = "no decision near this time has “" + filter + "”"
	case !holds && s.frame.Decision >= 0:
		s.log.Empty = "nothing was changed so far; a shows what was held back"
	default:
		s.log.Empty = "nothing decided yet"
	}
	if filter != "" && !holds {
		s.log.Empty += "; a looks among holds too"
	}
}

// gather reads the entries around the one in the middle of n decisions, of which
// the i-th is of(i) in the timeline.
func (s *show) gather(middle, n int, of func(int) int, filter string, holds bool) {
	var at []policy.Time
	var entries []timeline.Entry
	s.entries = s.entries[:0]
	passes := func(e *timeline.Entry) bool { return (holds || e.Verb != timeline.Hold) && entryMatches(filter, e) }
	first, count := middle, 0
	for ; first >= 0 && count < entriesBefore && middle-first < decisionsLooked; first-- {
		d := s.Timeline.Decision(of(first))
		for k := range d.Entries {
			if passes(&d.Entries[k]) {
				count++
			}
		}
	}
	count = 0
	for i := max(first+1, 0); i < n && (i <= middle || count < entriesAfter && i-middle < decisionsLooked); i++ {
		d := s.Timeline.Decision(of(i))
		for k := range d.Entries {
			if !passes(&d.Entries[k]) {
				continue
			}
			at, entries = append(at, d.At), append(entries, s.readable(d.Entries[k]))
			s.entries = append(s.entries, entryID{of(i), k})
			if i > middle {
				count++
			}
		}
	}
	s.log.Entries = draw.Group(at, entries)
}

// readable returns an entry with markets written as everywhere on the screen.
func (s *show) readable(e timeline.Entry) timeline.Entry {
	e.Market, e.Why.RunnerUp = s.place(e.Market), s.place(e.Why.RunnerUp)
	return e
}

func entryMatches(filter string, e *timeline.Entry) bool {
	return filter == "" || matches(filter, e.Verb.String(), e.Subject, e.Pool, e.Market, string(e.Why.Reason), e.Why.Text, e.Detail)
}

// selectedEntry returns the place in the log of the entry chosen, or of the first
// one of what was decided last.
func (s *show) selectedEntry(at entryID) int {
	selected := -1
	for i := range s.log.Entries {
		e := &s.log.Entries[i]
		id := s.entries[e.First]
		switch {
		case at == follow && id.decision > s.frame.Decision:
			return selected
		case at == follow && (selected < 0 || s.entries[s.log.Entries[selected].First].decision != id.decision):
			selected = i
		case at != follow && id.decision == at.decision && at.entry >= id.entry && at.entry < id.entry+max(e.Count, 1):
			return i
		}
	}
	return selected
}

// What entries do: moving changes nodes or pods at once; acting is all but to hold
// something back; judging is all but to rank, which says of a node only when its
// pods leave as workloads shrink.
var (
	moving  = []timeline.Verb{timeline.Launch, timeline.Drain, timeline.Gate, timeline.Pause, timeline.Evict}
	acting  = append([]timeline.Verb{timeline.Steer, timeline.Rank}, moving...)
	judging = append([]timeline.Verb{timeline.Steer, timeline.Hold}, moving...)
)

// does reports whether a decision has an entry of one of the verbs.
func does(d *timeline.Decision, verbs []timeline.Verb) bool {
	return slices.ContainsFunc(d.Entries, func(e timeline.Entry) bool { return slices.Contains(verbs, e.Verb) })
}

// withHolds reports whether what was held back is among the decisions: a viewer
// who filters for it wants to see it.
func (m *Model) withHolds() bool {
	return m.holds || slices.Contains(strings.Fields(m.filters[Decisions]), timeline.Hold.String())
}
