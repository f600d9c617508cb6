package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// priced returns a day of a pool of one type, m5.large at $0.096 on demand. Its Spot price is
// $0.039, except from six to nine hours after the start, when it is the given price. Eight more
// pods are desired from seven o'clock on.
func priced(t *testing.T, backend, markets, more string, dear policy.Money) *scenarios.BoundScenario {
	t.Helper()
	provider, kind, zones := "aws", "m5.large", []string{"a", "b"}
	if strings.Contains(backend, "rackspace") {
		provider, kind, zones = policy.Rackspace, "gp.vs1.large-iad", []string{"us-east-iad-1"}
	}
	tr := &trace.Trace{Name: "test", From: testStart, To: testStart.Add(96 * time.Hour), Digest: [32]byte{1}}
	start := testStart.Add(24 * time.Hour)
	for _, zone := range zones {
		tr.Series = append(tr.Series, trace.Series{
			Provider: provider, Region: "us-east-iad-1", Zone: zone, Type: kind, Product: trace.ProductLinux,
			At:   []policy.Time{testStart, start.Add(6 * time.Hour), start.Add(9 * time.Hour)},
			Spot: []policy.Money{39_000, dear, 39_000}, OnDemand: []policy.Money{96_000, 96_000, 96_000},
		})
	}
	sc, err := scenarios.Parse("test.yaml", []byte(fmt.Sprintf(`
apiVersion: spotter.dev/v1alpha1
kind: CapacityPool
metadata: {name: main}
spec: {backend: {%s}, markets: {%s}%s}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, annotations: {spotter.dev/replica-schedule: "00:00=2 07:00=10"}}
spec:
  replicas: 2
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: main, resources: {requests: {cpu: "1"}}}]}}
---
apiVersion: spotter.dev/v1alpha1
kind: Scenario
metadata: {name: test}
spec: {duration: 20h, warmUp: 6h, market: {intensity: 0}}
`, backend, markets, more)))
	if err != nil {
		t.Fatal(err)
	}
	w, err := scenarios.Bind(sc, tr, scenarios.BindOptions{From: start})
	if err != nil {
		t.Fatalf("maxPrice %s: %v", markets, err)
	}
	return w
}

// launches returns the hour and price of every node that was bought after begin.
func launchesOf(t *testing.T, log []string) (hours []int, prices []policy.Money) {
	t.Helper()
	for _, line := range log {
		f := strings.Fields(line)
		if f[1] != "launch" {
			continue
		}
		price, err := strconv.ParseInt(f[len(f)-1], 10, 64)
		hour, err2 := strconv.Atoi(f[0][11:13])
		if err != nil || err2 != nil {
			t.Fatalf("%s: %v, %v", line, err, err2)
		}
		hours, prices = append(hours, hour), append(prices, policy.Money(price))
	}
	return hours, prices
}

// TestMaxPriceWhenBought holds markets.maxPrice against the price of the moment in
// which a node is bought, in every pool and by every policy: under one of $0.06
// nodes are bought on spot though they cost $0.096 on demand, and none while they
// cost $0.09; pods wait until then.
func TestMaxPriceWhenBought(t *testing.T) {
	for _, backend := range []string{"karpenter: {nodeClassName: default}", "autoScalingGroups: {discoveryTags: {a: b}}",
		"rackspace: {cloudspace: c, org: o, credentialsSecretRef: {name: s}}"} {
		for _, spec := range []string{"spot", "static:share=1", "spotvortex", "spotvortex:compat=true", "portfolio",
			"leftover", "karpetrack", "rescheduler", "on-demand"} {
			w := priced(t, backend, "maxPrice: 0.06", "", 90_000)
			_, log := runScenario(t, w, spec)
			hours, prices := launchesOf(t, log)
			for i, p := range prices {
				if p > 60_000 {
					t.Errorf("%s, %s: a node was bought for %v at hour %d", backend, spec, p, hours[i])
				}
			}
			switch grown := slices.ContainsFunc(hours, func(h int) bool { return h >= 9 }); {
			case spec == "on-demand" && len(prices) > 0:
				t.Errorf("%s, %s: %d nodes were bought, and all cost too much", backend, spec, len(prices))
			case spec == "spot" && !grown:
				t.Errorf("%s, %s: nothing was bought at $0.039 for the pods that waited:\n%s", backend, spec, strings.Join(log, "\n"))
			}
		}
	}
}

// TestMaxPriceOfBoth lets a pool buy both, at $0.10: while Spot costs more than that, it buys on
// demand.
func TestMaxPriceOfBoth(t *testing.T) {
	_, log := runScenario(t, priced(t, "karpenter: {nodeClassName: default}", "maxPrice: 0.1", "", 150_000), "spot")
	hours, prices := launchesOf(t, log)
	if len(prices) == 0 || slices.Max(prices) != 96_000 || slices.Min(prices) != 39_000 {
		t.Errorf("bought for %v at hours %v, want spot at $0.039 and on demand at $0.096", prices, hours)
	}
}

// TestMaxPriceSaysWhyPodsWait finds a Hold at each decision while a node costs too
// much, also where each pool is decided as its manifest says, and none before.
func TestMaxPriceSaysWhyPodsWait(t *testing.T) {
	for _, spec := range []string{"spot", "manifest", "portfolio"} {
		w := priced(t, "karpenter: {nodeClassName: default}", "maxPrice: 0.06", "", 90_000)
		policies := mustPolicy(t, spec)
		from, until := w.Start.Add(6*time.Hour), w.Start.Add(9*time.Hour)
		said, steps := 0, 0
		mustRun(t, Config{Prepared: mustPrepare(t, w), Policy: policies, Forecaster: mustForecaster(t), Seed: 1,
			Observed: func(s *policy.Snapshot, p *policy.Plan) {
				for _, h := range p.Holds {
					dear := strings.Contains(h.Why.Text, "maxPrice, $0.06 an hour (the cheapest is $0.09 in")
					if dear && (s.Now < from || s.Now >= until) {
						t.Errorf("%s: at %v: %s", spec, s.Now, h.Why.Text)
					}
					if dear {
						said++
					}
				}
				if s.Now >= from && s.Now < until {
					steps++
				}
			}})
		if steps == 0 || said != steps {
			t.Errorf("%s: said %d times in %d decisions", spec, said, steps)
		}
	}
}
