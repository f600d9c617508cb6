package timeline

import (
	"context"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/eval/evaltest"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/sim"
)

// embedded returns an embedded scenario, cut to length.
func embedded(t testing.TB, name string, length time.Duration) *scenarios.BoundScenario {
	t.Helper()
	w := evaltest.Embedded(t, name)
	if length > 0 {
		w.Duration = min(w.Duration, length)
	}
	return w
}

func config(t testing.TB, w *scenarios.BoundScenario, spec string) sim.Config {
	t.Helper()
	return evaltest.Config(t, w, spec, 5)
}

// observed runs cfg into a timeline.
func observed(t testing.TB, cfg sim.Config, spec string) (*Timeline, *sim.Result) {
	t.Helper()
	tl := New(cfg.Prepared, spec, cfg.Seed)
	tl.Watch(&cfg)
	res, err := sim.Run(context.Background(), cfg)
	tl.Finish(res, err)
	if err != nil {
		t.Fatal(err)
	}
	return tl, res
}

// cases are scenarios in which nodes come and go, are outbid, budgets close gates, and
// faults strike.
var cases = []struct{ scenario, policy string }{
	{"squeeze", "portfolio"}, {"bidding-war", "spotvortex"}, {"gpu-budget", "spotvortex"}, {"zone-outage",
		"spot"}, {"asg-web", "rescheduler"}, {"committed", "static"},
}

const caseLength = 30 * time.Hour

// A plain keeps everything whenever it changes, in the simplest way.
type plain struct {
	sim.RunObserver
	t       *Timeline
	nodes   map[policy.NodeID]Node
	slots   policy.NodeID
	frames  []Frame
	samples []sim.Sample // at whole costSteps
}

func (p *plain) Settled(m *sim.Moment) {
	p.RunObserver.Settled(m)
	for _, id := range m.Nodes() {
		p.slots = max(p.slots, id+1)
	}
	clear(p.nodes) // it looks at all of them: it would miss what was not reported
	for id := range p.slots {
		n, requested, pods, ok := m.Node(id)
		if !ok {
			continue
		}
		x := Node{Name: n.Name, Pool: int32(n.Pool), Market: int32(n.Market), Phase: n.Phase, Spot: p.t.markets[n.Market].Spot, Since: n.Launched,
			CPU: int16(requested.CPU * 1000 / n.Allocatable.CPU), Memory: int16(float64(requested.Memory) / float64(n.Allocatable.Memory) * 1000),
			GPU: -1, Pods: int16(pods), Notice: n.ReclaimAt, Recommended: n.Recommended != 0, By: n.ActedBy}
		if n.Allocatable.GPU > 0 {
			x.GPU = int16(requested.GPU * 1000 / n.Allocatable.GPU)
		}
		p.nodes[id] = x
	}
	f := Frame{At: m.Now}
	for _, n := range p.nodes {
		f.Nodes = append(f.Nodes, n)
	}
	slices.SortFunc(f.Nodes, func(a, b Node) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	for i := range p.t.workloads {
		f.Workloads = append(f.Workloads, Workload(m.Workload(policy.WorkloadID(i))))
	}
	for i := range m.Budgets() {
		f.Budgets = append(f.Budgets, budgetOf(m.Budget(i)))
	}
	for i := range p.t.pools {
		if b, kept := m.LossBudget(policy.PoolID(i)); kept {
			f.LossBudget.Pools++
			f.LossBudget.Left += policy.Dollars(max(0, b.Left))
			if b.Away {
				f.LossBudget.UsedUp++
			}
		}
	}
	c := m.Costs(m.Now)
	f.Costs = costsOf(&c)
	p.frames = append(p.frames, f)
	for k := int64(0); ; k++ {
		at := p.t.warmup.Add(time.Duration(k) * 5 * time.Minute)
		if at >= m.Next {
			break
		}
		if at >= m.Now {
			p.samples = append(p.samples, m.Costs(at))
		}
	}
}

// TestAtIsReplay compares the frame of many instants, in any order and into one
// Frame, with what a plain replay has there; and costs at whole five minutes, and
// at the end, with what the simulator says.
func TestAtIsReplay(t *testing.T) {
	for _, c := range cases {
		t.Run(c.scenario+" "+c.policy, func(t *testing.T) {
			cfg := config(t, embedded(t, c.scenario, caseLength), c.policy)
			tl := New(cfg.Prepared, c.policy, cfg.Seed)
			tl.Watch(&cfg)
			p := &plain{RunObserver: cfg.Observer, t: tl, nodes: map[policy.NodeID]Node{}}
			cfg.Observer = p
			res, err := sim.Run(context.Background(), cfg)
			tl.Finish(res, err)
			if err != nil {
				t.Fatal(err)
			}
			seed := uint64(time.Now().UnixNano())
			rnd := rand.New(rand.NewPCG(seed, 1))
			begin, _, to := tl.Span()
			var f Frame
			for range 500 {
				at := begin + policy.Time(rnd.Int64N(int64(to-begin+1)))
				k := len(p.frames) - 1
				for p.frames[k].At > at {
					k--
				}
				tl.At(at, &f)
				want := p.frames[k]
				if f.At != at || !slices.Equal(f.Nodes, want.Nodes) || !slices.Equal(f.Workloads, want.Workloads) ||
					!slices.Equal(f.Budgets, want.Budgets) ||
					f.LossBudget != want.LossBudget {
					t.Fatalf("seed %d: at %v (since %v)\n%+v\nwant\n%+v", seed, at, want.At, f, want)
				}
				got := Costs{}.with(counts{f.Costs.Notices, f.Costs.Reclaims, f.Costs.Evictions, f.Costs.Nodes, f.Costs.SpotNodes,
					f.Costs.Size, f.Costs.SpotSize})
				want.Costs.Bill, want.Costs.OutageCost, want.Costs.Outages = 0, 0, sim.Outages{}
				if got != want.Costs {
					t.Fatalf("seed %d: at %v %+v, want %+v", seed, at, got, want.Costs)
				}
				i := int(at-begin) / int(costStep)
				low, high := p.samples[i].Bill, res.Bill
				if i+1 < len(p.samples) {
					high = p.samples[i+1].Bill
				}
				if f.Costs.Bill < low || f.Costs.Bill > high {
					t.Fatalf("seed %d: at %v the bill is %v, not in %v … %v", seed, at, f.Costs.Bill, low, high)
				}
			}
			for _, s := range p.samples {
				tl.At(s.At, &f)
				if want := costsOf(&s); f.Costs != want {
					t.Fatalf("at %v %+v, want %+v", s.At, f.Costs, want)
				}
			}
			tl.At(to, &f)
			if f.Costs.Bill != res.Bill || f.Costs.OutageCost != res.OutageCost || f.Costs.Outages != res.Outages ||
				f.Costs.Notices != res.Notices || f.Costs.Reclaims != res.Reclaims || f.Costs.Evictions != res.VoluntaryEvictions {
				t.Errorf("the end is %+v, the result %v, %v, %+v", f.Costs, res.Bill, res.OutageCost, res.Outages)
			}
		})
	}
}

// TestAtNeverChanges reads a timeline from several goroutines while it is filled:
// a frame of an instant up to Until is the same when it is read again at the end.
func TestAtNeverChanges(t *testing.T) {
	cfg := config(t, embedded(t, "squeeze", caseLength), "spotvortex")
	tl := New(cfg.Prepared, "spotvortex", cfg.Seed)
	tl.Watch(&cfg)
	seen := make(chan []Frame)
	for reader := range uint64(3) {
		go func() {
			rnd := rand.New(rand.NewPCG(reader, 2))
			var kept []Frame
			for {
				begin, _, _ := tl.Span()
				until := tl.Until()
				if until >= begin {
					var f Frame
					at := until // where what is yet to come could show
					if rnd.IntN(2) == 0 {
						at = begin + policy.Time(rnd.Int64N(int64(until-begin+1)))
					}
					tl.At(at, &f)
					kept = append(kept, f)
					if f.Decision >= 0 {
						tl.Decision(f.Decision)
					}
					if f.Event >= 0 {
						tl.EventsAbout(tl.Event(f.Event).Subject, at, 10, nil)
					}
					tl.NextEvent(at, Reclaimed, OutageBegan)
					tl.Costs(50, nil)
				}
				if _, _, done := tl.Ended(); done || len(kept) >= 150 {
					seen <- kept
					return
				}
			}
		}()
	}
	res, err := sim.Run(context.Background(), cfg)
	tl.Finish(res, err)
	total := 0
	for range 3 {
		for _, f := range <-seen {
			var again Frame
			tl.At(f.At, &again)
			total++
			if !reflect.DeepEqual(f, again) {
				t.Fatalf("at %v there was\n%+v\nand later\n%+v", f.At, f, again)
			}
		}
	}
	if r, e, done := tl.Ended(); r != res || e != nil || !done || err != nil || total == 0 {
		t.Errorf("ended with %v, %v, %v after %d frames", r, e, done, total)
	}
}

// TestWatchChangesNothing compares hashes with and without a timeline.
func TestWatchChangesNothing(t *testing.T) {
	for _, c := range cases {
		w := embedded(t, c.scenario, caseLength)
		_, res := observed(t, config(t, w, c.policy), c.policy)
		plain, err := sim.Run(context.Background(), config(t, w, c.policy))
		if err != nil || plain.Hash != res.Hash {
			t.Errorf("%s: hashes %x and %x, %v", c.scenario, plain.Hash[:4], res.Hash[:4], err)
		}
	}
}

// TestEvents goes through the events forth and back.
func TestEvents(t *testing.T) {
	tl, res := observed(t, config(t, embedded(t, "squeeze", caseLength), "static"), "static")
	_, from, _ := tl.Span()
	count := map[Kind]int64{}
	for i := range tl.Events() {
		if e := tl.Event(i); e.At >= from {
			count[e.Kind]++
		}
	}
	if count[Launched] != res.Launches || count[Noticed] != res.Notices || count[Reclaimed] != res.Reclaims ||
		count[Refused] != res.Refusals || count[Draining] != res.Drains {
		t.Errorf("%v, the result has %d launches, %d notices, %d reclaims, %d refusals, %d drains", count, res.Launches,
			res.Notices, res.Reclaims, res.Refusals, res.Drains)
	}
	for _, kinds := range [][]Kind{nil, {Reclaimed}, {Reclaimed, OutageBegan}} {
		var forth, back []policy.Time
		for i, ok := tl.NextEvent(0, kinds...); ok; i, ok = tl.NextEvent(tl.Event(i).At, kinds...) {
			forth = append(forth, tl.Event(i).At)
		}
		for i, ok := tl.PreviousEvent(tl.Until()+1, kinds...); ok; i, ok = tl.PreviousEvent(tl.Event(i).At, kinds...) {
			back = append(back, tl.Event(i).At)
		}
		slices.Reverse(back)
		if !slices.Equal(forth, back) || len(forth) == 0 {
			t.Errorf("%v: %d instants forth, %d back", kinds, len(forth), len(back))
		}
	}
	i, ok := tl.NextEvent(0, Reclaimed)
	if !ok {
		t.Fatal("nothing was reclaimed")
	}
	e := tl.Event(i)
	about := tl.EventsAbout(e.Subject, e.At, 100, nil)
	if !slices.Contains(about, i) {
		t.Errorf("what is said about %s leaves its end out", e.Subject)
	}
	first := tl.Event(about[len(about)-1])
	if first.Kind != Launched || first.Object != e.Object {
		t.Errorf("the first of %s, which was reclaimed in %s, is %+v", e.Subject, e.Object, first)
	}
	for _, k := range about {
		if x := tl.Event(k); x.Subject != e.Subject && x.Object != e.Subject {
			t.Errorf("%+v is not about %s", x, e.Subject)
		}
	}
}

// TestOutages: what is reported of outages adds up to the minutes of the result but
// for the grace in which short recoveries count as none, and each one that ends
// began before.
func TestOutages(t *testing.T) {
	tl, res := observed(t, config(t, embedded(t, "black-friday", 0), "spot"), "spot")
	_, from, to := tl.Span()
	open := map[string]policy.Time{}
	ms := int64(0)
	for i := range tl.Events() {
		switch e := tl.Event(i); e.Kind {
		case OutageBegan:
			if open[e.Subject] != 0 || e.Amount <= 0 {
				t.Fatalf("%+v began twice", e)
			}
			open[e.Subject] = e.At
		case OutageEnded:
			if open[e.Subject] == 0 {
				t.Fatalf("%+v never began", e)
			}
			ms += max(0, int64(e.At-max(from, open[e.Subject])))
			delete(open, e.Subject)
		}
	}
	for _, at := range open {
		ms += int64(to - max(from, at))
	}
	if outage := time.Duration(ms) * time.Millisecond; res.OutageMinutes == 0 || outage != res.Outage {
		t.Errorf("outages last %v, the result says %+v", outage, res.Outages)
	}
}

// TestSeries reads prices and costs for a chart.
func TestSeries(t *testing.T) {
	w := embedded(t, "squeeze", caseLength)
	tl, res := observed(t, config(t, w, "spot"), "spot")
	_, from, to := tl.Span()
	var f Frame
	moved := 0
	for m := range tl.Markets() {
		at, price := tl.Prices(m, from, to, 10_000)
		if len(at) != len(price) || len(at) == 0 || at[0] != from {
			t.Fatalf("market %d: %d instants from %v, %d prices", m, len(at), at[0], len(price))
		}
		for i := range at {
			tl.At(at[i], &f)
			if f.Markets[m].Price != price[i] {
				t.Fatalf("market %d at %v is %v, its series says %v", m, at[i], f.Markets[m].Price, price[i])
			}
		}
		if moved += len(at) - 1; len(at) > 6 {
			if few, _ := tl.Prices(m, from, to, 6); len(few) != 6 || few[0] != from || few[5] != to {
				t.Errorf("six points are %v", few)
			}
		}
		if hat, hazards := tl.Hazards(m, from, to, 50); len(hat) != len(hazards) || tl.Markets()[m].Spot && len(hat) == 0 {
			t.Errorf("market %d has %d hazards at %d instants", m, len(hazards), len(hat))
		}
	}
	if moved == 0 {
		t.Error("no price moved")
	}
	points := tl.Costs(25, nil)
	if len(points) != 25 || points[0].At != from || points[24].At != to || points[24].Bill != res.Bill || points[0].Bill != 0 {
		t.Errorf("costs are %+v", points)
	}
}

// A barring policy keeps a loss budget that is used up from and to given times.
type barring struct {
	policy.Policy
	spans [][2]policy.Time
}

func (b barring) Decide(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
	plan, m := b.Policy.Decide(s, m)
	for i := range s.Pools {
		p := m.Pool(s.Pools[i].Name)
		p.Loss = policy.LossBudget{At: s.Now, Left: 2.5}
		for _, span := range b.spans {
			if s.Now >= span[0] && s.Now < span[1] {
				p.Loss.Left, p.Loss.Away = -1, true
			}
		}
		m = m.With(p)
	}
	return plan, m
}

// TestLossBudget: the budget is used up from an hour before the metered window to five hours after its
// start, and for the last two hours. The frames and events have that, the seven metered hours are those
// of the result up to the time between two decisions, and a recording has the same.
func TestLossBudget(t *testing.T) {
	cfg := config(t, embedded(t, "squeeze", caseLength), "static")
	_, metered := cfg.Prepared.Span()
	from, to := metered.From, metered.To
	cfg.Policy = barring{cfg.Policy, [][2]policy.Time{{from.Add(-time.Hour), from.Add(5 * time.Hour)}, {to.Add(-2 * time.Hour), to}}}
	tl, loaded, res, steps := recorded(t, cfg, "static")
	var barred time.Duration
	var since policy.Time
	var f, again Frame
	for i := range tl.Events() {
		switch e := tl.Event(i); e.Kind {
		case LossBudgetUsedUp:
			if since != 0 || e.Subject != tl.Pools()[0] {
				t.Fatalf("%+v follows one at %v", e, since)
			}
			since = e.At
			if tl.At(e.At, &f); f.LossBudget != (LossBudget{Pools: 1, UsedUp: 1}) {
				t.Errorf("at %v the loss budget is %+v", e.At, f.LossBudget)
			}
		case LossBudgetRestored:
			if since == 0 {
				t.Fatalf("%+v has no start", e)
			}
			barred += e.At.Sub(max(since, from))
			since = 0
			if tl.At(e.At, &f); f.LossBudget != (LossBudget{Pools: 1, Left: 2_500_000}) {
				t.Errorf("at %v the loss budget is %+v", e.At, f.LossBudget)
			}
		}
	}
	if since == 0 {
		t.Error("it is not used up in the end")
	}
	if barred += to.Sub(since); barred != res.SpotBarred || (barred-7*time.Hour).Abs() > 20*time.Minute {
		t.Errorf("the pool is on demand for %v, the result says %v", barred, res.SpotBarred)
	}
	for _, at := range steps[:len(steps)-1] {
		tl.At(at, &f)
		if loaded.At(at, &again); f.LossBudget != again.LossBudget {
			t.Fatalf("at %v the loss budget is %+v, recorded is %+v", at, f.LossBudget, again.LossBudget)
		}
	}
	last := steps[len(steps)-1]
	of := func(t *Timeline) (all []Event) {
		for i := range t.Events() {
			if e := t.Event(i); (e.Kind == LossBudgetUsedUp || e.Kind == LossBudgetRestored) && e.At < last {
				all = append(all, e)
			}
		}
		return all
	}
	if a, b := of(tl), of(loaded); !slices.Equal(a, b) {
		t.Errorf("the events are %+v, recorded are %+v", a, b)
	}
}
