package sim

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
)

// An emptier drains, an hour into metering, the node that runs most pods, and
// tells the provisioner of its pool what it may remove.
type emptier struct{ gentle, emptyOnly bool }

func (emptier) Name() string { return "emptier" }

func (e emptier) Decide(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
	plan := policy.Plan{Wake: policy.NextStep(s.Now, policy.DefaultStep)}
	if !s.Pools[0].Steer.Set {
		plan.Steers = []policy.Steer{{Pool: 0, EmptyOnly: e.emptyOnly}}
	}
	if s.Now == at(time.Hour) && e.gentle != e.emptyOnly {
		plan.Drains = []policy.Drain{{Node: fullest(s), Gentle: e.gentle}}
	}
	m.Decisions++
	return plan, m
}

func fullest(s *policy.Snapshot) policy.NodeID {
	pods, best := make([]int, len(s.Nodes)), policy.NodeID(0)
	for i := range s.Pods {
		if n := s.Pods[i].Node; n >= 0 && s.Pods[i].Phase == policy.PodReady {
			if pods[n]++; pods[n] > pods[best] {
				best = n
			}
		}
	}
	return best
}

func empty(t *testing.T, b *builder, e emptier) (*Result, string) {
	t.Helper()
	var out bytes.Buffer
	return mustRun(t, Config{Prepared: mustPrepare(t, b.scenario()), Policy: e, Seed: 1, Check: true, Log: &out}), out.String()
}

// TestGentleDrain empties a node with all four pods of a workload without a
// budget, of which three must be ready. A gentle drain lets them go one after the
// other, a plain one all at once.
func TestGentleDrain(t *testing.T) {
	build := func() *builder {
		b := newBuilder(4 * time.Hour)
		b.w.Intensity, b.w.WarmUp = 0, time.Hour
		b.markets(1, 2, false)
		b.pool("p").Consolidation = policy.ConsolidateNever
		b.workload("web", policy.KindDeployment, 4, policy.Resources{CPU: 1800, Memory: gib})
		return b
	}
	res, log := empty(t, build(), emptier{gentle: true})
	if res.Incidents != 0 || res.VoluntaryEvictions != 4 || strings.Contains(log, " undrained ") {
		t.Errorf("a gentle drain made %d incidents and %d evictions, want 0 and 4", res.Incidents, res.VoluntaryEvictions)
	}
	res, _ = empty(t, build(), emptier{emptyOnly: true})
	if res.VoluntaryEvictions != 4 || res.Incidents == 0 {
		t.Errorf("a plain drain made %d incidents and %d evictions, want some and 4", res.Incidents, res.VoluntaryEvictions)
	}
}

// TestEmptyOnly ends one of two workloads at two: what is left fits on fewer nodes,
// which the provisioner finds out only where it may remove nodes with pods.
func TestEmptyOnly(t *testing.T) {
	build := func() *builder {
		b := one(6, scenarios.ReplicaStep{At: at(2 * time.Hour), Replicas: 0})
		b.w.Templates[0].Requests.CPU = 2600 // so that one of each stands on a node
		b.workload("api", policy.KindDeployment, 6, policy.Resources{CPU: 1200, Memory: gib})
		return b
	}
	kept, _ := empty(t, build(), emptier{gentle: true, emptyOnly: true})
	free, _ := empty(t, build(), emptier{})
	if kept.VoluntaryEvictions != 0 || free.VoluntaryEvictions == 0 {
		t.Errorf("%d evictions where only empty nodes may go, %d where others may", kept.VoluntaryEvictions, free.VoluntaryEvictions)
	}
}

// TestGentleDrainOfASinglePod empties the node of a workload that wants one pod: to
// wait until another is ready would be to wait for ever, so it goes and is short for
// as long as it takes to serve again. One of two waits for the other.
func TestGentleDrainOfASinglePod(t *testing.T) {
	for _, c := range []struct {
		replicas  int32
		evictions int64
		short     bool
	}{{1, 1, true}, {2, 2, false}} {
		b := newBuilder(4 * time.Hour)
		b.w.Intensity, b.w.WarmUp = 0, time.Hour
		b.markets(1, 2, false)
		b.pool("p").Consolidation = policy.ConsolidateNever
		b.workload("web", policy.KindDeployment, c.replicas, policy.Resources{CPU: 1800, Memory: gib})
		res, log := empty(t, b, emptier{gentle: true})
		if got := res.VoluntaryEvictions; got != c.evictions || (res.Incidents > 0) != c.short || strings.Contains(log, " undrained ") {
			t.Errorf("%d replicas: %d evictions and %d incidents, want %d and some: %v", c.replicas, got, res.Incidents, c.evictions, c.short)
		}
	}
}
