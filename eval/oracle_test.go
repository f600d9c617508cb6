package eval

import (
	"fmt"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
)

// TestOracleExact: where pods fill whole nodes and one price holds, the bound
// is what the perfect policy pays: nodes × hours × the least price.
func TestOracleExact(t *testing.T) {
	w := smallWorld("w", 0) // 4 pods on 2 nodes, spot at $0.04, 24 h
	near(t, "two spot nodes", Oracle(w), policy.Dollars(2*24*0.04))

	w.Prices[1] = scenarios.PriceCurve{At: []policy.Time{1, w.Start.Add(12 * time.Hour)}, Price: []policy.Money{40_000, policy.NoPrice}}
	near(t, "spot closed at noon, nodes run on at its price", Oracle(w), policy.Dollars(2*24*0.04))

	w.Prices[1] = scenarios.PriceCurve{At: []policy.Time{1, w.Start.Add(12 * time.Hour)}, Price: []policy.Money{40_000, 200_000}}
	near(t, "on-demand is cheaper from noon", Oracle(w), policy.Dollars(2*12*0.04+2*12*0.10))

	w.Prices[1].At[1] = w.Start.Add(12*time.Hour + 30*time.Minute)
	near(t, "the least price within an hour holds for it", Oracle(w), policy.Dollars(2*13*0.04+2*11*0.10))

	w.Prices[1].Price = []policy.Money{200_000, 40_000}
	near(t, "and so it does where it falls", Oracle(w), policy.Dollars(2*12*0.10+2*12*0.04))

	w.Prices[1].Price = []policy.Money{policy.NoPrice, policy.NoPrice}
	near(t, "no spot at all", Oracle(w), policy.Dollars(2*24*0.10))

	w.Duration = 90 * time.Minute
	near(t, "the last hour is half an hour", Oracle(w), policy.Dollars(2*1.5*0.10))
}

// TestOracleScarce: the resource that is short carries the price: pod slots,
// and accelerators of the kind that is asked for.
func TestOracleScarce(t *testing.T) {
	w := smallWorld("w", 0)
	w.Types[0].Allocatable.Pods = 2
	w.Templates[0].Requests.CPU = 800 // a share of 0.4, so a pod is worth $0.04 an hour
	near(t, "two pods fill a node", Oracle(w), policy.Dollars(2*24*0.04))
	w.Templates[0].Requests = policy.Resources{CPU: 20, Memory: 8 << 20, Pods: 1}
	near(t, "a pod worth $0.001 an hour is better not served", Oracle(w), policy.Dollars(4*24*2*0.001))

	w = smallWorld("w", 0)
	gpu := w.Types[0]
	gpu.ID, gpu.GPUResource, gpu.Allocatable.GPU = 1, "nvidia.com/gpu", 1
	w.Types = append(w.Types, gpu)
	w.Markets = append(w.Markets, policy.Market{ID: 2, Type: 1, Capacity: policy.OnDemand})
	w.Prices = append(w.Prices, scenarios.PriceCurve{At: []policy.Time{1}, Price: []policy.Money{policy.Dollar}})
	w.Templates[0].Requests.GPU, w.Templates[0].GPUResource = 1, "nvidia.com/gpu"
	near(t, "a whole GPU node a pod", Oracle(w), policy.Dollars(4*24*1))
}

// TestOracleSchedule: growth counts after the ready grace, decline at once.
func TestOracleSchedule(t *testing.T) {
	w := smallWorld("w", 0)
	at := func(d time.Duration) policy.Time { return w.Start.Add(d) }
	w.Workloads[0].Schedule = []scenarios.ReplicaStep{{At: 1, Replicas: 2}, {At: at(6 * time.Hour), Replicas: 6}, {At: at(12 * time.Hour), Replicas: 4}}
	// A pod is half a node: $0.02 an hour. 2 pods for 6 h 10 min, 6 until noon,
	// then 4 for 12 h.
	pods := 2*(6+1.0/6) + 6*(6-1.0/6) + 4*12
	near(t, "growth after the grace", Oracle(w), policy.Dollars(pods*0.02))

	w.Workloads[0].Schedule = []scenarios.ReplicaStep{{At: 1, Replicas: 4}, {At: at(time.Hour), Replicas: 2}, {At: at(time.Hour + 5*time.Minute), Replicas: 4}}
	// 4 until 1 h, 2 until the growth at 1 h 5 min has lasted ten minutes.
	pods = 4*1 + 2*0.25 + 4*22.75
	near(t, "a dip is as long as the grace after it", Oracle(w), policy.Dollars(pods*0.02))
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
	w := smallWorld("w", 0)
	w.Workloads[0].Schedule = nil
	w.Workloads[0].Kind = policy.KindJob
	w.Workloads[0].Job = &scenarios.Job{Releases: []policy.Time{w.Start.Add(2 * time.Hour)}, Pods: 2, Completions: 4, Work: time.Hour, Deadline: 10 * time.Hour}
	cheap := func(from, to time.Duration) {
		w.Prices[1] = scenarios.PriceCurve{At: []policy.Time{1, w.Start.Add(from), w.Start.Add(to)}, Price: []policy.Money{80_000, 20_000, 80_000}}
	}
	// 4 pod-hours, each half a node. Two hours at $0.02 hold them all.
	cheap(5*time.Hour, 7*time.Hour)
	near(t, "two cheap hours", Oracle(w), policy.Dollars(4*0.01))
	cheap(5*time.Hour, 6*time.Hour)
	near(t, "one cheap hour holds two of them", Oracle(w), policy.Dollars(2*0.01+2*0.04))
	cheap(12*time.Hour, 20*time.Hour)
	near(t, "cheap after the deadline", Oracle(w), policy.Dollars(4*0.04))
	w.Workloads[0].Job.Deadline = 2*time.Hour + 10*time.Minute
	near(t, "a deadline that leaves no time for the first node", Oracle(w), 0)
	w.Workloads[0].Job.Deadline = 0
	w.Workloads[0].Job.Releases[0] = w.Start.Add(23 * time.Hour)
	near(t, "released too late to be finished", Oracle(w), 0)
	w.Workloads[0].Job.Releases[0] = w.Start.Add(-time.Hour)
	cheap(12*time.Hour, 20*time.Hour)
	near(t, "two pod-hours may be done before the window", Oracle(w), policy.Dollars(2*0.01))
	w.Workloads[0].Job.Releases[0] = w.Start.Add(-25 * time.Hour)
	w.Workloads[0].Job.Completions = 60
	near(t, "released before warm-up", Oracle(w), 0)
}

// near allows for the rounding of the floats inside.
func near(t *testing.T, what string, got, want policy.Money) {
	t.Helper()
	if got > want+1 || got < want-10 {
		t.Errorf("%s: the bound is %v, want %v", what, got, want)
	}
}

// drawTiny makes a world of 1 or 2 types, 1 or 2 services and perhaps a job,
// over 1 to 3 hours in which prices change on the hour.
func drawTiny(t *rapid.T) *scenarios.World {
	w := &scenarios.World{Start: monday, Duration: time.Duration(rapid.IntRange(1, 3).Draw(t, "hours")) * time.Hour, Zones: []string{"a"}}
	for i := range rapid.IntRange(1, 2).Draw(t, "types") {
		size := policy.Resources{CPU: int64(rapid.IntRange(2, 6).Draw(t, "cpu")) * 1000, Memory: int64(rapid.IntRange(2, 6).Draw(t, "memory")) << 30, Pods: int64(rapid.IntRange(1, 5).Draw(t, "slots"))}
		gpu := ""
		if rapid.Bool().Draw(t, "gpu") {
			size.GPU, gpu = 1, "nvidia.com/gpu"
		}
		w.Types = append(w.Types, policy.InstanceType{ID: policy.TypeID(i), Allocatable: size, GPUResource: gpu})
		for _, c := range []policy.CapacityType{policy.OnDemand, policy.Spot} {
			w.Markets = append(w.Markets, policy.Market{ID: policy.MarketID(len(w.Markets)), Type: policy.TypeID(i), Capacity: c})
			curve := scenarios.PriceCurve{At: []policy.Time{1}, Price: []policy.Money{policy.Money(rapid.IntRange(8, 12).Draw(t, "od")) * 10_000}}
			if c == policy.Spot {
				curve = scenarios.PriceCurve{}
				for h := range int(w.Duration / time.Hour) {
					curve.At = append(curve.At, w.Start.Add(time.Duration(h)*time.Hour))
					curve.Price = append(curve.Price, policy.Money(rapid.IntRange(1, 15).Draw(t, "spot"))*10_000)
				}
			}
			w.Prices = append(w.Prices, curve)
		}
	}
	for range rapid.IntRange(1, 2).Draw(t, "services") {
		r := policy.Resources{CPU: int64(rapid.IntRange(1, 4).Draw(t, "pod cpu")) * 500, Memory: int64(rapid.IntRange(1, 4).Draw(t, "pod memory")) << 29, Pods: 1}
		template := policy.Template{Requests: r}
		if w.Types[0].GPUResource != "" && rapid.Bool().Draw(t, "pod gpu") {
			template.Requests.GPU, template.GPUResource = 1, "nvidia.com/gpu"
		}
		w.Templates = append(w.Templates, template)
		w.Workloads = append(w.Workloads, scenarios.Workload{
			Workload: policy.Workload{Kind: policy.KindDeployment},
			Schedule: []scenarios.ReplicaStep{{At: 1, Replicas: int32(rapid.IntRange(0, 3).Draw(t, "replicas"))}},
		})
	}
	return w
}

// bruteForce returns the least that serving w can cost: in every hour every
// number of nodes of every market (up to 4 in all), and with it every number
// of pods that fits on them one by one. Nodes come and go for nothing, which
// no policy can better.
func bruteForce(w *scenarios.World, job *batch) float64 {
	hours := int(w.Duration / time.Hour)
	// best[h][k] is the least cost of hour h with k pods of the job running.
	total := make([]float64, 1+jobPods(job)*hours)
	for i := range total {
		total[i] = math.Inf(1)
	}
	total[0] = 0
	for h := range hours {
		costs := hourCosts(w, h, jobPods(job))
		next := make([]float64, len(total))
		for i := range next {
			next[i] = math.Inf(1)
			for k := 0; k < len(costs) && k <= i; k++ {
				next[i] = min(next[i], total[i-k]+costs[k])
			}
		}
		total = next
	}
	if job == nil {
		return total[0]
	}
	least := math.Inf(1)
	for done, c := range total {
		left := max(0, job.work-float64(done))
		least = min(least, c+left*2*leastPodValue(w, &w.Templates[job.workload], 1))
	}
	return least
}

func jobPods(job *batch) int {
	if job == nil {
		return 0
	}
	return int(job.pods)
}

// hourCosts returns the least cost of hour h with 0, 1, … extra pods of the
// last template running.
func hourCosts(w *scenarios.World, h, extra int) []float64 {
	costs := make([]float64, extra+1)
	for i := range costs {
		costs[i] = math.Inf(1)
	}
	var fleets func(market int, nodes []policy.MarketID)
	fleets = func(market int, nodes []policy.MarketID) {
		serve(w, h, nodes, costs)
		if len(nodes) == 4 {
			return
		}
		for m := market; m < len(w.Markets); m++ {
			fleets(m, append(nodes[:len(nodes):len(nodes)], policy.MarketID(m)))
		}
	}
	fleets(0, nil)
	return costs
}

// serve tries every number of pods on a fleet and lowers costs.
func serve(w *scenarios.World, h int, nodes []policy.MarketID, costs []float64) {
	bill := 0.0
	free := make([]policy.Resources, len(nodes))
	for i, m := range nodes {
		p := w.Prices[m]
		bill += float64(p.Price[min(h, len(p.Price)-1)])
		free[i] = w.Types[w.Markets[m].Type].Allocatable
	}
	wanted := make([]int, len(w.Workloads))
	for i := range w.Workloads {
		if len(w.Workloads[i].Schedule) > 0 {
			wanted[i] = int(w.Workloads[i].Schedule[0].Replicas)
		}
	}
	var place func(workload, served, node int, cost float64)
	place = func(workload, served, node int, cost float64) {
		if workload == len(w.Workloads) {
			costs[0] = min(costs[0], bill+cost)
			return
		}
		t := &w.Templates[workload]
		isJob := w.Workloads[workload].Job != nil
		if isJob {
			costs[served] = min(costs[served], bill+cost)
		} else {
			missing := float64(wanted[workload]-served) * 2 * leastPodValue(w, t, 1)
			place(workload+1, 0, 0, cost+missing)
		}
		if isJob && served+1 == len(costs) || !isJob && served == wanted[workload] {
			return
		}
		for n := node; n < len(nodes); n++ {
			if t.Requests.Within(free[n]) {
				free[n] = free[n].Minus(t.Requests)
				place(workload, served+1, n, cost)
				free[n] = free[n].Plus(t.Requests)
			}
		}
	}
	place(0, 0, 0, 0)
}

// TestOracleIsBound: nothing that can be done in a tiny world costs less. The
// bound is of use too: it is not far below the best where pods divide nodes.
func TestOracleIsBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawTiny(t)
		if best, bound := bruteForce(w, nil), Oracle(w); float64(bound) > best+1e-6 {
			t.Fatalf("the bound %v is above %.6f, which can be had: %s", bound, best/1e6, sketch(w))
		}
	})
}

// TestOracleIsBoundForJobs adds a job without haste, of work in whole hours.
func TestOracleIsBoundForJobs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawTiny(t)
		w.Workloads = append(w.Workloads, scenarios.Workload{
			Workload: policy.Workload{Kind: policy.KindJob},
			Job: &scenarios.Job{Releases: []policy.Time{w.Start}, Pods: int32(rapid.IntRange(1, 2).Draw(t, "job pods")),
				Completions: int32(rapid.IntRange(1, 2).Draw(t, "completions")), Work: time.Hour},
		})
		w.Templates = append(w.Templates, policy.Template{Requests: policy.Resources{CPU: 1000, Memory: 1 << 30, Pods: 1}})
		var job *batch
		if jobs := newOracle(w).jobs(); len(jobs) > 0 {
			job = &jobs[0]
		}
		if best, bound := bruteForce(w, job), Oracle(w); float64(bound) > best+1e-6 {
			t.Fatalf("the bound %v is above %.6f, which can be had: %s", bound, best/1e6, sketch(w))
		}
	})
}

func sketch(w *scenarios.World) string {
	s := fmt.Sprint(w.Duration)
	for i := range w.Types {
		s += fmt.Sprintf("; type %v od %v spot %v", w.Types[i].Allocatable, w.Prices[2*i].Price, w.Prices[2*i+1].Price)
	}
	for i := range w.Workloads {
		s += fmt.Sprintf("; %v × %v", w.Workloads[i].Schedule, w.Templates[i].Requests)
	}
	return s
}

// TestProgramIsBest compares the linear programs with all corners of the
// feasible set, in two variables.
func TestProgramIsBest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(t, "rows")
		number := func(lo int, name string) float64 { return float64(rapid.IntRange(lo, 9).Draw(t, name)) }
		var rows [][]float64
		var limits []float64
		for range n {
			rows = append(rows, []float64{number(1, "a"), number(1, "b")})
			limits = append(limits, number(0, "limit"))
		}
		gain := []float64{number(0, "gain a"), number(0, "gain b")}
		y := make([]float64, 2)
		var p program
		p.maximize(rows, limits, gain, y)
		feasible := func(y []float64) bool {
			for i, r := range rows {
				if dot(y, r) > limits[i]+1e-9 {
					return false
				}
			}
			return y[0] >= -1e-9 && y[1] >= -1e-9
		}
		if !feasible(y) {
			t.Fatalf("y = %v breaks %v ≤ %v", y, rows, limits)
		}
		edges := append(append([][]float64{}, rows...), []float64{1, 0}, []float64{0, 1})
		ends := append(append([]float64{}, limits...), 0, 0)
		best := 0.0
		for i := range edges {
			for j := range i {
				a, b := edges[i], edges[j]
				det := a[0]*b[1] - a[1]*b[0]
				if det == 0 {
					continue
				}
				corner := []float64{(ends[i]*b[1] - a[1]*ends[j]) / det, (a[0]*ends[j] - ends[i]*b[0]) / det}
				if feasible(corner) {
					best = max(best, dot(corner, gain))
				}
			}
		}
		if got := dot(y, gain); math.Abs(got-best) > 1e-6 {
			t.Fatalf("y = %v gains %v, the best corner %v; %v ≤ %v, gain %v", y, got, best, rows, limits, gain)
		}
	})
}

// TestShrink: whatever a solver says, no type ends up worth more than it costs.
func TestShrink(t *testing.T) {
	y := []float64{2, 4}
	shrink(y, [][]float64{{1, 1}, {0, 1}}, []float64{3, 1})
	if math.Abs(y[0]-0.5) > 1e-9 || y[1] > 1 || y[1] < 1-1e-9 {
		t.Errorf("shrunk to %v, want [0.5 1]", y)
	}
}

func BenchmarkOracle(b *testing.B) {
	w := smallWorld("w", 0)
	w.Duration = 168 * time.Hour
	w.Types, w.Markets, w.Prices = nil, nil, nil
	for i := range 250 {
		cpu := int64(2 + i%15)
		w.Types = append(w.Types, policy.InstanceType{ID: policy.TypeID(i),
			Allocatable: policy.Resources{CPU: cpu * 1000, Memory: (cpu*int64(2+i%7) + 1) << 30, Storage: 20 << 30, Pods: 58}})
		for z := range 4 {
			var c scenarios.PriceCurve
			for k := range 7 * 4 {
				c.At = append(c.At, w.Start.Add(time.Duration(k)*6*time.Hour))
				c.Price = append(c.Price, policy.Money(1000*cpu*int64(10+(i*7+z*3+k)%9)))
			}
			w.Markets = append(w.Markets, policy.Market{ID: policy.MarketID(len(w.Markets)), Type: policy.TypeID(i), Capacity: policy.Spot})
			w.Prices = append(w.Prices, c)
		}
	}
	for i := range 30 {
		t := w.Templates[0]
		t.Requests.CPU, t.Requests.Memory = int64(200+100*(i%12)), int64(1+i%9)<<29
		w.Templates = append(w.Templates, t)
		w.Workloads = append(w.Workloads, w.Workloads[0])
	}
	for b.Loop() {
		Oracle(w)
	}
}
