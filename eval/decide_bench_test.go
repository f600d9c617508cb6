package eval

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/eval/evaltest"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/registry"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/trace"
	"github.com/spotter-dev/spotter/sim"
)

// decided are the policies whose decisions are measured.
func decided() []string {
	return append(slices.DeleteFunc(registry.Names(), func(p string) bool { return p == registry.Manifest }), "spotvortex:compat=true")
}

// largeScenario is a scenario of the given number of nodes of 16 vCPU, with ten pods on each.
// Every market of the trace may be bought. The markets with GPUs are for a pool of their own,
// which no pod needs.
func largeScenario(tb testing.TB, nodes int, intensity float64, lasts time.Duration) *scenarios.BoundScenario {
	tb.Helper()
	sc, err := scenarios.Parse("crowd", largeManifests(nodes, intensity, lasts))
	if err != nil {
		tb.Fatal(err)
	}
	tr, err := trace.Synthetic()
	if err != nil {
		tb.Fatal(err)
	}
	longer := *tr
	longer.To = max(tr.To, tr.From.Add(lasts+24*time.Hour)) // prices hold until they change
	w, err := scenarios.Bind(sc, &longer, scenarios.BindOptions{From: tr.From.Add(2 * time.Hour)})
	if err != nil {
		tb.Fatal(err)
	}
	return w
}

// largeManifests has two pools and 40 services, of which every fourth follows the
// hours of the day, half of them under disruption budgets.
func largeManifests(nodes int, intensity float64, lasts time.Duration) []byte {
	const services = 40
	var b strings.Builder
	fmt.Fprintf(&b,
		"apiVersion: spotter.dev/v1alpha1\nkind: Scenario\nmetadata: {name: crowd}\nspec: {duration: %v, warmUp: 1h, market: {intensity: %v}}\n", lasts, intensity)
	b.WriteString(`---
apiVersion: spotter.dev/v1alpha1
kind: CapacityPool
metadata: {name: general}
spec:
  backend: {karpenter: {nodeClassName: default}}
  markets: {architectures: [amd64, arm64]}
  capacity: {spotShare: {min: 0, max: 1}}
  disruption: {budget: 10%, consolidationPolicy: WhenEmptyOrUnderutilized, consolidateAfter: 5m}
  mode: active
---
apiVersion: spotter.dev/v1alpha1
kind: CapacityPool
metadata: {name: gpu}
spec:
  backend: {karpenter: {nodeClassName: default}}
  markets: {minGPUs: 1}
  capacity: {spotShare: {min: 0, max: 1}}
  mode: active
`)
	each := nodes * 10 / services
	for i := range services {
		annotations := `{spotter.dev/startup-time: "45s"}`
		if i%4 == 0 {
			annotations = fmt.Sprintf(`{spotter.dev/startup-time: "45s", spotter.dev/replica-schedule: "00:00=%d 07:00=%d 10:00=%d 17:00=%d 21:00=%d"}`,
				each*8/10, each, each*12/10, each, each*8/10)
		}
		fmt.Fprintf(&b, `---
apiVersion: apps/v1
kind: Deployment
metadata: {name: app-%[1]d, namespace: bench, annotations: %[2]s}
spec:
  replicas: %[3]d
  selector: {matchLabels: {app: app-%[1]d}}
  template:
    metadata: {labels: {app: app-%[1]d}}
    spec: {containers: [{name: main, image: registry.k8s.io/pause:3.10, resources: {requests: {cpu: 1500m, memory: 5Gi}}}]}
`, i, annotations, each)
		if i%2 == 0 {
			fmt.Fprintf(&b,
				"---\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: app-%[1]d, namespace: bench}\nspec: {maxUnavailable: 10%%, selector: {matchLabels: {app: app-%[1]d}}}\n", i)
		}
	}
	return []byte(b.String())
}

// A stopwatch is a policy that times another one, and looks at what its
// decisions allocate.
type stopwatch struct {
	policy.Policy

	took  []time.Duration
	bytes []uint64

	// nodes and pods are the most that a snapshot had, markets those of the last.
	nodes, pods, markets int

	// after, if not nil, is called after each decision with its time.
	after func(policy.Time)
}

func (w *stopwatch) Decide(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
	w.nodes, w.pods, w.markets = max(w.nodes, len(s.Nodes)), max(w.pods, len(s.Pods)), len(s.Markets)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begun := time.Now()
	plan, next := w.Policy.Decide(s, m)
	w.took = append(w.took, time.Since(begun))
	runtime.ReadMemStats(&after)
	w.bytes = append(w.bytes, after.TotalAlloc-before.TotalAlloc)
	if w.after != nil {
		w.after(s.Now)
	}
	return plan, next
}

// watched runs w under a policy that is timed.
func watched(tb testing.TB, w *scenarios.BoundScenario, spec string, after func(policy.Time)) *stopwatch {
	tb.Helper()
	cfg := evaltest.Config(tb, w, spec, 1)
	watch := &stopwatch{Policy: cfg.Policy, after: after}
	cfg.Policy = watch
	if _, err := sim.Run(context.Background(), cfg); err != nil {
		tb.Fatal(err)
	}
	return watch
}

// at returns the q-quantile of times.
func at(times []time.Duration, q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(times))
	return sorted[int(q*float64(len(sorted)-1))]
}

// BenchmarkDecide measures every decision of a day with 1,000 nodes, 10,000
// pods and 300 markets under each policy. Bound: 100 ms in 99 of 100.
func BenchmarkDecide(b *testing.B) {
	for _, spec := range decided() {
		b.Run(strings.ReplaceAll(spec, ":", "/"), func(b *testing.B) {
			w := largeScenario(b, 1000, 10, 24*time.Hour)
			var last *stopwatch
			var took []time.Duration
			var bytes uint64
			for b.Loop() {
				last = watched(b, w, spec, nil)
				took = append(took, last.took...)
			}
			for _, n := range last.bytes {
				bytes += n
			}
			b.ReportMetric(0, "ns/op") // of the whole day: it says nothing
			b.ReportMetric(milliseconds(at(took, 0.5)), "p50-ms")
			b.ReportMetric(milliseconds(at(took, 0.99)), "p99-ms")
			b.ReportMetric(milliseconds(slices.Max(took)), "max-ms")
			b.ReportMetric(float64(bytes)/float64(len(last.bytes))/1e6, "MB/decision")
			b.ReportMetric(float64(len(last.took)), "decisions")
			b.ReportMetric(float64(last.nodes), "nodes")
			b.ReportMetric(float64(last.pods), "pods")
			b.ReportMetric(float64(last.markets), "markets")
		})
	}
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1000 }

// BenchmarkDecideMonth measures what stays in memory and what a decision
// allocates after 1, 10 and 30 days of 100 nodes under each policy. Neither is
// to grow. What the run itself keeps for its report grows alike under all.
func BenchmarkDecideMonth(b *testing.B) {
	days := []int{1, 10, 30}
	for _, spec := range decided() {
		b.Run(strings.ReplaceAll(spec, ":", "/"), func(b *testing.B) {
			w := largeScenario(b, 100, 10, 30*24*time.Hour)
			for b.Loop() {
				var heap []uint64
				var decisions []int
				n := 0
				watch := watched(b, w, spec, func(now policy.Time) {
					n++
					if k := len(heap); k < len(days) && now >= w.Start.Add(time.Duration(days[k])*24*time.Hour-20*time.Minute) {
						runtime.GC()
						var m runtime.MemStats
						runtime.ReadMemStats(&m)
						heap, decisions = append(heap, m.HeapAlloc), append(decisions, n)
					}
				})
				for k, day := range days {
					b.ReportMetric(float64(heap[k])/1e6, fmt.Sprintf("MB-day-%d", day))
					sum := uint64(0)
					const window = 100 // decisions up to then
					for _, x := range watch.bytes[decisions[k]-window : decisions[k]] {
						sum += x
					}
					b.ReportMetric(float64(sum)/window/1e3, fmt.Sprintf("kB/decision-day-%d", day))
				}
				b.ReportMetric(0, "ns/op")
			}
		})
	}
}
