package sim

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/spotter-dev/spotter/policy"
)

// rebuilt returns the tables of a snapshot with nothing left over from an older
// one.
func (r *run) rebuilt() (nodes []policy.Node, pods []policy.Pod, work []policy.Workload) {
	var s policy.Snapshot
	for i := range r.Scenario.Workloads {
		s.Workloads = append(s.Workloads, r.Scenario.Workloads[i].Workload)
		r.cluster.Workloads.Observe(policy.WorkloadID(i), &s.Workloads[i])
	}
	return r.cluster.Nodes.All, r.cluster.Pods.All, s.Workloads
}

func (r *run) compare(s *policy.Snapshot) error {
	nodes, pods, work := r.rebuilt()
	if len(s.Nodes) != len(nodes) || len(s.Pods) != len(pods) {
		return fmt.Errorf("%d nodes and %d pods are seen of %d and %d", len(s.Nodes), len(s.Pods), len(nodes), len(pods))
	}
	for i := range nodes {
		if !reflect.DeepEqual(s.Nodes[i], nodes[i]) {
			return fmt.Errorf("node %d is seen as %+v, it is %+v", i, s.Nodes[i], nodes[i])
		}
	}
	for i := range pods {
		if !reflect.DeepEqual(s.Pods[i], pods[i]) {
			return fmt.Errorf("pod %d is seen as %+v, it is %+v", i, s.Pods[i], pods[i])
		}
	}
	if !reflect.DeepEqual(s.Workloads, work) {
		return fmt.Errorf("workloads are seen as %+v, they are %+v", s.Workloads, work)
	}
	if !reflect.DeepEqual(s.PDBs, r.cluster.PDBs.All) && len(r.cluster.PDBs.All) > 0 {
		return fmt.Errorf("budgets are seen as %+v, they are %+v", s.PDBs, r.cluster.PDBs.All)
	}
	for i := range r.machines.Pools.All {
		seen := s.Pools[i]
		seen.Actions = nil
		if !reflect.DeepEqual(seen, r.machines.Pools.All[i]) {
			return fmt.Errorf("pool %d is seen as %+v, it is %+v", i, seen, r.machines.Pools.All[i])
		}
	}
	return nil
}

// TestObserve compares every snapshot of random scenarios, in which only what changed since the
// one before last is updated, with one that is rebuilt completely.
func TestObserve(t *testing.T) {
	const scenarios = 60
	for seed := uint64(1); seed <= scenarios; seed++ {
		var r *run
		var bad error
		watch := watcher{mustPolicy(t, specs[seed%uint64(len(specs))]), func(s *policy.Snapshot) {
			if e := r.compare(s); e != nil && bad == nil {
				bad = fmt.Errorf("at %v: %w", s.Now, e)
			}
		}}
		r, err := newRun(Config{Prepared: mustPrepare(t, randomScenario(seed)), Policy: watch, Forecaster: mustForecaster(t), Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		r.begin(false)
		if err := r.loop(t.Context()); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if bad != nil {
			t.Fatalf("seed %d: %v", seed, bad)
		}
	}
}

// A watcher shows every snapshot before it is decided on: what the plan then
// does must not be in it.
type watcher struct {
	policy.Policy
	see func(*policy.Snapshot)
}

func (w watcher) Decide(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
	w.see(s)
	return w.Policy.Decide(s, m)
}
