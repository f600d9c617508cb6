package screen

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/eval/timeline"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/sim"
)

// A Run is a run to show.
type Run struct {
	// Name is the policy as the viewer wrote it.
	Name     string
	Timeline *timeline.Timeline

	// Synthetic reports that the prices of a recording are synthetic. It need not be set for a
	// simulated run.
	Synthetic bool
}

// A run is the data of one run: its constants, the events so far, and its state at the time shown.
type run struct {
	Run
	inventory
	progress

	// frame is the state of the run at the time shown, and inUse the number of nodes in each
	// market.
	frame timeline.Frame
	inUse []int32
}

func newRun(r Run) *run {
	x := &run{Run: r, inventory: newInventory(r.Timeline)}
	x.inUse = make([]int32, len(x.markets))
	x.look(r.Timeline, &x.inventory)
	return x
}

// synthetic reports whether the prices of the run are synthetic.
func (p *run) synthetic() bool { return p.Synthetic || p.about.Trace.Synthetic }

// at updates the frame to an instant.
func (p *run) at(at policy.Time) {
	p.Timeline.At(at, &p.frame)
	clear(p.inUse)
	for i := range p.frame.Nodes {
		if m := p.frame.Nodes[i].Market; m >= 0 {
			p.inUse[m]++
		}
	}
}

// nodeIn returns the node with a name in a frame, or nil.
func nodeIn(f *timeline.Frame, name string) *timeline.Node {
	for i := range f.Nodes {
		if f.Nodes[i].Name == name {
			return &f.Nodes[i]
		}
	}
	return nil
}

// An inventory is the constant data of a run: its interval, and the names that its events,
// decisions and frames use.
type inventory struct {
	about            timeline.About
	warmup, from, to policy.Time
	pools            []string
	markets          []timeline.MarketInfo // ascending by name
	workloads        []timeline.WorkloadInfo
	gpuBudgets       []timeline.BudgetInfo

	// region is the common prefix of the names of all zones.
	region string
}

func newInventory(t *timeline.Timeline) inventory {
	v := inventory{about: t.About(), pools: t.Pools(), markets: t.Markets(), workloads: t.Workloads(),
		gpuBudgets: t.Budgets()}
	v.warmup, v.from, v.to = t.Span()
	v.region = region(v.markets)
	return v
}

// region returns the common prefix of the names of all zones up to a hyphen: "us-east-" for
// "us-east-1a" and "us-east-1b".
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

// shortZone returns the name of a zone without the common prefix.
func (v *inventory) shortZone(zone string) string { return strings.TrimPrefix(zone, v.region) }

// market returns the index of a market, or -1 if it is unknown. workload and gpuBudget do the same
// for workloads and GPU budgets.
func (v *inventory) market(name string) int32 {
	i, ok := slices.BinarySearchFunc(v.markets, name, func(m timeline.MarketInfo,
		name string) int {
		return cmp.Compare(m.Name, name)
	})
	if !ok {
		return -1
	}
	return int32(i)
}

func (v *inventory) workload(name string) int32 {
	return int32(slices.IndexFunc(v.workloads, func(w timeline.WorkloadInfo) bool { return w.Name == name }))
}

func (v *inventory) gpuBudget(name string) int32 {
	return int32(slices.IndexFunc(v.gpuBudgets, func(b timeline.BudgetInfo) bool { return b.Name == name }))
}

func (v *inventory) poolName(i int32) string {
	if i < 0 {
		return "no pool"
	}
	return v.pools[i]
}

func (v *inventory) marketName(i int32) string {
	if i < 0 {
		return "unknown market"
	}
	return v.markets[i].Name
}

// place describes a market by type, zone and capacity type. A name that is not a market's is
// returned unchanged.
func (v *inventory) place(name string) string {
	i := v.market(name)
	if i < 0 {
		return name
	}
	m := &v.markets[i]
	return m.Type + " " + m.Zone + " " + capacity(m.Spot)
}

// A progress is the events of a run up to until. Each is read from the timeline once.
type progress struct {
	// until is the progress of the run at the last look; done reports that it has ended, and err is
	// its error.
	until policy.Time
	done  bool
	err   error

	// events and decisions are the numbers read so far. The fields that follow were derived from
	// them: reclaims, outages, the indexes of the decisions that did more than hold something back,
	// and the times of decisions that moved something, all ascending.
	events, decisions int
	reclaims          []reclaim
	outages           []outage
	acts              []int
	moved             []policy.Time

	costs []timeline.CostPoint
}

// A reclaim is the reclaim of a node.
type reclaim struct {
	at     policy.Time
	market int32
}

// An outage is an interval in which a workload had fewer ready pods than required; to is 0 until it
// ends.
type outage struct {
	from, to policy.Time
	workload int32
}

// costPoints is the number of points of a cost line, more than the widest chart has columns of
// dots.
const costPoints = 500

// look reads the events since the last call. It reports whether the run has progressed.
func (p *progress) look(line *timeline.Timeline, names *inventory) bool {
	if p.done {
		return false
	}
	// Read the progress first: all events up to it are then available.
	_, err, done := line.Ended()
	until := line.Until()
	if until == p.until && done == p.done {
		return false
	}
	p.until, p.done, p.err = until, done, err
	for n := line.Events(); p.events < n; p.events++ {
		p.happened(line.Event(p.events), names)
	}
	for n := line.Decisions(); p.decisions < n; p.decisions++ {
		d := line.Decision(p.decisions)
		if does(&d, acting) {
			p.acts = append(p.acts, p.decisions)
		}
		if does(&d, moving) {
			p.moved = append(p.moved, d.At)
		}
	}
	p.costs = line.Costs(costPoints, p.costs[:0])
	return true
}

// happened records events that are shown outside the log.
func (p *progress) happened(e timeline.Event, names *inventory) {
	switch e.Kind {
	case timeline.Reclaimed:
		p.reclaims = append(p.reclaims, reclaim{e.At, names.market(e.Object)})
	case timeline.OutageBegan:
		p.outages = append(p.outages, outage{from: e.At, workload: names.workload(e.Subject)})
	case timeline.OutageEnded:
		w := names.workload(e.Subject)
		for i := len(p.outages) - 1; i >= 0; i-- {
			if o := &p.outages[i]; o.workload == w && o.to == 0 {
				o.to = e.At
				return
			}
		}
	}
}

// reclaimed returns the number of nodes reclaimed in a market from the start of the window up to an
// instant.
func (p *run) reclaimed(market int32, at policy.Time) (n int) {
	for _, r := range p.reclaims {
		if r.at >= p.from && r.at <= at && r.market == market {
			n++
		}
	}
	return n
}

// An outageSum summarises the outages of a workload within the window, up to an instant: the total
// time below the required number of pods, the number of incidents, and the longest of these. now
// reports whether there is an outage at that instant.
type outageSum struct {
	total, longest time.Duration
	incidents      int
	began          policy.Time // start of the longest incident
	now            bool
}

// outageOf summarises the outages of a workload since from. Outages that are less than
// sim.IncidentGap apart are one incident.
func (p *progress) outageOf(workload int32, from, at policy.Time) (sum outageSum) {
	var incident time.Duration
	var began, until policy.Time
	for _, o := range p.outages {
		if o.workload != workload || o.from > at {
			continue
		}
		from, to := max(o.from, from), o.to
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
