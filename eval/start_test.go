package eval

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/eval/evaltest"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/registry"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/sim"
)

// settleTime is the last part of a warm-up, in which a constant scenario launches nothing.
const settleTime = 6 * time.Hour

// flapping are the policies under which Karpenter never rests in stateful-zonal: it empties a
// node whose pods fit on others, kube-scheduler binds them otherwise than was simulated, and a
// node is launched for one that finds no place, every few minutes.
var flapping = []string{"as-is", "karpenter", "leftover", "rescheduler", "spot"}

// unchanging turns w into a scenario in which nothing changes: prices, replicas and the weather
// are those of the start, and there are no jobs, faults or rollouts. An hour of it is metered.
func unchanging(w *scenarios.BoundScenario) *scenarios.BoundScenario {
	w.Duration, w.Intensity, w.OnDemandShortages = time.Hour, 0, false
	w.Faults, w.Available, w.Gangs, w.GPUBudgets, w.Commitments = nil, nil, nil, nil, nil
	begin := w.Start.Add(-w.WarmUp)
	w.Prices, w.Workloads = slices.Clone(w.Prices), slices.Clone(w.Workloads)
	for i := range w.Prices {
		c := &w.Prices[i]
		at, found := slices.BinarySearch(c.At, begin)
		if !found {
			at = max(at-1, 0)
		}
		w.Prices[i] = scenarios.PriceCurve{At: []policy.Time{begin}, Price: c.Price[at : at+1]}
	}
	for i := range w.Workloads {
		x := &w.Workloads[i]
		x.Rollouts = nil
		if x.Job != nil {
			x.Job = &scenarios.Job{Pods: x.Job.Pods, Completions: x.Job.Completions, Work: x.Job.Work}
		}
		if len(x.Schedule) > 0 {
			x.Schedule = []scenarios.ReplicaStep{{At: begin, Replicas: x.Replicas}}
		}
	}
	return w
}

// TestWarmUpSettles: the warm-up of every embedded scenario is long enough for every policy to
// reach the cluster that it keeps: where nothing changes, its last hours launch no node.
func TestWarmUpSettles(t *testing.T) {
	l := newLibrary(false)
	for _, name := range slices.Concat(scenarios.Names(), scenarios.Hunted()) {
		if strings.HasPrefix(name, "bench-") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			w := unchanging(evaltest.Embedded(t, name))
			settled := w.Start.Add(-settleTime)
			for _, p := range registry.Names() {
				var log bytes.Buffer
				cfg, err := l.config(Job{Case: Case{Scenario: name, Bound: w}, Policy: p, Seed: 1})
				if err != nil {
					t.Fatal(err)
				}
				cfg.Log = &log
				if _, err := sim.Run(context.Background(), cfg); err != nil {
					t.Fatalf("%s: %v", p, err)
				}
				for line := range strings.Lines(log.String()) {
					at, rest, _ := strings.Cut(line, " ")
					if name == "stateful-zonal" && slices.Contains(flapping, p) {
						break
					}
					if strings.HasPrefix(rest, "launch ") && at >= fmt.Sprint(settled) {
						t.Errorf("%s: %s within %v of the end of the warm-up", p, strings.TrimSpace(line), settleTime)
						break
					}
				}
			}
		})
	}
}

// TestEveryPolicyLaunches: in no embedded scenario does a policy that allows Spot stay on nodes
// that another allowed market would undercut: it launches nodes, and Spot ones where its pools
// may hold them and they cost less.
func TestEveryPolicyLaunches(t *testing.T) {
	l := newLibrary(false)
	for _, name := range slices.Concat(scenarios.Names(), scenarios.Hunted()) {
		if strings.HasPrefix(name, "bench-") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			w := evaltest.Embedded(t, name)
			w.Duration = min(w.Duration, 24*time.Hour)
			if !spotCheaper(w) {
				t.Fatal("no Spot market is cheaper than on demand, so that the scenario compares nothing")
			}
			for _, p := range registry.Names() {
				if p == OnDemand {
					continue
				}
				r, err := l.run(context.Background(), Job{Case: Case{Scenario: name, Bound: w}, Policy: p, Seed: 1})
				if err != nil {
					t.Fatalf("%s: %v", p, err)
				}
				if r.Launches+r.WarmUpLaunches == 0 {
					t.Errorf("%s launches no node", p)
				}
				if allSpot := p == "karpenter" || p == "spot"; allSpot && r.SpotHours == 0 {
					t.Errorf("%s holds no Spot node, though Spot is cheaper and allowed", p)
				}
			}
		})
	}
}

// spotCheaper reports whether a pool of w may hold Spot nodes of a type and zone that cost less
// than on demand at the start.
func spotCheaper(w *scenarios.BoundScenario) bool {
	priceAt := func(m policy.MarketID) policy.Money {
		c := &w.Prices[m]
		at, found := slices.BinarySearch(c.At, w.Start)
		if !found {
			at--
		}
		return c.Price[max(at, 0)]
	}
	for i := range w.Pools {
		for _, a := range w.Pools[i].Markets {
			for _, b := range w.Pools[i].Markets {
				x, y := &w.Markets[a], &w.Markets[b]
				if x.Capacity == policy.Spot && y.Capacity == policy.OnDemand && x.Type == y.Type && x.Zone == y.Zone &&
					priceAt(a) != policy.NoPrice && priceAt(a) < priceAt(b) {
					return true
				}
			}
		}
	}
	return false
}
