package sim

import (
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
)

// Of two nodes that are left alone for half an hour after a pod came or began to end, the first
// loses a pod at six. One without a grace period is gone before Karpenter sees it end: its node
// may go at once.
func TestPodWithoutGrace(t *testing.T) {
	for grace, from := range map[time.Duration]time.Duration{0: 6 * time.Hour, time.Second: 6*time.Hour + 30*time.Minute} {
		b := halves(at(time.Hour))
		for i := range b.w.Templates {
			b.w.Templates[i].Grace = grace
		}
		_, log := runScenario(t, b.scenario(), "on-demand")
		if begun := when(t, log, " draining "); len(begun) != 1 || begun[0] < at(from) || begun[0] > at(from+time.Minute) {
			t.Errorf("grace %v: drains begin at %v, want one at %v", grace, begun, at(from))
		}
	}
}

// Ten nodes are empty from six on, of which a tenth may go at once. Each is drained for five
// seconds, and counts until then: the look after a command finds no budget, the one ten seconds
// later does, and 15 s after that the next node goes. A node without a minimum goes every 15 s.
func TestPaceOfRemoval(t *testing.T) {
	for least, apart := range map[time.Duration]time.Duration{5 * time.Second: 25 * time.Second, 0: 15 * time.Second} {
		b := one(20, scenarios.ReplicaStep{At: at(6 * time.Hour), Replicas: 0})
		delays := DefaultDelays()
		delays.DrainMin = least
		_, log := runLogged(t, Config{Prepared: mustPrepare(t, b.scenario()), Policy: mustPolicy(t, "on-demand"), Seed: 1,
			Check: true, Delays: &delays})
		begun, gone := when(t, log, " draining "), when(t, log, " deleted ")
		if len(begun) != 10 || len(gone) != 10 {
			t.Fatalf("least %v: %d drains and %d nodes removed, want 10", least, len(begun), len(gone))
		}
		for i := range begun {
			if took := gone[i].Sub(begun[i]); took != least {
				t.Errorf("least %v: node %d is drained for %v", least, i, took)
			}
			if i > 0 && begun[i].Sub(begun[i-1]).Round(time.Second) != apart {
				t.Errorf("least %v: drains %d and %d begin %v apart, want %v", least, i-1, i, begun[i].Sub(begun[i-1]), apart)
			}
		}
	}
}

// The ReplicaSet controller makes 30 pods at once and then 20 a second, of two workloads in
// turn: 470 of 500 take 23.5 s. It deletes them so, too.
func TestPodWrites(t *testing.T) {
	b := one(0, scenarios.ReplicaStep{At: at(6 * time.Hour), Replicas: 250}, scenarios.ReplicaStep{At: at(7 * time.Hour), Replicas: 0})
	b.workload("other", policy.KindDeployment, 0, policy.Resources{CPU: 100, Memory: gib / 8})
	b.w.Workloads[1].Schedule = b.w.Workloads[0].Schedule
	b.w.Templates[0].Requests = b.w.Templates[1].Requests
	delays := DefaultDelays()
	delays.PodWrites, delays.PodWritesBurst = 20, 30
	_, log := runLogged(t, Config{Prepared: mustPrepare(t, b.scenario()), Policy: mustPolicy(t, "on-demand"), Seed: 1, Delays: &delays})
	for _, c := range []struct {
		what string
		from time.Duration
		lag  time.Duration
	}{{" created ", 6 * time.Hour, 0}, {" ended ", 7 * time.Hour, delays.Terminate}} {
		times := when(t, log, c.what)
		if len(times) != 500 {
			t.Fatalf("%d pods%s, want 500", len(times), c.what)
		}
		from := at(c.from).Add(c.lag)
		if times[29] != from || times[30] != from.Add(50*time.Millisecond) || times[499] != from.Add(23500*time.Millisecond) {
			t.Errorf("pods%sat %v, %v and %v, want 30 at once, then one each 50 ms", c.what, times[29].Sub(from),
				times[30].Sub(from), times[499].Sub(from))
		}
	}
	if apart := when(t, log, " created ", "other")[249].Sub(when(t, log, " created ",
		"web")[249]); apart < -100*time.Millisecond || apart > 100*time.Millisecond {
		t.Errorf("the last pods of the two workloads are made %v apart", apart)
	}
}
