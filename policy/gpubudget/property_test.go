package gpubudget

import (
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/policytest"
)

// epoch is a full hour, before every instant of these tests.
var epoch = policy.TimeOf(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))

// A life is one pod, from its binding to its end.
type life struct {
	from, to policy.Time
	gpus     int64
}

// seen returns the snapshot at now of a cluster in which the lives are led, after
// one at before. Each pod has a template of its own.
func seen(lives []life, b policy.Budget, before, now policy.Time) *policy.Snapshot {
	s := &policy.Snapshot{Now: now, Budgets: []policy.Budget{b}, Zones: []string{"z"}}
	s.Types = []policy.InstanceType{{Name: "big", GPUResource: "gpu", Allocatable: policy.Resources{CPU: 1, Memory: 1, GPU: 8, Pods: 99}}}
	s.Markets = []policy.Market{{Name: "m", Offered: true, Price: 8 * policy.Dollar, OnDemand: 8 * policy.Dollar}}
	s.Nodes = []policy.Node{{Name: "n", Phase: policy.NodeInitialized, Pool: policy.None, GPUResource: "gpu",
		Allocatable: s.Types[0].Allocatable}}
	for i, l := range lives {
		s.Templates = append(s.Templates, policy.Template{
			ID: policy.TemplateID(i), Workload: policy.None, Namespace: "ns", GPUResource: "gpu", Requests: policy.Resources{GPU: l.gpus, Pods: 1},
		})
		p := policy.Pod{ID: policy.PodID(i), Template: policy.TemplateID(i), Nominated: policy.None, Node: policy.None, VolumeZone: policy.None}
		switch {
		case l.from <= now && now < l.to:
			p.Name, p.Phase, p.Node, p.Bound = "pod", policy.PodStarting+policy.PodPhase(i%2), 0, l.from
		case l.to <= now && l.to > before:
			s.Ended = append(s.Ended, policy.EndedPod{Template: p.Template, Node: "n", Start: l.from, End: l.to})
		}
		s.Pods = append(s.Pods, p)
	}
	return s
}

// plain sums what the lives used within the window that ends at now, hour by hour; the hour in
// which the window starts counts in proportion.
func plain(lives []life, window time.Duration, now policy.Time) int64 {
	var sum int64
	from := now.Add(-window)
	for hour := from - from%msPerHour; hour < now; hour += msPerHour {
		var used int64
		for _, l := range lives {
			if a, b := max(l.from, hour), min(l.to, hour+msPerHour, now); b > a {
				used += int64(b-a) * l.gpus * 1000
			}
		}
		sum += inProportion(used, int64(hour+msPerHour-max(from, hour)))
	}
	return sum
}

// TestLedger leads random lives and looks at random instants: the ledger has what
// is counted in the plain way, whenever it was looked at before.
func TestLedger(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		minutes := func(name string, most int) policy.Time {
			return policy.Time(rapid.IntRange(0, most).Draw(t, name)) * 60_000
		}
		var lives []life
		for range rapid.IntRange(0, 6).Draw(t, "lives") {
			l := life{from: epoch + 1 + minutes("from", 3000), gpus: int64(rapid.IntRange(0, 8).Draw(t, "gpus"))}
			l.to = l.from + 1 + minutes("length", 2000)
			lives = append(lives, l)
		}
		b := policy.Budget{Name: "ns/b", Namespace: "ns", Selector: policy.Selector{Everything: true}, Resource: "gpu",
			HasGPUHours: true, GPUHours: 1e9, Window: time.Duration(rapid.IntRange(1, 30).Draw(t, "window")) * time.Hour}
		p := Around(&ordered{}, DefaultConfig())
		var m policy.Memory
		now := epoch
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			before := now
			now += 1 + minutes("step", min(600, int(b.Window/time.Minute)))
			_, m = p.Decide(seen(lives, b, before, now), m)
			got := m.Budgets[0]
			if want := plain(lives, b.Window, now); got.Used != want {
				t.Fatalf("at %v: the ledger has %d, it is %d", now, got.Used, want)
			}
			if most := int(b.Window/time.Hour) + 1; len(got.Buckets) > most {
				t.Fatalf("%d buckets for a window of %v", len(got.Buckets), b.Window)
			}
			// One of 8 devices of a node of $8.00 costs $1.00 an hour.
			if want := got.Used / 3600; int64(got.Cost) < want-100 || int64(got.Cost) > want+100 {
				t.Fatalf("at %v: the ledger has %v for %d, want %v", now, got.Cost, got.Used, policy.Money(want))
			}
		}
	})
}

// TestCrossing compares the instant at which a quota is reached, or free again,
// with a search in steps of a minute. No quota is met exactly by an even number of
// hours, so that rounding decides nothing.
func TestCrossing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := policy.Budget{HasGPUHours: true, GPUHours: 0.37 + float64(rapid.IntRange(1, 60).Draw(t, "quota")), Window: 6 * time.Hour}
		if rapid.Bool().Draw(t, "dollars") {
			b.HasDollars, b.Dollars = true, policy.Money(rapid.IntRange(1, 60).Draw(t, "dollars"))*policy.Dollar+policy.Dollar/7
		}
		now := epoch.Add(6*time.Hour + time.Duration(rapid.IntRange(0, 59).Draw(t, "minute"))*time.Minute)
		var l ledger
		for h := range 6 {
			hours := int64(rapid.SampledFrom([]int{0, 0, 1, 4, 9}).Draw(t, "used"))
			l.book(epoch.Add(time.Duration(h)*time.Hour), epoch.Add(time.Duration(h+1)*time.Hour), hours*1000, policy.Money(hours)*policy.Dollar)
		}
		r := rate{int64(rapid.IntRange(0, 9).Draw(t, "rate")) * 1000, policy.Money(rapid.IntRange(0, 9).Draw(t, "cost")) * policy.Dollar}
		up := !l.within(now, b.Window).atLeast(&b, 1)
		got := l.crossing(&b, now, now.Add(b.Window), r, 1, up)
		want := policy.Time(0)
		for at := now + 60_000; at <= now.Add(b.Window); at += 60_000 {
			if l.ahead(&b, now, at, r).atLeast(&b, 1) == up {
				want = at
				break
			}
		}
		// A quota may be reached and left between two minutes, so the instant may be
		// earlier; rounding to millionths of a dollar moves it by a few milliseconds.
		reached := got != 0 && l.ahead(&b, now, got+5, r).atLeast(&b, 1) == up
		if got != 0 && !reached || want != 0 && (got == 0 || got > want+5) {
			t.Fatalf("%v from %v, the search finds %v (up %v)", got, now, want, up)
		}
	})
}

// budgets draws budgets on cores for a snapshot of policytest.
func budgets(t *rapid.T, s *policy.Snapshot) {
	for i := range rapid.IntRange(0, 3).Draw(t, "budgets") {
		namespace := "default"
		if len(s.Templates) > 0 {
			namespace = s.Templates[0].Namespace
		}
		s.Budgets = append(s.Budgets, policy.Budget{
			Name: string(rune('a' + i)), Namespace: namespace, Selector: policy.Selector{Everything: true}, Resource: "cpu",
			HasGPUHours: true, GPUHours: float64(rapid.SampledFrom([]int{0, 1, 10, 1000}).Draw(t, "quota")),
			HasDollars: rapid.Bool().Draw(t, "hasDollars"), Dollars: policy.Dollar,
			Window: time.Duration(rapid.SampledFrom([]int{1, 24}).Draw(t, "window")) * time.Hour,
			Action: policy.BudgetAction(rapid.IntRange(0, 2).Draw(t, "action")), Closed: rapid.Bool().Draw(t, "closed"),
			OverQuotaDelay: time.Duration(rapid.IntRange(0, 1).Draw(t, "delay")) * time.Minute,
			Gate:           rapid.Bool().Draw(t, "gate"), LiveObjects: rapid.IntRange(0, 4).Draw(t, "live") == 0,
		})
	}
}

// TestPure holds for random clusters and budgets over three decisions: arguments
// stay as they are, the same arguments give the same, plans are sound, evictions
// wait for the gate, and no pod is evicted twice.
func TestPure(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := policytest.Snapshot().Draw(t, "snapshot")
		budgets(t, s)
		inside := &ordered{}
		for i := range s.Nodes {
			n := &s.Nodes[i]
			if free := n.Phase == policy.NodeInitialized && n.ActedBy == policy.ActorNone && n.Pool != policy.None &&
				s.Pools[n.Pool].Mode != policy.ModeOff; free {
				inside.plan.Drains = append(inside.plan.Drains, policy.Drain{Node: n.ID, Why: policy.Why{Reason: policy.ReasonCheaper, Text: "x"}})
			}
		}
		m := policy.Memory{}
		p := Around(inside, DefaultConfig())
		for range 3 {
			s0, m0 := policytest.Clone(t, s), policytest.Clone(t, &m)
			plan, next := p.Decide(s, m)
			if !reflect.DeepEqual(s0, policytest.Clone(t, s)) || !reflect.DeepEqual(m0, policytest.Clone(t, &m)) {
				t.Fatal("an argument was changed")
			}
			again, after := Around(&ordered{plan: inside.plan}, DefaultConfig()).Decide(s0, *m0)
			if !reflect.DeepEqual(policytest.Clone(t, &plan), policytest.Clone(t, &again)) ||
				!reflect.DeepEqual(policytest.Clone(t, &next), policytest.Clone(t, &after)) {
				t.Fatalf("two decisions on the same:\n%s%+v\n%s%+v", plan.Format(s), next, again.Format(s), after)
			}
			checkPlan(t, s, &plan)
			m = next
			s.Now = plan.Wake
			s.Ended = nil
		}
	})
}

func checkPlan(t *rapid.T, s *policy.Snapshot, plan *policy.Plan) {
	if err := policytest.Check(s, plan); err != nil {
		t.Fatalf("%v\n%s", err, plan.Format(s))
	}
	for _, x := range plan.Evicts {
		for i := range s.Budgets {
			if b := &s.Budgets[i]; b.Name == x.Budget && (!b.Closed || b.Action != policy.BudgetEvict) {
				t.Fatalf("%s is evicted for %+v", s.Pods[x.Pod].Name, b)
			}
		}
	}
}

// TestTransparent holds that without budgets nothing is added, taken or made.
func TestTransparent(t *testing.T) {
	s, m, err := policytest.Parse("type big 96\nmarket z big spot 8.00\npool p\nnode n1 p z big spot\napp web 1\npod web n1\n")
	if err != nil {
		t.Fatal(err)
	}
	p := Around(&ordered{}, DefaultConfig())
	if n := policytest.Allocations(100, func() { p.Decide(s, m) }); n > 0 {
		t.Errorf("%v allocations without a budget", n)
	}
}

// TestAllocations holds that a decision allocates no more for ten times the pods.
func TestAllocations(t *testing.T) {
	allocations := func(pods int) float64 {
		b := policy.Budget{Name: "ns/b", Namespace: "ns", Selector: policy.Selector{Everything: true}, Resource: "gpu",
			HasGPUHours: true, GPUHours: 1e9, Window: 24 * time.Hour}
		s := seen([]life{{epoch, epoch.Add(99 * time.Hour), 1}}, b, epoch, epoch.Add(30*time.Hour))
		for range pods {
			s.Pods = append(s.Pods, s.Pods[0])
		}
		p := Around(&ordered{}, DefaultConfig())
		_, m := p.Decide(s, policy.Memory{})
		return policytest.Allocations(20, func() { p.Decide(s, m) })
	}
	if few, many := allocations(100), allocations(1000); many > few+10 {
		t.Errorf("%v allocations for 1000 pods, %v for 100", many, few)
	}
}

func TestConfig(t *testing.T) {
	for _, c := range []Config{
		{Room: -1, Soonest: time.Second}, {JobRoom: 2, Soonest: time.Second}, {Pace: -1, Soonest: time.Second},
		{Retry: -1, Soonest: time.Second}, {},
	} {
		if c.Validate() == nil {
			t.Errorf("%+v is taken", c)
		}
	}
	if err := DefaultConfig().Validate(); err != nil {
		t.Error(err)
	}
}

// BenchmarkDecide books five budgets over 10,000 pods on 30-day ledgers.
func BenchmarkDecide(b *testing.B) {
	x := policy.Budget{Name: "ns/b", Namespace: "ns", Selector: policy.Selector{Everything: true}, Resource: "gpu",
		HasGPUHours: true, GPUHours: 1e9, Window: 720 * time.Hour}
	s := seen([]life{{epoch, epoch.Add(999 * time.Hour), 1}}, x, epoch, epoch.Add(800*time.Hour))
	for range 10_000 {
		s.Pods = append(s.Pods, s.Pods[0])
	}
	for i := range 4 {
		x.Name = "ns/" + string(rune('c'+i))
		s.Budgets = append(s.Budgets, x)
	}
	p := Around(&ordered{}, DefaultConfig())
	_, m := p.Decide(s, policy.Memory{})
	b.ReportAllocs()
	for b.Loop() {
		p.Decide(s, m)
	}
}
