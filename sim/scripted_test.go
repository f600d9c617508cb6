package sim

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/sim/simtest"
)

// runScenario runs w under a policy with every checker on, and returns the result and the lines
// of the log from the start of metering on.
func runScenario(t *testing.T, w *scenarios.BoundScenario, spec string) (*Result, []string) {
	t.Helper()
	return playPolicy(t, w, mustPolicy(t, spec))
}

func playPolicy(t *testing.T, w *scenarios.BoundScenario, p policy.Policy) (*Result, []string) {
	t.Helper()
	return runLogged(t, Config{Prepared: mustPrepare(t, w), Policy: p, Forecaster: mustForecaster(t), Seed: 1, Check: true})
}

// runLogged returns the result of a run, and the lines of its log from the start of metering on.
func runLogged(t *testing.T, cfg Config) (*Result, []string) {
	t.Helper()
	var out bytes.Buffer
	cfg.Log = &out
	res := mustRun(t, cfg)
	var lines []string
	for line := range strings.Lines(out.String()) {
		if line[:len("2006-01-02")] >= cfg.Prepared.Scenario().Start.String()[:len("2006-01-02")] {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return res, lines
}

// count returns how many lines hold all the words.
func count(lines []string, words ...string) int {
	n := 0
	for _, line := range lines {
		all := true
		for _, w := range words {
			all = all && strings.Contains(line, w)
		}
		if all {
			n++
		}
	}
	return n
}

// one returns a calm scenario of one service.
func one(replicas int32, steps ...scenarios.ReplicaStep) *builder {
	return &builder{simtest.One(replicas, steps...)}
}

func at(d time.Duration) policy.Time { return testStart.Add(d) }

// TestScaleDown wants four pods of ten from noon on: six end, none is made.
func TestScaleDown(t *testing.T) {
	b := one(10, scenarios.ReplicaStep{At: at(6 * time.Hour), Replicas: 4})
	b.w.Pools[0].Consolidation = policy.ConsolidateNever
	_, log := runScenario(t, b.scenario(), "on-demand")
	if ended, created := count(log, " ended "), count(log, " created "); ended != 6 || created != 0 {
		t.Errorf("%d pods ended and %d were made, want 6 and 0", ended, created)
	}
}

// TestEmptyNodesGo has no pods from noon on: the nodes are released at once and not paid for in
// the afternoon.
func TestEmptyNodesGo(t *testing.T) {
	res, _ := runScenario(t, one(4, scenarios.ReplicaStep{At: at(6 * time.Hour), Replicas: 0}).scenario(), "on-demand")
	// Two nodes of $0.20/h for six hours, and little more.
	if least, most := policy.Money(2*6*200_000), policy.Money(2*6*200_000+40_000); res.Bill < least || res.Bill > most {
		t.Errorf("bill %v, want %v to %v", res.Bill, least, most)
	}
}

// TestGrace wants four more pods at noon than the pool's limits allow: they are
// missed from ten minutes later on, 4 × 350 min at the pod's value.
func TestGrace(t *testing.T) {
	b := one(4, scenarios.ReplicaStep{At: at(6 * time.Hour), Replicas: 8})
	b.w.Pools[0].Limits = policy.Resources{CPU: 8000}
	w := b.scenario()
	res, _ := runScenario(t, w, "on-demand")
	if want := mustPrepare(t, w).PodValue(0).Times(4 * 350 / 60.0); res.Unserved != want {
		t.Errorf("unserved %v, want %v", res.Unserved, want)
	}
	// Without a budget 8 − 2 are required, so two are short: one incident.
	if res.Incidents != 1 || res.OutageMinutes != 350 {
		t.Errorf("%d incidents of %d min, want 1 of 350", res.Incidents, res.OutageMinutes)
	}
}

// TestPreemption gives a pod of high priority the place of one of low priority
// where the pool may not grow.
func TestPreemption(t *testing.T) {
	b := one(2)
	b.w.Pools[0].Limits = policy.Resources{CPU: 4000}
	b.workload("vip", policy.KindDeployment, 0, policy.Resources{CPU: 1800, Memory: gib}).Priority = 1000
	b.w.Workloads[1].Schedule = append(b.w.Workloads[1].Schedule, scenarios.ReplicaStep{At: at(time.Hour), Replicas: 1})
	_, log := runScenario(t, b.scenario(), "on-demand")
	if n := count(log, " ended default/web-", " 5"); n != 1 {
		t.Errorf("%d pods of low priority were preempted, want 1", n)
	}
	if n := count(log, " ready default/vip-0"); n != 1 {
		t.Errorf("the pod of high priority is ready %d times, want once", n)
	}
}

// jobWorld runs one job of 60 min with checkpoints every 10, released at 1:00,
// and loses every node at 1:50 without a word.
func jobScenario(deadline time.Duration) *scenarios.BoundScenario {
	b := one(0)
	b.workload("job", policy.KindJob, 0, policy.Resources{CPU: 1800, Memory: gib})
	b.w.Workloads[1].Schedule = nil
	b.w.Workloads[1].Job = &scenarios.Job{Releases: []policy.Time{at(time.Hour)}, Pods: 1, Completions: 1,
		Work: time.Hour, Checkpoint: 10 * time.Minute, Deadline: deadline}
	b.w.Faults = []scenarios.Fault{{Kind: scenarios.FaultZoneOutage, At: at(110 * time.Minute), Duration: 3 * time.Minute}}
	return b.scenario()
}

// TestJob finishes after the loss of its node, from the last checkpoint: less
// than ten minutes are lost.
func TestJob(t *testing.T) {
	res, log := runScenario(t, jobScenario(0), "on-demand")
	if res.JobsDone != 1 || res.JobsMissed != 0 || res.JobCost != 0 {
		t.Errorf("%d done, %d missed, cost %v; want 1, 0 and nothing", res.JobsDone, res.JobsMissed, res.JobCost)
	}
	if res.WorkLost <= 0 || res.WorkLost >= 10*time.Minute {
		t.Errorf("%v of work lost, want less than 10m", res.WorkLost)
	}
	if count(log, " lost default/job-0") != 1 || count(log, " job-done ") != 1 {
		t.Error("the job's pod was not lost, or the job not done")
	}
}

// TestDeadline misses one of 62 minutes by the loss of the node: the hours left
// count twice, and the penalty of 4 h of one pod once.
func TestDeadline(t *testing.T) {
	w := jobScenario(62 * time.Minute)
	res, _ := runScenario(t, w, "on-demand")
	value := mustPrepare(t, w).PodValue(1)
	if res.JobsMissed != 1 || res.JobsDone != 0 {
		t.Fatalf("%d missed, %d done; want 1 and 0", res.JobsMissed, res.JobsDone)
	}
	// Forty minutes were safe when the node went; at most the rest is left.
	if least, most := value.Times(4), value.Times(4)+(2*value).Times(20/60.0); res.JobCost < least || res.JobCost > most {
		t.Errorf("cost %v, want %v to %v", res.JobCost, least, most)
	}
}

// TestNotice drains the nodes of a capacity shortage within the notice: every pod moves in time
// and none goes down with its node.
func TestNotice(t *testing.T) {
	b := one(6)
	b.w.Prices[3].Price[0]++ // spot in z1: all nodes come up in z0
	b.w.Faults = []scenarios.Fault{{Kind: scenarios.FaultCapacityShortage, At: at(3 * time.Hour), Duration: time.Hour, Share: 1, Zone: "z0"}}
	res, log := runScenario(t, b.scenario(), "spot")
	if res.Notices == 0 || res.Interruptions != res.Notices || res.Reclaims != 0 {
		t.Fatalf("%d notices, %d interruptions, %d reclaims; want as many, and no node taken", res.Notices, res.Interruptions, res.Reclaims)
	}
	if n := count(log, " lost "); n != 0 {
		t.Errorf("%d pods went down with their nodes in spite of the notice", n)
	}
	if res.SpotShare == 1 && count(log, " refused ") == 0 && count(log, " launch ") == 0 {
		t.Error("nothing was launched for the pods that lost their nodes")
	}
}

// TestControllerDown stops the controller for two hours: it decides nothing, and resumes at once
// afterwards.
func TestControllerDown(t *testing.T) {
	b := one(4)
	b.w.Faults = []scenarios.Fault{{Kind: scenarios.FaultControllerDown, At: at(3 * time.Hour), Duration: 2 * time.Hour}}
	_, log := runScenario(t, b.scenario(), "static")
	if n := count(log, "T03:", " step ") + count(log, "T04:", " step "); n != 0 {
		t.Errorf("%d decisions while the controller was down", n)
	}
	if n := count(log, "T05:00:00.000Z step"); n != 1 {
		t.Errorf("%d decisions when it came back, want 1", n)
	}
}

// TestPriceRamp bills a Spot node by the price of each step of a ramp, which rises to twice the
// price within an hour.
func TestPriceRamp(t *testing.T) {
	flat, _ := runScenario(t, one(2).scenario(), "spot")
	b := one(2)
	b.w.Faults = []scenarios.Fault{{Kind: scenarios.FaultPriceRamp, At: at(3 * time.Hour), Duration: time.Hour, Factor: 2}}
	ramped, _ := runScenario(t, b.scenario(), "spot")
	// Six steps of ten minutes at 1/6, 2/6 … 6/6 above a price of $0.06/h.
	if more, want := ramped.Bill-flat.Bill, policy.Money(60_000*21/36); more != want {
		t.Errorf("the ramp costs %v more, want %v", more, want)
	}
}

// TestBackToSpot refuses spot for the hours in which the cluster would move to
// it: on-demand nodes are replaced once the markets reopen, though nothing else
// changes in the cluster.
func TestBackToSpot(t *testing.T) {
	b := one(4)
	b.w.Faults = []scenarios.Fault{{Kind: scenarios.FaultCapacityShortage, At: testStart.Add(-time.Hour), Duration: 5 * time.Hour, Share: 1}}
	res, log := runScenario(t, b.scenario(), "spot")
	if n := count(log, "T04:", " launch ", "/spot "); n == 0 {
		t.Errorf("no spot node was launched when spot reopened at 04:00; spot share %v", res.SpotShare)
	}
}

// TestScaleDownByAge has three young pods of thirteen end first, and then five of ten that
// are of one age: not the first or the last of them. Each has a node of its own.
func TestScaleDownByAge(t *testing.T) {
	b := one(10, scenarios.ReplicaStep{At: at(3 * time.Hour), Replicas: 13}, scenarios.ReplicaStep{At: at(4 * time.Hour), Replicas: 10},
		scenarios.ReplicaStep{At: at(5 * time.Hour), Replicas: 5})
	b.w.Templates[0].Requests.CPU = 3500
	b.w.Pools[0].Consolidation = policy.ConsolidateNever
	_, log := runScenario(t, b.scenario(), "on-demand")
	var ended []int
	for _, line := range log {
		if _, name, ok := strings.Cut(line, " ended default/web-"); ok {
			n, err := strconv.Atoi(strings.Fields(name)[0])
			if err != nil {
				t.Fatal(err)
			}
			ended = append(ended, n)
		}
	}
	if len(ended) != 8 {
		t.Fatalf("%d pods ended, want 8: %v", len(ended), ended)
	}
	slices.Sort(ended[:3])
	slices.Sort(ended[3:])
	if !slices.Equal(ended[:3], []int{10, 11, 12}) {
		t.Errorf("pods %v ended first, want those of the last hour", ended[:3])
	}
	if rest := ended[3:]; rest[4] == 4 || rest[0] == 5 || rest[4] > 9 {
		t.Errorf("pods %v of one age ended, want any five of ten", rest)
	}
}
