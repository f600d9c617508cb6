package oracle

import (
	"fmt"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/eval/evaltest"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
)

// drawTiny makes a scenario of 1 or 2 types, 1 or 2 services that may be bound to a
// capacity type and perhaps an agent on every node, over 1 to 4 hours in which
// prices change on the hour.
func drawTiny(t *rapid.T) *scenarios.BoundScenario {
	w := &scenarios.BoundScenario{Settings: scenarios.Settings{Start: evaltest.Monday, WarmUp: time.Hour,
		Duration: time.Duration(rapid.IntRange(1, 4).Draw(t, "hours")) * time.Hour},
		Zones: []string{"a"}, Pools: []policy.Pool{{Name: "general"}}}
	for i := range rapid.IntRange(1, 2).Draw(t, "types") {
		size := policy.Resources{CPU: int64(rapid.IntRange(3, 6).Draw(t, "cpu")) * 1000,
			Memory: int64(rapid.IntRange(3, 6).Draw(t, "memory")) << 30, Pods: int64(rapid.IntRange(2, 5).Draw(t, "slots"))}
		typ := policy.InstanceType{ID: policy.TypeID(i), Name: fmt.Sprintf("t%d", i), Allocatable: size}
		if i == 0 && rapid.Bool().Draw(t, "gpu") {
			typ.Allocatable.GPU, typ.GPUResource = 1, "nvidia.com/gpu"
		}
		w.Types = append(w.Types, typ)
		for _, c := range []policy.CapacityType{policy.OnDemand, policy.Spot} {
			id := policy.MarketID(len(w.Markets))
			w.Pools[0].Markets = append(w.Pools[0].Markets, id)
			w.Markets = append(w.Markets, policy.Market{ID: id, Name: fmt.Sprintf("aws/r/a/t%d/%v", i, c), Type: policy.TypeID(i), Capacity: c})
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
	add := func(kind policy.WorkloadKind, template policy.Template, l scenarios.Workload) {
		id := len(w.Workloads)
		template.ID, template.Workload, template.Name = policy.TemplateID(id), policy.WorkloadID(id), fmt.Sprintf("default/w%d", id)
		l.ID, l.Name, l.Kind = policy.WorkloadID(id), template.Name, kind
		w.Templates, w.Workloads = append(w.Templates, template), append(w.Workloads, l)
	}
	for range rapid.IntRange(1, 2).Draw(t, "services") {
		template := policy.Template{Requests: policy.Resources{CPU: int64(rapid.IntRange(1, 5).Draw(t, "pod cpu")) * 500,
			Memory: int64(rapid.IntRange(1, 5).Draw(t, "pod memory")) << 29, Pods: 1}}
		if w.Types[0].GPUResource != "" && rapid.Bool().Draw(t, "pod gpu") {
			template.Requests.GPU, template.GPUResource = 1, "nvidia.com/gpu"
		}
		if rapid.IntRange(0, 2).Draw(t, "bound") == 0 {
			template.NodeSelector = []policy.Label{{Key: "karpenter.sh/capacity-type", Value: "on-demand"}}
		}
		add(policy.KindDeployment, template, scenarios.Workload{Schedule: []scenarios.ReplicaStep{{At: 1,
			Replicas: int32(rapid.IntRange(0, 3).Draw(t, "replicas"))}}})
	}
	if rapid.Bool().Draw(t, "agent") {
		add(policy.KindDaemonSet, policy.Template{Requests: policy.Resources{CPU: 500, Memory: 1 << 28, Pods: 1},
			DaemonSet: true}, scenarios.Workload{})
	}
	return w
}

// A brute tries everything that can be done in a tiny scenario.
type brute struct {
	w     *scenarios.BoundScenario
	value []float64 // of a missing pod per hour
	job   int       // the workload that is a job, or −1
	slots int       // nodes that a Spot market has at once, 0 for any number
}

// cost returns the least that serving the scenario can cost: in every hour every
// number of nodes of every market (up to nodesMax in all), and with it every
// number of pods that fits on them one by one. Nodes come and go for nothing,
// which no policy can better.
func (b *brute) cost(nodesMax, jobPods, jobHours int) float64 {
	hours := int(b.w.Duration / time.Hour)
	total := make([]float64, 1+jobPods*hours) // by pod-hours of the job done
	for i := range total {
		total[i] = math.Inf(1)
	}
	total[0] = 0
	for h := range hours {
		costs := b.hour(h, nodesMax, jobPods)
		next := make([]float64, len(total))
		for i := range next {
			next[i] = math.Inf(1)
			for k := 0; k < len(costs) && k <= i; k++ {
				next[i] = min(next[i], total[i-k]+costs[k])
			}
		}
		total = next
	}
	if b.job < 0 {
		return total[0]
	}
	least := math.Inf(1)
	for done, c := range total {
		least = min(least, c+float64(max(0, jobHours-done))*b.value[b.job])
	}
	return least
}

// hour returns the least cost of hour h with 0, 1, … pods of the job running.
func (b *brute) hour(h, nodesMax, jobPods int) []float64 {
	costs := make([]float64, jobPods+1)
	for i := range costs {
		costs[i] = math.Inf(1)
	}
	var fleets func(market int, nodes []policy.MarketID)
	fleets = func(market int, nodes []policy.MarketID) {
		b.serve(h, nodes, costs)
		if len(nodes) == nodesMax {
			return
		}
		for m := market; m < len(b.w.Markets); m++ {
			if n := len(nodes) - b.slots; b.slots > 0 && b.w.Markets[m].Capacity == policy.Spot && n >= 0 && nodes[n] == policy.MarketID(m) {
				continue // the nodes are in the order of markets
			}
			fleets(m, append(nodes[:len(nodes):len(nodes)], policy.MarketID(m)))
		}
	}
	fleets(0, nil)
	return costs
}

// serve tries every number of pods on a fleet and lowers costs.
func (b *brute) serve(h int, nodes []policy.MarketID, costs []float64) {
	w, bill := b.w, 0.0
	free := make([]policy.Resources, len(nodes))
	for i, m := range nodes {
		p := w.Prices[m]
		bill += float64(p.Price[min(h, len(p.Price)-1)])
		free[i] = w.Types[w.Markets[m].Type].Allocatable
		for k := range w.Templates {
			if w.Templates[k].DaemonSet {
				free[i] = free[i].Minus(w.Templates[k].Requests)
			}
		}
	}
	if len(w.Commitments) > 0 {
		bill -= b.paid(nodes)
	}
	var place func(workload, served, node int, cost float64)
	place = func(workload, served, node int, cost float64) {
		if workload == len(w.Workloads) {
			costs[0] = min(costs[0], bill+cost)
			return
		}
		t, l := &w.Templates[workload], &w.Workloads[workload]
		most := 0
		switch {
		case workload == b.job:
			costs[served] = min(costs[served], bill+cost)
			most = len(costs) - 1
		case t.DaemonSet:
			place(workload+1, 0, 0, cost)
		default:
			most = int(l.Schedule[0].Replicas)
			place(workload+1, 0, 0, cost+float64(float64(most-served)*b.value[workload]))
		}
		if served == most {
			return
		}
		for n := node; n < len(nodes); n++ {
			if t.Requests.Within(free[n]) && (t.NodeSelector == nil || w.Markets[nodes[n]].Capacity == policy.OnDemand) {
				free[n] = free[n].Minus(t.Requests)
				place(workload, served+1, n, cost)
				free[n] = free[n].Plus(t.Requests)
			}
		}
	}
	place(0, 0, 0, 0)
}

// TestOracleIsBound: nothing that can be done in a tiny scenario costs less. The
// bound is of use too: over all scenarios it is not far below.
func TestOracleIsBound(t *testing.T) {
	var least, found float64
	rapid.Check(t, func(t *rapid.T) {
		w := drawTiny(t)
		o, err := New(w)
		if err != nil {
			t.Skip("a pod fits nowhere")
		}
		b := brute{w: w, value: o.value, job: -1}
		best, bound := b.cost(6, 0, 0), o.Every()
		if float64(bound.Cost) > best {
			t.Fatalf("the bound %v is above %.6f, which can be had: %s", bound, best/1e6, sketch(w))
		}
		least, found = least+float64(bound.Cost), found+best
	})
	if least < 0.7*found {
		t.Errorf("the bounds are %.0f %% of the best that can be had, want 70 at least", least/found*100)
	}
}

func sketch(w *scenarios.BoundScenario) string {
	s := fmt.Sprint(w.Duration)
	for i := range w.Types {
		s += fmt.Sprintf("; type %v od %v spot %v", w.Types[i].Allocatable, w.Prices[2*i].Price, w.Prices[2*i+1].Price)
	}
	for i := range w.Workloads {
		s += fmt.Sprintf("; %v × %v", w.Workloads[i].Schedule, w.Templates[i].Requests)
	}
	return s
}
