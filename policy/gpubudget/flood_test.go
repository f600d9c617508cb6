package gpubudget

import (
	"fmt"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// flood returns a snapshot of one namespace with a number of budgets and of pods, and the
// memory before it. Each pod has a template of its own, as labels of its own make it. The
// selector of budget i is what choose returns.
func flood(budgets, pods int, action policy.BudgetAction, choose func(i int) policy.Selector) (*policy.Snapshot, policy.Memory) {
	now := epoch.Add(30 * time.Hour)
	s := &policy.Snapshot{Now: now, Zones: []string{"z"}}
	s.Types = []policy.InstanceType{{Name: "big", GPUResource: "gpu", Allocatable: policy.Resources{CPU: 1, Memory: 1, GPU: 8, Pods: 99}}}
	s.Markets = []policy.Market{{Name: "m", Offered: true, Price: 8 * policy.Dollar, OnDemand: 8 * policy.Dollar}}
	for i := range pods / 8 {
		s.Nodes = append(s.Nodes, policy.Node{ID: policy.NodeID(i), Name: fmt.Sprint("n", i), Phase: policy.NodeInitialized,
			Pool: policy.None, GPUResource: "gpu", Allocatable: s.Types[0].Allocatable})
	}
	for i := range pods {
		s.Templates = append(s.Templates, policy.Template{ID: policy.TemplateID(i), Workload: policy.None, Namespace: "ns", GPUResource: "gpu",
			Requests: policy.Resources{GPU: 1, Pods: 1}, Labels: []policy.Label{{Key: "app",
				Value: fmt.Sprint("a", i%budgets)}, {Key: "own", Value: fmt.Sprint(i)}}})
		s.Pods = append(s.Pods, policy.Pod{ID: policy.PodID(i), Name: fmt.Sprintf("ns/p%05d", i),
			Template: policy.TemplateID(i), Phase: policy.PodReady,
			Node: policy.NodeID(i / 8), Nominated: policy.None, VolumeZone: policy.None, Bound: epoch})
	}
	var m policy.Memory
	for i := range budgets {
		b := policy.Budget{Name: fmt.Sprintf("ns/b%05d", i), Namespace: "ns", Selector: choose(i), Resource: "gpu",
			HasGPUHours: true, GPUHours: 1e9,
			Window: 24 * time.Hour, Action: action, Closed: action != policy.BudgetAlert}
		if b.Closed {
			b.GPUHours = 0
		}
		s.Budgets = append(s.Budgets, b)
		m.Budgets = append(m.Budgets, policy.BudgetMemory{Name: b.Name, Counted: now.Add(-time.Minute), Over: epoch, Closed: b.Closed})
	}
	return s, m
}

// selectors are the ways in which budgets of a flood choose pods.
var selectors = map[string]func(int) policy.Selector{
	"own": func(i int) policy.Selector { return selecting("app", policy.OpIn, fmt.Sprint("a", i)) },
	"all": func(int) policy.Selector { return policy.Selector{Everything: true} },
	"not": func(i int) policy.Selector { return selecting("app", policy.OpNotIn, fmt.Sprint("b", i)) },
}

func selecting(key string, op policy.Operator, values ...string) policy.Selector {
	return policy.Selector{Requirements: []policy.Requirement{{Key: key, Op: op, Values: values}}}
}

// TestFloodIsExact compares the index with every budget asked about every template.
func TestFloodIsExact(t *testing.T) {
	choose := func(i int) policy.Selector {
		switch i % 6 {
		case 0:
			return selectors["own"](i)
		case 1:
			return selectors["all"](i)
		case 2:
			return selectors["not"](i)
		case 3:
			return policy.Selector{Requirements: append(selecting("app", policy.OpExists).Requirements,
				selecting("own", policy.OpIn, "7", "8", "7").Requirements...)}
		case 4:
			return selecting("app", policy.OpIn, "a1", "a2", "a1")
		}
		return policy.Selector{}
	}
	s, _ := flood(40, 200, policy.BudgetAlert, choose)
	s.Templates[3].Namespace, s.Templates[5].Requests.GPU, s.Budgets[9].Invalid = "other", 0, true
	var x index
	for range 2 { // the second time in the memory of the first
		x.build(s.Templates, s.Budgets)
		for i := range s.Templates {
			var want []match
			for k := range s.Budgets {
				if n := s.Budgets[k].Counts(&s.Templates[i]); n > 0 && !s.Budgets[k].Invalid {
					want = append(want, match{int32(k), n})
				}
			}
			if fmt.Sprint(x.of[i]) != fmt.Sprint(want) {
				t.Fatalf("template %d counts in %v, want %v", i, x.of[i], want)
			}
		}
	}
}

// TestFloodIsSparse: of many budgets that select by a label of their own, each template is
// compared with those of its label alone, so that the work follows the pods.
func TestFloodIsSparse(t *testing.T) {
	s, _ := flood(2000, 10_000, policy.BudgetAlert, selectors["own"])
	var x policy.SelectorIndex
	x.Reset()
	for i := range s.Budgets {
		x.Add(int32(i), s.Budgets[i].Namespace, &s.Budgets[i].Selector)
	}
	compared := 0
	for i := range s.Templates {
		compared += len(x.Candidates(nil, s.Templates[i].Namespace, s.Templates[i].Labels))
	}
	if compared != len(s.Templates) {
		t.Errorf("%d comparisons for %d templates of one budget each", compared, len(s.Templates))
	}
}

// BenchmarkFlood decides with many budgets over 10,000 pods of one namespace.
func BenchmarkFlood(b *testing.B) {
	for _, n := range []int{100, 2000, 5000} {
		for _, name := range []string{"own", "all", "not"} {
			for _, action := range []policy.BudgetAction{policy.BudgetAlert, policy.BudgetEvict} {
				b.Run(fmt.Sprintf("budgets=%d/selectors=%s/action=%v", n, name, action), func(b *testing.B) {
					s, m := flood(n, 10_000, action, selectors[name])
					p := Around(&ordered{}, DefaultConfig())
					p.Decide(s, m)
					for b.Loop() {
						p.Decide(s, m)
					}
				})
			}
		}
	}
}
