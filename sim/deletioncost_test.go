package sim

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
)

// An orderer gives the pods of the last node that has any the lowest deletion cost, an hour into
// metering, if orders is set. It records the number of pods by node before and after.
type orderer struct {
	orders        bool
	node          policy.NodeID
	before, after []int
}

func (*orderer) Name() string { return "orderer" }

func (o *orderer) Decide(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
	plan := policy.Plan{Wake: policy.NextStep(s.Now, policy.DefaultStep)}
	pods := make([]int, len(s.Nodes))
	for i := range s.Pods {
		if p := &s.Pods[i]; p.Phase == policy.PodReady {
			pods[p.Node]++
		}
	}
	switch s.Now {
	case at(time.Hour):
		o.before = pods
		for n := range pods {
			if pods[n] > 0 {
				o.node = policy.NodeID(n)
			}
		}
		if o.orders {
			plan.DeletionCosts = []policy.DeletionCost{{Node: o.node, Cost: -1}}
		}
	case at(110 * time.Minute):
		for i := range s.Pods {
			if p := &s.Pods[i]; o.orders && p.Phase == policy.PodReady && (p.DeletionCost == -1) != (p.Node == o.node) {
				panic("a pod shows a cost that it was not given, or not the one that it was")
			}
		}
	case at(150 * time.Minute):
		o.after = pods
	}
	m.Decisions++
	return plan, m
}

// TestDeletionCost shrinks a workload by as many pods as stand on its last node.
// Told to, exactly those go; else others do.
func TestDeletionCost(t *testing.T) {
	build := func(replicas int32) *builder {
		b := one(6, scenarios.ReplicaStep{At: at(2 * time.Hour), Replicas: replicas})
		b.w.Intensity = 0
		b.w.Templates[0].Requests.CPU = 1200 // three or so on a node
		b.w.Pools[0].Consolidation = policy.ConsolidateNever
		return b
	}
	run := func(o *orderer, replicas int32) string {
		var out bytes.Buffer
		mustRun(t, Config{Prepared: mustPrepare(t, build(replicas).scenario()), Policy: o, Seed: 1, Check: true, Log: &out})
		return out.String()
	}
	free := &orderer{}
	run(free, 6)
	stood := free.before[free.node]
	told := &orderer{orders: true}
	log := run(told, int32(6-stood))
	for n := range told.before {
		want := told.before[n]
		if policy.NodeID(n) == told.node {
			want = 0
		}
		if told.after[n] != want {
			t.Errorf("node %d has %d pods after the workload shrank by %d, want %d of %v", n, told.after[n], stood, want, told.before)
		}
	}
	if !strings.Contains(log, " deletion-cost ") {
		t.Errorf("the log does not tell of the order")
	}
	plain := &orderer{}
	if run(plain, int32(6-stood)); plain.after[plain.node] == 0 {
		t.Errorf("without an order the same node empties, %v from %v: the test shows nothing", plain.after, plain.before)
	}
}
