package scenarios

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/catalog"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

const (
	hours  = policy.Time(3_600_000)
	newDay = policy.Time(1_767_225_600_000) // 2026-01-01T00:00Z, a Thursday
)

// series returns one of us-east-1 with changes at the given hours.
func series(zone, name string, at []policy.Time, spot ...policy.Money) trace.Series {
	s := trace.Series{Provider: "aws", Region: "us-east-1", Zone: zone, Type: name, Product: trace.ProductLinux, Spot: spot}
	for _, h := range at {
		s.At = append(s.At, newDay+h*hours)
	}
	return s
}

// fourDays returns a trace of 96 hours from newDay.
func fourDays(s ...trace.Series) *trace.Trace {
	slices.SortFunc(s, func(a, b trace.Series) int {
		return strings.Compare(a.Zone+a.Type+a.Product, b.Zone+b.Type+b.Product)
	})
	return &trace.Trace{Name: "test", Series: s, From: newDay, To: newDay + 96*hours, WholeFrom: newDay,
		WholeTo: newDay + 96*hours, Digest: [32]byte{1}}
}

// parse reads a scenario of one deployment and one pool with the given
// markets, lasting a day after a warm-up of six hours.
func parse(t *testing.T, markets, more string) *Scenario {
	t.Helper()
	sc, err := Parse("test.yaml", []byte(fmt.Sprintf(`
apiVersion: spotter.dev/v1alpha1
kind: CapacityPool
metadata: {name: main}
spec: {backend: {karpenter: {nodeClassName: default}}, markets: %s}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: main, resources: {requests: {cpu: 1}}}]}}
---
%s
---
apiVersion: spotter.dev/v1alpha1
kind: Scenario
metadata: {name: test}
spec: {duration: 24h, warmUp: 6h}
`, markets, more)))
	if err != nil {
		t.Fatal(err)
	}
	return sc
}

func bind(t *testing.T, sc *Scenario, tr *trace.Trace, o BindOptions) *BoundScenario {
	t.Helper()
	w, err := Bind(sc, tr, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := snapshotOf(w).Validate(); err != nil {
		t.Error(err)
	}
	return w
}

func names(w *BoundScenario) string {
	var all []string
	for _, m := range w.Markets {
		all = append(all, strings.TrimPrefix(m.Name, "aws/us-east-1/"))
	}
	return strings.Join(all, " ")
}

func TestBindWindows(t *testing.T) {
	tr := fourDays(series("a", "m5.large", []policy.Time{0, 95}, 30_000, 31_000))
	sc := parse(t, "{}", "")
	first, second := bind(t, sc, tr, BindOptions{}), bind(t, sc, tr, BindOptions{Window: 1})
	if first.Start != newDay || second.Start != newDay+24*hours || first.Duration != 24*time.Hour {
		t.Errorf("windows begin at %v and %v", first.Start, second.Start)
	}
	if first.TraceDigest == second.TraceDigest || first.TraceDigest != bind(t, sc, tr, BindOptions{}).TraceDigest ||
		first.Digest != second.Digest {
		t.Error("the digest of a window is its own, that of the file is not")
	}
	if _, err := Bind(sc, tr, BindOptions{Window: 3}); err != nil {
		t.Errorf("the last whole window: %v", err)
	}
	_, err := Bind(sc, tr, BindOptions{Window: 4})
	if !errors.Is(err, ErrTooShort) || !strings.Contains(err.Error(), "2026-01-05T00:00:00.000Z to 2026-01-06") ||
		!strings.Contains(err.Error(), "2026-01-01T00:00:00.000Z to 2026-01-05") {
		t.Errorf("got %v, want ErrTooShort with both spans", err)
	}
	if _, err := Bind(sc, tr, BindOptions{From: newDay - 1}); !errors.Is(err, ErrTooShort) {
		t.Errorf("a begin before the trace: %v", err)
	}
	// The day of the last change counts as recorded.
	tr.To = newDay + 95*hours
	if _, err := Bind(sc, tr, BindOptions{Window: 3}); err != nil {
		t.Errorf("the day of the last change: %v", err)
	}
	x := 3.5
	if w := bind(t, sc, tr, BindOptions{Intensity: &x}); w.Intensity != 3.5 || first.Intensity != 1 {
		t.Errorf("intensity %v, and %v where it is not replaced", w.Intensity, first.Intensity)
	}
}

// Two pools with markets of their own: the table holds both, each pool its.
func TestBindTwoPools(t *testing.T) {
	sc := parse(t, "{families: [m5]}", `
apiVersion: spotter.dev/v1alpha1
kind: CapacityPool
metadata: {name: batch}
spec:
  backend: {autoScalingGroups: {discoveryTags: {a: b}}}
  markets: {families: [c5]}
  capacity: {exactRatio: 0.9, onDemandFallback: false, limits: {cpu: 100, memory: 1Gi}}
  template: {labels: {z: "1", a: "2"}, taints: [{key: batch, effect: NoSchedule}]}
  policy: {name: static, parameters: {share: "0.9", b: c}}
  disruption: {budget: 3, schedule: "0 9 * * *", duration: 8h, consolidationPolicy: Never, cooldown: 5m, expireAfter: 0s, savingsThreshold: 0.2}
  mode: "off"
`)
	w := bind(t, sc, fourDays(series("a", "m5.large", []policy.Time{0}, 1), series("a", "c5.large", []policy.Time{0}, 1)), BindOptions{})
	batch := w.Pools[0]
	batch.Budgets, batch.Labels, batch.Taints = nil, nil, nil
	want := policy.Pool{
		Name: "batch", Provisioner: policy.ProvisionerClusterAutoscaler, Mode: policy.ModeOff, Policy: "static:b=c:share=0.9",
		Markets: []policy.MarketID{0, 1}, Share: policy.ShareRange{Min: .9, Max: .9, Target: .9, Exact: true, HasTarget: true},
		Limits: policy.Resources{CPU: 100_000, Memory: 1 << 30}, Consolidation: policy.ConsolidateNever,
		SavingsThreshold: .2, Cooldown: 5 * time.Minute, Levers: policy.Levers{Limits: true, Launch: true},
	}
	if !reflect.DeepEqual(batch, want) {
		t.Errorf("got  %+v\nwant %+v", batch, want)
	}
	b := w.Pools[0].Budgets[0]
	if b.Nodes != (policy.Quantity{Set: true, N: 3}) || b.Active || b.Schedule != "0 9 * * *" || b.Duration != 8*time.Hour {
		t.Errorf("budget %+v", b)
	}
	if l := w.Pools[0].Labels; len(l) != 2 || l[0].Key != "a" || w.Pools[0].Taints[0].Effect != policy.NoSchedule {
		t.Errorf("labels %v, taints %v", l, w.Pools[0].Taints)
	}
	if m := w.Pools[1]; m.Name != "main" || m.ID != 1 || !reflect.DeepEqual(m.Markets, []policy.MarketID{2, 3}) || !m.OnDemandFallback {
		t.Errorf("the second pool is %+v", m)
	}
}

func TestBindSeeds(t *testing.T) {
	text := `
apiVersion: spotter.dev/v1alpha1
kind: CapacityPool
metadata: {name: main}
spec: {backend: {karpenter: {nodeClassName: default}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec: {template: {spec: {containers: [{name: main}]}}}
---
apiVersion: spotter.dev/v1alpha1
kind: Scenario
metadata: {name: test}
spec:
  start: 2026-01-02T12:00:00Z
  duration: 24h
  nodes: [{pool: main, count: 3, capacityType: on-demand}, {pool: main, count: 1, zone: b}, {pool: main, count: 2, instanceType: %s}]
  faults: [{kind: zone-outage, at: 2h, duration: 1h, zone: b}]
`
	tr := fourDays(
		series("a", "m5.large", []policy.Time{0}, 40_000), series("b", "m5.large", []policy.Time{0}, 41_000),
		series("a", "m5.xlarge", []policy.Time{0}, 30_000), series("b", "m5.xlarge", []policy.Time{0}, 80_000),
	)
	sc, err := Parse("test.yaml", []byte(fmt.Sprintf(text, "m5.xlarge")))
	if err != nil {
		t.Fatal(err)
	}
	w := bind(t, sc, tr, BindOptions{})
	var got []string
	for _, s := range w.Seeds {
		got = append(got, fmt.Sprintf("%d×%s", s.Count, strings.TrimPrefix(w.Markets[s.Market].Name, "aws/us-east-1/")))
	}
	if want := "3×a/m5.large/on-demand 1×b/m5.large/spot 2×a/m5.xlarge/spot"; strings.Join(got, " ") != want {
		t.Errorf("got %s, want %s", strings.Join(got, " "), want)
	}
	if w.Faults[0].At != newDay+38*hours || w.Start != newDay+36*hours {
		t.Errorf("start %v, fault at %v", w.Start, w.Faults[0].At)
	}
	if len(w.Warnings) != 0 {
		t.Errorf("warnings %q", w.Warnings)
	}
	elsewhere, err := Parse("test.yaml", []byte(strings.Replace(fmt.Sprintf(text, "m5.xlarge"), "1h, zone: b",
		"1h, zone: c, instanceType: x", 1)))
	if err != nil {
		t.Fatal(err)
	}
	if w := bind(t, elsewhere, tr, BindOptions{}); len(w.Warnings) != 1 || !strings.Contains(w.Warnings[0], `zone "c"`) {
		t.Errorf("a fault that meets nothing: warnings %q", w.Warnings)
	}
	if sc, err = Parse("test.yaml", []byte(fmt.Sprintf(text, "c5.large"))); err != nil {
		t.Fatal(err)
	}
	if _, err := Bind(sc, tr, BindOptions{}); !errors.Is(err, ErrNoMarket) || !strings.Contains(err.Error(), "c5.large") {
		t.Errorf("got %v, want ErrNoMarket that names the type", err)
	}
}

func TestValidate(t *testing.T) {
	for text, want := range map[string]string{
		"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {template: {spec: {containers: [{name: b}]}}}":             "no CapacityPool",
		"apiVersion: spotter.dev/v1alpha1\nkind: CapacityPool\nmetadata: {name: a}\nspec: {backend: {karpenter: {nodeClassName: a}}}": "no workload",
	} {
		sc, err := Parse("test.yaml",
			[]byte(text+"\n---\napiVersion: spotter.dev/v1alpha1\nkind: Scenario\nmetadata: {name: a}\nspec: {duration: 1h}\n"))
		if err != nil {
			t.Fatal(err)
		}
		if err := sc.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
		if _, err := Bind(sc, fourDays(), BindOptions{}); err == nil {
			t.Error("it was bound all the same")
		}
	}
}

// Bound scenarios of one scenario and trace share memory; binding many at once must
// change none of it.
func TestBindConcurrently(t *testing.T) {
	tr, err := trace.Synthetic()
	if err != nil {
		t.Fatal(err)
	}
	sc, err := Load("web-week")
	if err != nil {
		t.Fatal(err)
	}
	bound := make(chan *BoundScenario)
	for range 4 {
		go func() {
			w, err := Bind(sc, tr, BindOptions{Window: 1})
			if err != nil {
				t.Error(err)
			}
			bound <- w
		}()
	}
	first := <-bound
	for range 3 {
		if w := <-bound; !reflect.DeepEqual(w, first) {
			t.Error("two bound scenarios of the same make differ")
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		if _, err := Load("bench-2000"); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkBind binds a trace of 960 markets.
func BenchmarkBind(b *testing.B) {
	var all []trace.Series
	for _, name := range catalog.Types("aws")[:240] {
		for _, zone := range []string{"a", "b", "c", "d"} {
			s := series(zone, name, nil)
			for h := range policy.Time(96) {
				s.At, s.Spot = append(s.At, newDay+h*hours), append(s.Spot, 20_000+policy.Money(h))
			}
			all = append(all, s)
		}
	}
	tr := fourDays(all...)
	sc, err := Parse("bench.yaml", []byte(strings.Replace(rest, "name: test", "name: bench", 1)+`
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec: {template: {spec: {containers: [{name: main}]}}}
`))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Bind(sc, tr, BindOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}
