package sim

import (
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
)

// halves has two nodes of two pods each; at six one pod of the first node ends,
// and at ends one of the second. Nodes are left alone for half an hour. A third has
// cores to spare but no memory.
func halves(ends policy.Time) *builder {
	b := one(0)
	b.w.Pools[0].ConsolidateAfter = 30 * time.Minute
	for i, pod := range []struct {
		cpu  int64
		ends policy.Time
	}{{1900, 0}, {1900, at(6 * time.Hour)}, {1700, 0}, {1700, ends}} {
		b.workload("pod-"+string(rune('a'+i)), policy.KindDeployment, 1, policy.Resources{CPU: pod.cpu, Memory: 2 * gib})
		if pod.ends > 0 {
			b.w.Workloads[i+1].Schedule = append(b.w.Workloads[i+1].Schedule, scenarios.ReplicaStep{At: pod.ends, Replicas: 0})
		}
	}
	b.workload("hog", policy.KindDeployment, 1, policy.Resources{CPU: 100, Memory: 14 * gib})
	return b
}

// late adds a pod of the given size that starts at t.
func (b *builder) late(cpu int64, t policy.Time) *builder {
	b.workload("late", policy.KindDeployment, 0, policy.Resources{CPU: cpu, Memory: 2 * gib})
	w := &b.w.Workloads[len(b.w.Workloads)-1]
	w.Schedule = append(w.Schedule, scenarios.ReplicaStep{At: t, Replicas: 1})
	return b
}

// The first node may go half an hour after its pod ended, at 6:30; but its other
// pod has no place on the second node until that has been left alone for as long.
// What counts there is the last pod that ended, or that came.
func TestConsolidateAfter(t *testing.T) {
	for name, c := range map[string]struct {
		b    *builder
		from time.Duration
	}{
		"ended long before": {halves(at(time.Hour)), 6*time.Hour + 30*time.Minute},
		"ended since":       {halves(at(6*time.Hour + 20*time.Minute)), 6*time.Hour + 50*time.Minute},
		"came since":        {halves(at(time.Hour)).late(100, at(6*time.Hour+10*time.Minute)), 6*time.Hour + 40*time.Minute},
	} {
		_, log := runScenario(t, c.b.scenario(), "on-demand")
		begun := when(t, log, " draining ")
		if len(begun) != 1 || begun[0] < at(c.from) || begun[0] > at(c.from+time.Minute) {
			t.Errorf("%s: drains begin at %v, want one at %v", name, begun, at(c.from))
		}
	}
}

// The pods that could leave are protected for a time from their start: the first node may go
// when that is over, however long it has been left alone. Karpenter notices the end of a
// protection once it looks at all nodes again, which it does every five minutes.
func TestProtectedFor(t *testing.T) {
	for lasts, want := range map[time.Duration]time.Duration{
		time.Hour: 6*time.Hour + 30*time.Minute, 7*time.Hour + 20*time.Minute: 7*time.Hour + 20*time.Minute, 0: 0,
	} {
		b := halves(at(time.Hour))
		for _, i := range []int{1, 3} {
			w := &b.w.Workloads[i]
			if w.DoNotDisrupt = true; lasts > 0 {
				w.ProtectedFor = b.w.WarmUp + lasts // they start with the run
			}
		}
		_, log := runScenario(t, b.scenario(), "on-demand")
		begun := when(t, log, " draining ")
		if want == 0 && len(begun) > 0 || want > 0 && (len(begun) != 1 || begun[0] < at(want) || begun[0] > at(want+6*time.Minute)) {
			t.Errorf("protected for %v: drains begin at %v, want one at %v", lasts, begun, at(want))
		}
	}
}

// What a look for savings left out is open again after it: at 6:40 a pod comes
// that has room on the second node alone, and no other is bought.
func TestConsolidateLeavesNodesOpen(t *testing.T) {
	_, log := runScenario(t, halves(at(6*time.Hour+20*time.Minute)).late(2100, at(6*time.Hour+40*time.Minute)).scenario(), "on-demand")
	if n := count(log, " launch ") + count(log, " draining "); n != 0 {
		t.Errorf("%d nodes were launched or drained, want none", n)
	}
}

// A node whose last pod ends is empty, and goes when it has been left alone.
func TestConsolidateAfterEmpty(t *testing.T) {
	b := one(2, scenarios.ReplicaStep{At: at(6 * time.Hour), Replicas: 0})
	b.w.Pools[0].ConsolidateAfter = 30 * time.Minute
	_, log := runScenario(t, b.scenario(), "on-demand")
	gone := when(t, log, " deleted ")
	if len(gone) != 1 || gone[0] < at(6*time.Hour+30*time.Minute) || gone[0] > at(6*time.Hour+31*time.Minute) {
		t.Errorf("nodes went at %v, want one at 6:30", gone)
	}
}

// Three Spot nodes of 7.9 cores run a search of 3.9, a database of 2 with two small services of
// 1.5, and a batch of 6.4. By first fit, the largest pod first, the database and a service fit on
// the node of the search and the other service on that of the batch. Karpenter removes their node
// in the warm-up, and nothing is moved after that.
func TestFirstFitBySize(t *testing.T) {
	b := newBuilder(12 * time.Hour)
	b.w.Intensity, b.w.WarmUp = 0, time.Hour
	b.markets(1, 2, false)
	b.pool("p")
	for _, x := range []struct {
		name string
		kind policy.WorkloadKind
		cpu  int64
	}{
		{"batch", policy.KindDeployment, 6400}, {"search", policy.KindDeployment, 3900}, {"db", policy.KindStatefulSet, 2000},
		{"api-a", policy.KindDeployment, 1500}, {"api-b", policy.KindDeployment, 1500},
	} {
		b.workload(x.name, x.kind, 1,
			policy.Resources{CPU: x.cpu, Memory: x.cpu * 3 * gib / 1000}).Priority = map[bool]int32{true: 1000}[x.name == "db"]
	}
	for i := range b.w.Markets {
		if m := &b.w.Markets[i]; m.Capacity == policy.Spot && m.Type == 1 {
			b.w.StartCluster = scenarios.StartNodes
			b.w.Seeds = []scenarios.NodeSeed{{Pool: 0, Market: m.ID, Count: 3}}
		}
	}
	res, log := runScenario(t, b.scenario(), "spot")
	if n := count(log, " draining "); n != 0 || res.NodeHours != 2*12 {
		t.Errorf("%d nodes were drained after the warm-up, %.1f node-hours; want none and 24", n, res.NodeHours)
	}
}

// Without a provisioner only the policy expires nodes: under a policy that does not, they stay,
// and one that does has a replacement ready before a node is drained.
func TestExpireWhereThePolicyLaunches(t *testing.T) {
	b := one(4)
	b.w.Pools[0].Provisioner, b.w.Pools[0].Levers = policy.ProvisionerNone, policy.Levers{Launch: true}
	b.w.Pools[0].ExpireAfter = 4 * time.Hour
	w := b.scenario()
	if _, log := runScenario(t, w, "on-demand"); count(log, " draining ") != 0 {
		t.Errorf("%d nodes were drained under a policy that expires none", count(log, " draining "))
	}
	res, log := runScenario(t, w, "karpetrack")
	ready, begun := when(t, log, " initialized "), when(t, log, " draining ")
	// Two of four pods move at once, one more than can be spared, and start within 27 s.
	if len(begun) < 2 || len(ready) < len(begun) || begun[0] < ready[0] || res.Outage > time.Duration(len(begun))*27*time.Second {
		t.Errorf("replacements ready at %v, drains begun at %v, %v of outage; want replacements first and no more than the start of pods", ready, begun, res.Outage)
	}
}
