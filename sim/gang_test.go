package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
)

// gang returns a calm scenario of one gang with the given number of pods. Each pod takes a node
// of one GPU and works for 4 h with a checkpoint every hour. It runs on Spot in the given number
// of zones, each of which has slots nodes. The gang is released at one.
func gang(pods int32, zones, slots int) *builder {
	b := newBuilder(12 * time.Hour)
	b.w.Intensity, b.w.WarmUp, b.w.Slots = 0, time.Hour, slots
	b.markets(zones, 1, true)
	b.pool("p").OnDemandFallback = false
	b.jobs(pods)
	return b
}

// jobs adds a gang of one job for each number of pods.
func (b *builder) jobs(pods ...int32) {
	g := scenarios.Gang{Name: "default/gang", RestartsMax: -1}
	for i, n := range pods {
		t := b.workload(fmt.Sprintf("job%d", i), policy.KindJob, n, policy.Resources{CPU: 3000, Memory: 8 * gib, GPU: 1})
		w := &b.w.Workloads[t.Workload]
		w.Schedule, w.DoNotDisrupt = nil, true
		w.Job = &scenarios.Job{Releases: []policy.Time{at(time.Hour)}, Pods: n, Completions: n, Work: 4 * time.Hour, Checkpoint: time.Hour}
		g.Workloads = append(g.Workloads, t.Workload)
		g.Size += n
	}
	b.w.Gangs = []scenarios.Gang{g}
	for i := range b.w.Templates {
		b.w.Templates[i].Gang = g.Size
	}
}

// TestGangWaits has a gang of 16 in a zone with capacity for 12: twelve nodes
// come and wait, and no pod works, to the end. With two such zones all 16 begin at
// once, when the last of them is ready, and end 4 h later.
func TestGangWaits(t *testing.T) {
	res, log := runScenario(t, gang(16, 1, 12).scenario(), "spot")
	if res.Gangs != (GangResult{NotStarted: 1}) || res.JobsDone != 0 || count(log, " gang-start ") != 0 {
		t.Errorf("with 12 of 16 nodes the gang came to %+v, %d jobs done", res.Gangs, res.JobsDone)
	}
	if ready, launched := count(log, " ready "), res.Launches; ready != 12 || launched != 12 || res.Refusals == 0 {
		t.Errorf("%d nodes and %d ready pods, %d refusals; want 12 of each that wait for the others", launched, ready, res.Refusals)
	}
	res, log = runScenario(t, gang(16, 2, 12).scenario(), "spot")
	start, ready, ended := when(t, log, " gang-start "), when(t, log, " ready "), when(t, log, " ended ")
	if len(start) != 1 || len(ready) != 16 || len(ended) != 16 || start[0] != ready[15] ||
		ended[0] != start[0].Add(4*time.Hour) || ended[15] != ended[0] {
		t.Errorf("started at %v, ready at %v, ended at %v; want one start with the last ready pod, and all to end 4 h later", start, ready, ended)
	}
	want := GangResult{Started: 1, WaitP50: start[0].Sub(at(time.Hour)), WaitP95: start[0].Sub(at(time.Hour))}
	if res.Gangs != want || res.JobsDone != 1 {
		t.Errorf("the gang came to %+v, %d done; want %+v and 1", res.Gangs, res.JobsDone, want)
	}
}

// TestGangWaitsForShortage refuses every launch for two hours from the release on: the gang
// starts only after that.
func TestGangWaitsForShortage(t *testing.T) {
	b := gang(4, 1, 8)
	b.w.Faults = []scenarios.Fault{{Kind: scenarios.FaultCapacityShortage, At: at(time.Hour), Duration: 2 * time.Hour, Share: 1}}
	res, _ := runScenario(t, b.scenario(), "spot")
	if res.Gangs.Started != 1 || res.Gangs.WaitP50 < 2*time.Hour || res.Gangs.WaitP50 > 2*time.Hour+10*time.Minute {
		t.Errorf("the gang came to %+v, want a wait of two hours and little more", res.Gangs)
	}
}

// TestGangEndsAsAWhole takes one of two zones from a gang that has worked for some time, without
// notice. Work stops at that instant for all 8 pods, also in the other zone, and each loses its
// work since its last checkpoint. All are recreated once the loss is detected, each time that a
// node is lost, and then resume from the checkpoint.
func TestGangEndsAsAWhole(t *testing.T) {
	b := gang(8, 2, 5)
	b.w.Faults = []scenarios.Fault{{Kind: scenarios.FaultZoneOutage, At: at(3*time.Hour + 40*time.Minute),
		Duration: 30 * time.Minute, Zone: "z0"}}
	res, log := runScenario(t, b.scenario(), "spot")
	start, lost, ended := when(t, log, " gang-start "), when(t, log, " lost "), when(t, log, " ended ")
	n := 8 * (1 + int(res.Gangs.Restarts))
	if len(start) != 2 || res.Gangs.Restarts == 0 || len(ended) != n || count(log, " created ") != n {
		t.Fatalf("%d starts, %d pods lost, %d ended, %d restarts; want 2 starts and all 8 pods made anew each time\n%s",
			len(start), len(lost), len(ended), res.Gangs.Restarts, strings.Join(log, "\n"))
	}
	if lost[0].Sub(at(3*time.Hour+40*time.Minute)) > 3*time.Minute || ended[7].Sub(lost[0]) < 50*time.Second {
		t.Errorf("the first pod was lost at %v and the last of its gang ended at %v, want 50 s at least until that is noticed", lost[0], ended[7])
	}
	worked := lost[0].Sub(start[0])
	if want := 8 * (worked % time.Hour); res.WorkLost != want {
		t.Errorf("%v of work lost, want that of all pods since the last checkpoint, %v", res.WorkLost, want)
	}
	left := 4*time.Hour - worked.Truncate(time.Hour)
	if ended[n-1] != start[1].Add(left) || res.JobsDone != 1 {
		t.Errorf("the gang ended at %v, %d jobs done; want %v after %v", ended[n-1], res.JobsDone, left, start[1])
	}
}

// TestGangThatLosesAReadyPod has one of two pods wait for the other, whose zone has no node for
// some minutes, and takes the node of the first at various instants: one is just before the
// second is ready, when the loss is not yet detected. The gang then must not start (a checker
// would find a lost pod at work).
func TestGangThatLosesAReadyPod(t *testing.T) {
	unnoticed := 0
	for k := range 30 {
		b := gang(2, 2, 1)
		b.w.Faults = []scenarios.Fault{
			{Kind: scenarios.FaultCapacityShortage, At: at(time.Hour), Duration: 10 * time.Minute, Share: .01, Zone: "z1"},
			{Kind: scenarios.FaultZoneOutage, At: at(time.Hour + 10*time.Minute + time.Duration(k)*15*time.Second),
				Duration: 5 * time.Minute, Zone: "z0"},
		}
		res, log := runScenario(t, b.scenario(), "spot")
		lost, ready := when(t, log, " lost "), when(t, log, " ready ")
		if len(lost) > 0 && slices.ContainsFunc(ready, func(x policy.Time) bool {
			return x > lost[0] &&
				x.Sub(lost[0]) < 50*time.Second
		}) && count(log, " gang-start ") == 1 {
			unnoticed++
		}
		if res.JobsDone != 1 {
			t.Errorf("outage %d: %+v", k, res.Gangs)
		}
	}
	if unnoticed == 0 {
		t.Error("no pod became ready after the loss of the other and before that was noticed")
	}
}

// TestGangOfSeveralJobs has a leader and three workers, as a JobSet has: none starts before all
// are ready, and the loss of the leader's node ends all.
func TestGangOfSeveralJobs(t *testing.T) {
	b := gang(1, 1, 2)
	b.w.Workloads, b.w.Templates = nil, nil
	b.jobs(1, 3)
	res, log := runScenario(t, b.scenario(), "spot")
	if res.Gangs.NotStarted != 1 || count(log, " gang-start ") != 0 {
		t.Errorf("with 2 of 4 nodes the gang came to %+v", res.Gangs)
	}
	b.w.Slots = 4
	if res, _ = runScenario(t, b.scenario(), "spot"); res.Gangs.Started != 1 || res.JobsDone != 2 {
		t.Errorf("the gang came to %+v, %d jobs done; want one start and 2", res.Gangs, res.JobsDone)
	}
}

// TestGangIsRequeued gives a gang of 4 in a zone with 2 nodes ten minutes to be
// ready: it is evicted and admitted again after 1, 2, 4 … minutes, at most an hour.
func TestGangIsRequeued(t *testing.T) {
	b := gang(4, 1, 2)
	b.w.Gangs[0].ReadyTimeout = 10 * time.Minute
	res, log := runScenario(t, b.scenario(), "spot")
	requeued, created := when(t, log, " gang-requeued "), when(t, log, " created ")
	if len(requeued) < 8 || res.Gangs.Requeues != int64(len(requeued)) || res.Gangs.Restarts != 0 || res.Gangs.NotStarted != 1 {
		t.Fatalf("%d times requeued, %+v", len(requeued), res.Gangs)
	}
	for i, wait := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute,
		16 * time.Minute, 32 * time.Minute, time.Hour, time.Hour} {
		from := created[4*i]
		if late := requeued[i].Sub(from); late < 10*time.Minute || late > 10*time.Minute+30*time.Second {
			t.Errorf("the pods of %v were given up after %v, want ten minutes", from, late)
		}
		if i < len(requeued)-1 && created[4*i+4] != requeued[i].Add(wait) {
			t.Errorf("after %v it was admitted at %v, want %v later", requeued[i], created[4*i+4], wait)
		}
	}
}

// TestGangFails takes the zone of a gang that may be recreated once, twice: the second time it
// fails.
func TestGangFails(t *testing.T) {
	b := gang(3, 1, 6)
	b.w.Gangs[0].RestartsMax = 1
	for i := range 2 {
		b.w.Faults = append(b.w.Faults, scenarios.Fault{Kind: scenarios.FaultZoneOutage,
			At: at(time.Duration(2+2*i) * time.Hour), Duration: 20 * time.Minute, Zone: "z0"})
	}
	res, log := runScenario(t, b.scenario(), "spot")
	if res.Gangs.Restarts != 1 || res.Gangs.Failed != 1 || count(log, " created ") != 6 || res.JobsDone != 0 || res.JobCost == 0 {
		t.Errorf("the gang came to %+v, %d pods created, %d jobs done at a cost of %v", res.Gangs, count(log, " created "),
			res.JobsDone, res.JobCost)
	}
}

// TestGangsInTrouble simulates gangs of random sizes and a service under reclaims, outages,
// refusals and time limits. After every event the checkers require that the pods of a gang work
// all together or not at all.
func TestGangsInTrouble(t *testing.T) {
	started, restarts, requeues := int64(0), int64(0), int64(0)
	for seed := range uint64(12) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		b := newBuilder(24 * time.Hour)
		b.w.Intensity, b.w.WarmUp, b.w.Slots = []float64{0, 50, 400}[rnd.IntN(3)], time.Hour, 2+rnd.IntN(6)
		b.markets(1+rnd.IntN(3), 1+rnd.IntN(2), true)
		b.pool("p").OnDemandFallback = rnd.IntN(2) == 0
		b.jobs(int32(1+rnd.IntN(3)), int32(1+rnd.IntN(4)))
		b.w.Gangs[0].ReadyTimeout = time.Duration(rnd.IntN(3)) * 15 * time.Minute
		b.w.Gangs[0].RecoveryTimeout = b.w.Gangs[0].ReadyTimeout
		for i := range b.w.Workloads {
			b.w.Workloads[i].DoNotDisrupt = rnd.IntN(2) == 0
			b.w.Workloads[i].Job.Releases = []policy.Time{at(time.Hour), at(9 * time.Hour)}
		}
		b.workload("web", policy.KindDeployment, int32(1+rnd.IntN(6)), policy.Resources{CPU: 1000, Memory: gib})
		for range rnd.IntN(4) {
			b.w.Faults = append(b.w.Faults, scenarios.Fault{Kind: []scenarios.FaultKind{scenarios.FaultZoneOutage,
				scenarios.FaultCapacityShortage}[rnd.IntN(2)],
				At: at(time.Duration(rnd.IntN(20*60)) * time.Minute), Duration: time.Duration(1+rnd.IntN(90)) * time.Minute, Share: rnd.Float64(), Zone: "z0"})
		}
		spec := []string{"spot", "static", "portfolio", "on-demand"}[rnd.IntN(4)]
		res := mustRun(t, Config{Prepared: mustPrepare(t, b.scenario()), Policy: mustPolicy(t, spec),
			Forecaster: mustForecaster(t), Seed: seed, Check: true})
		started, restarts, requeues = started+res.Gangs.Started, restarts+res.Gangs.Restarts, requeues+res.Gangs.Requeues
		if res.Gangs.Started+res.Gangs.NotStarted > 2 {
			t.Errorf("seed %d: %+v of 2 instances", seed, res.Gangs)
		}
	}
	if started == 0 || restarts == 0 || requeues == 0 {
		t.Errorf("%d starts, %d restarts, %d requeues: the test sees too little", started, restarts, requeues)
	}
}
