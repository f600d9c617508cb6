package eval

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/eval/evaltest"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/trace"
	"github.com/spotter-dev/spotter/sim"
)

// smallManifests has a service that grows and shrinks each day by a few nodes, for 60 days.
const smallManifests = `
apiVersion: spotter.dev/v1alpha1
kind: Scenario
metadata: {name: small}
spec: {duration: 1440h, warmUp: 1h}
---
apiVersion: spotter.dev/v1alpha1
kind: CapacityPool
metadata: {name: general}
spec:
  backend: {karpenter: {nodeClassName: default}}
  markets: {minVCPU: 4, maxVCPU: 4}
  capacity: {spotShare: {min: 0, max: 1}}
  disruption: {budget: 50%, consolidationPolicy: WhenEmptyOrUnderutilized, consolidateAfter: 5m}
  mode: active
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: shop
  namespace: web
  annotations: {spotter.dev/replica-schedule: "00:00=2 08:00=9 20:00=2"}
spec:
  replicas: 2
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec: {containers: [{name: main, image: registry.k8s.io/pause:3.10, resources: {requests: {cpu: "1", memory: 2Gi}}}]}
`

// A heapMeter is a policy that notes how much memory is in use at two times.
type heapMeter struct {
	policy.Policy
	at   [2]policy.Time
	used []uint64
}

func (h *heapMeter) Decide(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
	plan, next := h.Policy.Decide(s, m)
	if n := len(h.used); n < len(h.at) && s.Now >= h.at[n] {
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		h.used = append(h.used, stats.HeapAlloc)
	}
	return plan, next
}

// growthMax bounds what 50 days may add in bytes: a run keeps a little for its report.
const growthMax = 200 << 10

// TestMemoryFlat: a cluster whose load repeats each day needs as much memory after 60 days as after
// 10, under every policy.
func TestMemoryFlat(t *testing.T) {
	sc, err := scenarios.Parse("small", []byte(smallManifests))
	if err != nil {
		t.Fatal(err)
	}
	prices, err := trace.Synthetic()
	if err != nil {
		t.Fatal(err)
	}
	longer := *prices
	longer.To = prices.From.Add(62 * 24 * time.Hour) // prices hold until they change
	w, err := scenarios.Bind(sc, &longer, scenarios.BindOptions{From: prices.From.Add(2 * time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	day := func(n int) policy.Time { return w.Start.Add(time.Duration(n)*24*time.Hour - time.Hour) }
	for _, spec := range decided() {
		t.Run(strings.ReplaceAll(spec, ":", "/"), func(t *testing.T) {
			cfg := evaltest.Config(t, w, spec, 1)
			h := &heapMeter{Policy: cfg.Policy, at: [2]policy.Time{day(10), day(60)}}
			cfg.Policy = h
			if _, err := sim.Run(context.Background(), cfg); err != nil {
				t.Fatal(err)
			}
			if h.used[1] > h.used[0]+growthMax {
				t.Errorf("%.1f MB are in use after 60 days, %.1f after 10", float64(h.used[1])/1e6, float64(h.used[0])/1e6)
			}
		})
	}
}
