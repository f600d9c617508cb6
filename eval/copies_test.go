package eval

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/trace"
	"github.com/spotter-dev/spotter/test/nightly"
)

// copiesOf is a scenario of two days that holds k times the pods of a small one, in markets
// that hold k times the nodes.
func copiesOf(k int) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, `apiVersion: spotter.dev/v1alpha1
kind: Scenario
metadata: {name: copies}
spec: {duration: 48h, warmUp: 6h, market: {intensity: 5, slots: %d}}
---
apiVersion: spotter.dev/v1alpha1
kind: CapacityPool
metadata: {name: general}
spec:
  backend: {karpenter: {nodeClassName: default}}
  markets: {minVCPU: 4, maxVCPU: 16}
  capacity: {spotShare: {min: 0, max: 1}}
  disruption: {budget: 20%%, consolidationPolicy: WhenEmptyOrUnderutilized, consolidateAfter: 5m}
  mode: active
`, 8*k)
	for _, app := range [...]struct {
		name, cpu, memory, budget string
		pods                      int
	}{{"front", "1500m", "3Gi", "80%", 16}, {"api", "1", "4Gi", "60%", 24}, {"search", "3", "6Gi", "60%", 12}, {"mail",
		"500m", "2Gi", "0", 32}} {
		n := app.pods * k
		fmt.Fprintf(&b, `---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: %[1]s
  namespace: shop
  annotations: {spotter.dev/startup-time: "45s", spotter.dev/replica-schedule: "00:00=%[2]d 07:00=%[3]d 10:00=%[4]d 18:00=%[3]d 22:00=%[2]d"}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      topologySpreadConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {app: %[1]s}}}]
      containers: [{name: main, image: registry.k8s.io/pause:3.10, resources: {requests: {cpu: %[5]s, memory: %[6]s}}}]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: %[1]s, namespace: shop}
spec: {minAvailable: %[7]s, selector: {matchLabels: {app: %[1]s}}}
`, app.name, n*3/4, n, n*5/4, app.cpu, app.memory, app.budget)
	}
	return []byte(b.String())
}

// TestCopies: what portfolio saves depends little on how often a cluster holds the same,
// since what moves and losses cost depends on capacity and not on how it is grouped.
func TestCopies(t *testing.T) {
	tr, err := trace.Synthetic()
	if err != nil {
		t.Fatal(err)
	}
	const seeds = 2
	saved := func(k int) float64 {
		sc, err := scenarios.Parse("copies", copiesOf(k))
		if err != nil {
			t.Fatal(err)
		}
		w, err := scenarios.Bind(sc, tr, scenarios.BindOptions{})
		if err != nil {
			t.Fatal(err)
		}
		l, sum := newLibrary(false), 0.0
		for seed := uint64(1); seed <= seeds; seed++ {
			var net [2]float64
			for i, p := range [...]string{OnDemand, "portfolio"} {
				r, err := l.run(context.Background(), Job{Case: Case{Bound: w}, Policy: p, Seed: seed})
				if err != nil {
					t.Fatal(err)
				}
				net[i] = (r.Bill + r.OutageCost).Float()
			}
			sum += 100 * (1 - net[1]/net[0])
		}
		return sum / seeds
	}
	one := saved(1)
	for _, k := range []int{3, 10, 30}[:nightly.Count(2, 3)] {
		many := saved(k)
		t.Logf("one copy saves %.1f %%, %d copies %.1f %%", one, k, many)
		if math.Abs(many-one) > 2 {
			t.Errorf("%d copies save %.1f %%, one saves %.1f %%", k, many, one)
		}
	}
}
