package oracle

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/eval/evaltest"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
)

// TestOracleExact: where pods fill whole nodes and one price holds, the bound
// is what the perfect policy pays: nodes × hours × the least price.
func TestOracleExact(t *testing.T) {
	w := evaltest.Scenario("w", 0) // 4 pods on 2 nodes, spot at $0.04, 24 h
	near(t, "two spot nodes", Of(w).Cost, policy.Dollars(2*24*0.04))

	w.Prices[1] = scenarios.PriceCurve{At: []policy.Time{1, w.Start.Add(12 * time.Hour)}, Price: []policy.Money{40_000, policy.NoPrice}}
	near(t, "spot closed at noon, nodes run on at its price", Of(w).Cost, policy.Dollars(2*24*0.04))

	w.Prices[1] = scenarios.PriceCurve{At: []policy.Time{1, w.Start.Add(12 * time.Hour)}, Price: []policy.Money{40_000, 200_000}}
	near(t, "on-demand is cheaper from noon", Of(w).Cost, policy.Dollars(2*12*0.04+2*12*0.10))

	w.Prices[1].At[1] = w.Start.Add(12*time.Hour + 30*time.Minute)
	near(t, "and from half past twelve", Of(w).Cost, policy.Dollars(2*12.5*0.04+2*11.5*0.10))

	w.Prices[1].Price = []policy.Money{200_000, 40_000}
	near(t, "and so it does where it falls", Of(w).Cost, policy.Dollars(2*12.5*0.10+2*11.5*0.04))

	w.Prices[1].Price = []policy.Money{policy.NoPrice, policy.NoPrice}
	near(t, "no spot at all", Of(w).Cost, policy.Dollars(2*24*0.10))

	w.Duration = 90 * time.Minute
	near(t, "an hour and a half", Of(w).Cost, policy.Dollars(2*1.5*0.10))
}

// TestOracleScarce: the scarce resource determines the price: pod slots, and accelerators of the
// requested kind.
func TestOracleScarce(t *testing.T) {
	w := evaltest.Scenario("w", 0)
	w.Types[0].Allocatable.Pods = 2
	w.Templates[0].Requests.CPU = 800 // a share of 0.4, so a pod is worth $0.04 an hour
	near(t, "two pods fill a node", Of(w).Cost, policy.Dollars(2*24*0.04))
	w.Templates[0].Requests = policy.Resources{CPU: 20, Memory: 8 << 20, Pods: 1}
	near(t, "a pod worth $0.001 an hour is better not served", Of(w).Cost, policy.Dollars(4*24*2*0.001))

	w = evaltest.Scenario("w", 0)
	gpu := w.Types[0]
	gpu.ID, gpu.GPUResource, gpu.Allocatable.GPU = 1, "nvidia.com/gpu", 1
	w.Types = append(w.Types, gpu)
	w.Markets = append(w.Markets, policy.Market{ID: 2, Name: "aws/r/a/g5.xlarge/on-demand", Type: 1, Capacity: policy.OnDemand})
	w.Pools[0].Markets = []policy.MarketID{0, 1, 2}
	w.Prices = append(w.Prices, scenarios.PriceCurve{At: []policy.Time{1}, Price: []policy.Money{policy.Dollar}})
	w.Templates[0].Requests.GPU, w.Templates[0].GPUResource = 1, "nvidia.com/gpu"
	near(t, "a whole GPU node a pod", Of(w).Cost, policy.Dollars(4*24*1))
}

// TestOracleSchedule: growth counts after the ready grace, decline at once.
func TestOracleSchedule(t *testing.T) {
	w := evaltest.Scenario("w", 0)
	at := func(d time.Duration) policy.Time { return w.Start.Add(d) }
	w.Workloads[0].Schedule = []scenarios.ReplicaStep{{At: 1, Replicas: 2}, {At: at(6 * time.Hour), Replicas: 6},
		{At: at(12 * time.Hour), Replicas: 4}}
	// A pod is half a node: $0.02 an hour. 2 pods for 6 h 10 min, 6 until noon,
	// then 4 for 12 h.
	pods := 2*(6+1.0/6) + 6*(6-1.0/6) + 4*12
	near(t, "growth after the grace", Of(w).Cost, policy.Dollars(pods*0.02))

	w.Workloads[0].Schedule = []scenarios.ReplicaStep{{At: 1, Replicas: 4}, {At: at(time.Hour), Replicas: 2},
		{At: at(time.Hour + 5*time.Minute), Replicas: 4}}
	// 4 until 1 h, 2 until the growth at 1 h 5 min has lasted ten minutes.
	pods = 4*1 + 2*0.25 + 4*22.75
	near(t, "a dip is as long as the grace after it", Of(w).Cost, policy.Dollars(pods*0.02))
}

// TestDesired compares with the plain form: the least of all instants since
// the grace began.
func TestDesired(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var steps []scenarios.ReplicaStep
		at := policy.Time(0)
		for range rapid.IntRange(1, 6).Draw(t, "steps") {
			at += policy.Time(rapid.IntRange(1, 8).Draw(t, "gap"))
			steps = append(steps, scenarios.ReplicaStep{At: at, Replicas: int32(rapid.IntRange(0, 5).Draw(t, "replicas"))})
		}
		grace := rapid.IntRange(0, 10).Draw(t, "grace")
		now := policy.Time(rapid.IntRange(12, 60).Draw(t, "now"))
		want := int32(math.MaxInt32)
		for x := now - policy.Time(grace); x <= now; x++ {
			n := steps[0].Replicas
			for _, s := range steps {
				if s.At <= x {
					n = s.Replicas
				}
			}
			want = min(want, n)
		}
		if got := desired(steps, time.Duration(grace)*time.Millisecond, now); got != want {
			t.Fatalf("desired at %d with grace %d of %v is %d, want %d", now, grace, steps, got, want)
		}
	})
}

// TestOracleJob: work goes into the hours that are cheapest, as much of it as
// may run at once, and only between release and deadline.
func TestOracleJob(t *testing.T) {
	w := evaltest.Scenario("w", 0)
	w.Workloads[0].Schedule = nil
	w.Workloads[0].Kind = policy.KindJob
	w.Workloads[0].Job = &scenarios.Job{Releases: []policy.Time{w.Start.Add(2 * time.Hour)}, Pods: 2, Completions: 4,
		Work: time.Hour - 12*time.Second, Deadline: 10 * time.Hour}
	cheap := func(from, to time.Duration) {
		w.Prices[1] = scenarios.PriceCurve{At: []policy.Time{1, w.Start.Add(from), w.Start.Add(to)},
			Price: []policy.Money{80_000, 20_000, 80_000}}
	}
	// 4 pod-hours, each half a node. Two hours at $0.02 hold them all.
	cheap(5*time.Hour, 7*time.Hour)
	near(t, "two cheap hours", Of(w).Cost, policy.Dollars(4*0.01))
	cheap(5*time.Hour, 6*time.Hour)
	near(t, "one cheap hour holds two of them", Of(w).Cost, policy.Dollars(2*0.01+2*0.04))
	cheap(12*time.Hour, 20*time.Hour)
	near(t, "cheap after the deadline", Of(w).Cost, policy.Dollars(4*0.04))
	w.Workloads[0].Job.Deadline = 2*time.Hour + 10*time.Minute
	near(t, "a deadline that leaves no time for the first node", Of(w).Cost, 0)
	w.Workloads[0].Job.Deadline = 0
	w.Workloads[0].Job.Releases[0] = w.Start.Add(23 * time.Hour)
	near(t, "released too late to be finished", Of(w).Cost, 0)
	w.Workloads[0].Job.Releases[0] = w.Start.Add(-time.Hour)
	cheap(12*time.Hour, 20*time.Hour)
	// Two pods may have worked for an hour before the window. Of four times 59 min 48 s that
	// leaves 7,152 s, at $0.01 an hour, up to rounding by the meter.
	if got, most := Of(w).Cost, policy.Dollars(0.01*7152/3600); got > most || got < most-5 {
		t.Errorf("released an hour before the window: the bound is %v, want %v", got, most)
	}
	w.Workloads[0].Job.Releases[0] = w.Start.Add(-2 * time.Hour)
	near(t, "released so long before the window that all may be done", Of(w).Cost, 0)
}

// near allows for the rounding of the floats inside.
func near(t *testing.T, what string, got, want policy.Money) {
	t.Helper()
	if got > want+1 || got < want-10 {
		t.Errorf("%s: the bound is %v, want %v", what, got, want)
	}
}

// TestOracleClosed: a market counts as closed where no node can be alive in it.
func TestOracleClosed(t *testing.T) {
	w := evaltest.Scenario("w", 0)
	at := func(d time.Duration) policy.Time { return w.Start.Add(d) }
	w.Prices[1] = scenarios.PriceCurve{At: []policy.Time{1, at(6 * time.Hour)}, Price: []policy.Money{policy.NoPrice, 40_000}}
	near(t, "spot first offered at six", Of(w).Cost, policy.Dollars(2*6*0.10+2*18*0.04))

	w = evaltest.Scenario("w", 0)
	w.Faults = []scenarios.Fault{{Kind: scenarios.FaultCapacityShortage, At: at(6 * time.Hour), Duration: time.Hour + 3*time.Minute, Share: 1}}
	near(t, "an hour after the shortage has taken all slots", Of(w).Cost, policy.Dollars(2*1*0.10+2*23*0.04))
	w.Faults[0].Share = 0.9
	near(t, "some squeezes spare a slot", Of(w).Cost, policy.Dollars(2*24*0.04))

	w = evaltest.Scenario("w", 0)
	w.Available = []scenarios.AvailabilityCurve{{}, {At: []policy.Time{1, at(6 * time.Hour)}, Available: []bool{false, true}}}
	near(t, "not available before six", Of(w).Cost, policy.Dollars(2*6*0.10+2*18*0.04))

	w = evaltest.Scenario("w", 0)
	w.Markets[1].Reserve = 50_000
	near(t, "nobody is charged less than the reserve price", Of(w).Cost, policy.Dollars(2*24*0.05))
}

// TestOracleWeather: in the weather of a seed a market is closed from the loss of
// its last node until the shortage is over, and open in between.
func TestOracleWeather(t *testing.T) {
	w := evaltest.Scenario("w", 0)
	w.Slots = 2
	w.Available = []scenarios.AvailabilityCurve{{}, {
		At:        []policy.Time{1, w.Start.Add(6 * time.Hour), w.Start.Add(12 * time.Hour)},
		Available: []bool{true, false, true},
	}}
	o, err := New(w)
	if err != nil {
		t.Fatal(err)
	}
	took := 0
	for seed := range uint64(40) {
		drawn, err := o.prepared.DrawWeather(seed)
		if err != nil {
			t.Fatal(err)
		}
		from, until := w.Start.Add(6*time.Hour), w.Start.Add(12*time.Hour)
		lost := policy.Time(0)
		for slot := range 2 {
			r, ok := drawn.Reclaim(1, slot, from-1)
			if !ok || r.At > until {
				r.At = until
			}
			lost = max(lost, r.At)
		}
		if lost < until {
			took++
		}
		got, err := o.Under(seed)
		if err != nil {
			t.Fatal(err)
		}
		near(t, fmt.Sprintf("seed %d", seed), got.Cost, policy.Dollars(2*24*0.04+2*0.06*until.Sub(lost).Hours()))
	}
	if took == 0 || took == 40 {
		t.Errorf("%d of 40 seeds lost both nodes", took)
	}
}

// TestOracleOutbid: a node that was outbid pays its bid until it is taken.
func TestOracleOutbid(t *testing.T) {
	c := scenarios.PriceCurve{At: []policy.Time{0, 100, 200, 210}, Price: []policy.Money{5, 9, 7, 8}}
	got := leastWithin(c, 50)
	for now, want := range map[policy.Time]policy.Money{0: 5, 99: 5, 100: 5, 149: 5, 150: 9, 199: 9, 200: 7, 220: 7, 259: 7, 260: 8} {
		i := 0
		for i+1 < len(got.At) && got.At[i+1] <= now {
			i++
		}
		if got.Price[i] != want {
			t.Errorf("at %d: %d, want %d", now, got.Price[i], want)
		}
	}
}

// TestOracleClasses: pods that may run in one market only pay its price, and
// DaemonSet pods take their part of every node.
func TestOracleClasses(t *testing.T) {
	w := evaltest.Scenario("w", 0)
	w.Templates[0].NodeSelector = []policy.Label{{Key: "karpenter.sh/capacity-type", Value: "on-demand"}}
	near(t, "on demand only", Of(w).Cost, policy.Dollars(2*24*0.10))
	near(t, "and so by on-demand markets only", Of(w).OnDemand, policy.Dollars(2*24*0.10))

	w = evaltest.Scenario("w", 0)
	near(t, "on-demand markets only", Of(w).OnDemand, policy.Dollars(2*24*0.10))
	w.Templates = append(w.Templates, policy.Template{Name: "kube-system/agent",
		Requests: policy.Resources{CPU: 100, Pods: 1}, DaemonSet: true, ID: 1, Workload: 1})
	w.Workloads = append(w.Workloads, scenarios.Workload{Workload: policy.Workload{ID: 1, Name: "kube-system/agent",
		Kind: policy.KindDaemonSet}})
	near(t, "the agent leaves room for one pod a node", Of(w).Cost, policy.Dollars(4*24*0.04))
	w.Templates[1].NodeSelector = w.Templates[0].NodeSelector
	w.Templates[1].NodeSelector = []policy.Label{{Key: "karpenter.sh/capacity-type", Value: "on-demand"}}
	near(t, "an agent that runs elsewhere takes nothing", Of(w).Cost, policy.Dollars(2*24*0.04))
}

// TestSharpened: numbers that sum to at most 1 still do so after u, for every
// set of pods that fits.
func TestSharpened(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		free := rapid.Int64Range(1, 60).Draw(t, "room")
		asked := rapid.SliceOfN(rapid.Int64Range(0, free), 1, 6).Draw(t, "asked")
		for k, row := range appendRows(nil, asked, free) {
			var fill func(i int, free int64, sum float64)
			fill = func(i int, free int64, sum float64) {
				if sum > 1+1e-12 {
					t.Fatalf("row %d %v of pods of %v in %d: a set that fits sums to %v", k, row, asked, free, sum)
				}
				for j := i; j < len(asked); j++ {
					if asked[j] > 0 && asked[j] <= free {
						fill(j, free-asked[j], sum+row[j])
					}
				}
			}
			fill(0, min(free, 60), 0)
		}
	})
}

// TestHonest: whatever prices a solver finds, the rates of any set of pods that
// fits a node sum to at most its price.
func TestHonest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		duals := rapid.SliceOfN(rapid.Float64Range(0, 3), 3, 3).Draw(t, "duals")
		fit(duals)
		sum := 0.0
		for _, y := range duals {
			sum += y
		}
		if sum > 1 {
			t.Fatalf("%v sum to %v", duals, sum)
		}
		rows := [][]float64{{0.5, 1. / 3}, {0.25, 1. / 3}, {1. / 7, 1. / 3}}
		price := policy.Money(rapid.Int64Range(1, 1e9).Draw(t, "price"))
		a, b := leastRate(int64(price)*perMicroDollar, rows, 0, duals), leastRate(int64(price)*perMicroDollar, rows, 1, duals)
		if 2*a > int64(price)*perMicroDollar || 3*b > int64(price)*perMicroDollar {
			t.Fatalf("rates %d and %d are too high for a node of %d", a, b, price)
		}
	})
}

// TestSum compares with arithmetic that has no bounds.
func TestSum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var got sum
		want := new(big.Int)
		for range rapid.IntRange(0, 5).Draw(t, "terms") {
			rate, ms := rapid.Int64Range(0, 1<<50).Draw(t, "rate"), rapid.Int64Range(0, 1<<50).Draw(t, "ms")
			got.add(rate, ms)
			want.Add(want, new(big.Int).Mul(big.NewInt(rate), big.NewInt(ms)))
		}
		want.Quo(want, big.NewInt(3_600_000*perMicroDollar))
		if want.IsInt64() && int64(got.money()) != want.Int64() {
			t.Fatalf("%d, want %d", got.money(), want)
		}
	})
}

// TestOracleApart: if no two pods of two services may share a node, the bound includes a node for
// each pod, however small the pods are. It does not if they may, or if they only keep apart by
// zone.
func TestOracleApart(t *testing.T) {
	w := evaltest.Scenario("w", 0)
	w.Templates[0].Requests, w.Templates[0].Labels, w.Templates[0].Namespace = policy.Resources{CPU: 100,
		Memory: 1 << 20, Pods: 1}, []policy.Label{{Key: "app", Value: "web"}}, "default"
	other := w.Templates[0]
	other.ID, other.Workload, other.Name = 1, 1, "default/other"
	w.Templates, w.Workloads = append(w.Templates, other), append(w.Workloads, w.Workloads[0])
	w.Workloads[1].ID, w.Workloads[1].Name = 1, "default/other"
	together := Of(w).OnDemand
	term := policy.PodTerm{TopologyKey: corev1.LabelHostname,
		Selector: policy.Selector{Requirements: []policy.Requirement{{Key: "app", Op: policy.OpIn, Values: []string{"web"}}}}}
	for i := range w.Templates {
		w.Templates[i].PodAntiAffinity = []policy.PodTerm{term}
	}
	// A missing pod costs 2 × its value; with a high value only nodes are compared.
	o, err := New(w)
	if err != nil {
		t.Fatal(err)
	}
	for i := range o.value {
		o.value[i] = 1e9
	}
	if got, want := o.Every().OnDemand, policy.Money(8*100_000*24)-10; got < want || got > want+10 {
		t.Errorf("8 pods that lie apart cost %v at least, want %v", got, want)
	}
	if most := policy.Money(8 * 100_000 * 24 / 10); together > most {
		t.Errorf("8 pods of a twentieth of a node cost %v at least where they may lie together, want under %v", together, most)
	}
	for i := range w.Templates {
		w.Templates[i].PodAntiAffinity[0].TopologyKey = "topology.kubernetes.io/zone"
	}
	if got := Of(w).OnDemand; got != together {
		t.Errorf("pods that keep apart by zone cost %v at least, want %v: how many zones there are is not asked", got, together)
	}
}

// TestOracleIsBoundForJobs adds a job without haste, of work that takes a pod an
// hour with its start.
func TestOracleIsBoundForJobs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawTiny(t)
		id := len(w.Workloads)
		job := &scenarios.Job{Releases: []policy.Time{w.Start}, Pods: int32(rapid.IntRange(1, 2).Draw(t, "job pods")),
			Completions: int32(rapid.IntRange(1, 2).Draw(t, "completions")), Work: time.Hour - 12*time.Second}
		w.Workloads = append(w.Workloads, scenarios.Workload{Workload: policy.Workload{ID: policy.WorkloadID(id),
			Kind: policy.KindJob}, Job: job})
		w.Templates = append(w.Templates, policy.Template{ID: policy.TemplateID(id), Workload: policy.WorkloadID(id), Name: "default/job",
			Requests: policy.Resources{CPU: 1000, Memory: 1 << 30, Pods: 1}})
		o, err := New(w)
		if err != nil {
			t.Skip("a pod fits nowhere")
		}
		b, hours := brute{w: w, value: o.value, job: id}, 0
		if len(o.jobs) > 0 {
			hours = int(job.Completions)
		}
		if best, bound := b.cost(4, int(job.Pods), hours), o.Every(); float64(bound.Cost) > best {
			t.Fatalf("the bound %v is above %.6f, which can be had: %s", bound, best/1e6, sketch(w))
		}
	})
}

// TestProgramIsBest compares the linear programs with all corners of the
// feasible set, in two variables.
func TestProgramIsBest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(t, "rows")
		number := func(lo int, name string) float64 { return float64(rapid.IntRange(lo, 9).Draw(t, name)) }
		var rows [][]float64
		for range n {
			limit := number(1, "limit")
			rows = append(rows, []float64{number(1, "a") / limit, number(1, "b") / limit})
		}
		gain := []float64{number(0, "gain a"), number(0, "gain b")}
		y := make([]float64, 2)
		var p program
		prices := make([]float64, n)
		p.maximize(rows, gain, y, prices)
		feasible := func(y []float64) bool {
			for _, r := range rows {
				if dot(y, r) > 1+1e-9 {
					return false
				}
			}
			return y[0] >= -1e-9 && y[1] >= -1e-9
		}
		if !feasible(y) {
			t.Fatalf("y = %v breaks %v ≤ 1", y, rows)
		}
		edges := append(append([][]float64{}, rows...), []float64{1, 0}, []float64{0, 1})
		ends := append(slices.Repeat([]float64{1}, n), 0, 0)
		best := 0.0
		for i := range edges {
			for j := range i {
				a, b := edges[i], edges[j]
				det := a[0]*b[1] - a[1]*b[0]
				if math.Abs(det) < 1e-9 {
					continue
				}
				corner := []float64{(ends[i]*b[1] - a[1]*ends[j]) / det, (a[0]*ends[j] - ends[i]*b[0]) / det}
				if feasible(corner) {
					best = max(best, dot(corner, gain))
				}
			}
		}
		total := 0.0
		for _, price := range prices {
			total += price
		}
		if math.Abs(total-best) > 1e-6 {
			t.Fatalf("the prices %v come to %v, the best corner to %v", prices, total, best)
		}
		if got := dot(y, gain); math.Abs(got-best) > 1e-6 {
			t.Fatalf("y = %v gains %v, the best corner %v; %v ≤ 1, gain %v", y, got, best, rows, gain)
		}
	})
}
