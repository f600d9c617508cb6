package cluster

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/sim/engine"
	"github.com/spotter-dev/spotter/sim/kueue"
)

// A gangPhase is a phase in the life of a gang instance.
type gangPhase uint8

const (
	gangIdle    gangPhase = iota // no pods exist: not yet, or not yet again
	gangWaiting                  // pods exist, and not all are ready
	gangWorking                  // all pods are ready and work
	gangEnding                   // one was lost; the others are being deleted
	gangOver                     // the work is done, or the gang has failed
)

// The time after which Kueue admits a workload again whose pods were not ready in time:
// requeueFirst, doubled each time, at most requeueMost (waitForPodsReady.requeuingStrategy of its
// configuration: backoffBaseSeconds and backoffMaxSeconds).
const (
	requeueFirst = 60 * time.Second
	requeueMost  = 3600 * time.Second
)

// Gangs are the gang instances of a run.
type Gangs struct {
	*Cluster

	All   []gangRun
	of    []int32 // by workload, its gang in the scenario or -1
	open  []int32 // by gang of the scenario, its instance whose jobs are not all released, or -1
	waits []int64 // milliseconds from release to the first start
}

// A gangRun is one instance of a gang: one instance of each of its jobs. Its pods are created
// together and work only while all of them are ready. When one is lost, all are deleted and created
// again.
type gangRun struct {
	gang  int32    // index into the scenario's Gangs
	jobs  []int32  // instances of the gang's jobs
	unit  kueue.ID // what it is admitted as, or notQueued
	phase gangPhase
	gen   int32 // incremented with every phase, so that timers of past phases are recognised

	alive int32 // number of existing pods, including terminating ones
	ready int32 // number of them that are ready and not on a lost node

	released policy.Time
	retryAt  policy.Time // when the gang may be admitted again
	started  bool        // the gang has worked since it was admitted
	counted  bool        // the first start is in the result
	late     bool        // the gang ends because its pods were not ready in time
	restarts int32
	requeues int
}

// The purposes of an engine.GangTimer.
const (
	gangTimeout = iota // not all pods were ready in time
	gangRetry          // the gang may be admitted again
)

func (gs *Gangs) init() {
	gs.of = make([]int32, len(gs.Scenario.Workloads))
	for i := range gs.of {
		gs.of[i] = -1
	}
	gs.open = make([]int32, len(gs.Scenario.Gangs))
	for i := range gs.Scenario.Gangs {
		gs.open[i] = -1
		for _, w := range gs.Scenario.Gangs[i].Workloads {
			gs.of[w] = int32(i)
		}
	}
}

// join adds a job instance that was just released to the instance of its gang, and creates the pods
// of all jobs once the last job is released. It returns false for a job that belongs to no gang.
func (gs *Gangs) join(job int32) bool {
	j := &gs.Jobs.All[job]
	of := gs.of[j.work]
	if of < 0 {
		return false
	}
	i := gs.open[of]
	if i < 0 {
		i = int32(len(gs.All))
		gs.All = append(gs.All, gangRun{gang: of, unit: notQueued, released: gs.Clock.Now})
		gs.open[of] = i
	}
	g := &gs.All[i]
	g.jobs = append(g.jobs, job)
	j.gang = i
	if len(g.jobs) == len(gs.Scenario.Gangs[of].Workloads) {
		gs.open[of] = -1
		if !gs.Kueue.submit(gs.Scenario.Gangs[of].Name+"#"+strconv.Itoa(int(i)), i, g.jobs...) {
			gs.reconcile(i)
		}
	}
	return true
}

// enter moves gang i to a phase.
func (gs *Gangs) enter(i int32, phase gangPhase) {
	g := &gs.All[i]
	g.phase = phase
	g.gen++
}

// reconcile creates all pods of gang i if it has no pods and may have them: all its jobs are
// released, none is suspended or denied pods, and the gang does not wait to be admitted again.
func (gs *Gangs) reconcile(i int32) {
	g := &gs.All[i]
	spec := &gs.Scenario.Gangs[g.gang]
	if g.phase != gangIdle || g.alive > 0 || gs.open[g.gang] == i || gs.Clock.Now < g.retryAt {
		return
	}
	if gs.Kueue.holds(g.unit) || gs.suspended(g) {
		return
	}
	for _, job := range g.jobs {
		if w := gs.Jobs.All[job].work; gs.GPUBudgets.shut(w) {
			gs.Workloads.deny(w)
			return
		}
	}
	gs.enter(i, gangWaiting)
	for _, job := range g.jobs {
		for k := range gs.Jobs.All[job].Tasks {
			id := gs.Pods.add(gs.Jobs.All[job].work)
			x := &gs.Pods.State[id]
			x.job, x.task, x.gang = job, int32(k), i
			t := &gs.Jobs.All[job].Tasks[k]
			t.running, t.began = id, 0
			g.alive++
			gs.Queue.enqueue(id)
		}
		gs.Jobs.countWanted(gs.Jobs.All[job].work)
	}
	limit := spec.ReadyTimeout
	if g.started {
		limit = spec.RecoveryTimeout
	}
	if limit > 0 {
		gs.Clock.Add(gs.Clock.Now.Add(limit), engine.GangTimer, i, gangTimeout, g.gen)
	}
}

// suspended reports whether a budget suspends one of the jobs of a gang.
func (gs *Gangs) suspended(g *gangRun) bool {
	return slices.ContainsFunc(g.jobs, func(job int32) bool { return gs.Jobs.suspendedBy[gs.Jobs.All[job].work] != "" })
}

// countWanted sets the number of pods that a job wants to the number that it has.
func (js *Jobs) countWanted(w policy.WorkloadID) {
	js.Serving.Of[w].wanted = js.Workloads.State[w].Active
	js.Workloads.touch(w)
}

// podReady records that one more pod of gang i is ready. When the last one is, all pods start to
// work at the same instant.
func (gs *Gangs) podReady(i int32) {
	g := &gs.All[i]
	g.ready++
	if g.phase != gangWaiting || g.ready < gs.Scenario.Gangs[g.gang].Size {
		return
	}
	gs.enter(i, gangWorking)
	g.started = true
	if !g.counted {
		g.counted = true
		if gs.Metered() {
			gs.waits = append(gs.waits, int64(gs.Clock.Now-g.released))
		}
	}
	gs.Log.Add(gs.Clock.Now, engine.RecordGangStart, gs.Scenario.Gangs[g.gang].Name, "", int64(gs.Clock.Now-g.released))
	for _, job := range g.jobs {
		for k := range gs.Jobs.All[job].Tasks {
			gs.Jobs.startTask(gs.Jobs.All[job].Tasks[k].running)
		}
	}
}

// halt stops the work of all pods of gang i, because no pod can continue without the others. Each
// pod loses the work since its last checkpoint.
func (gs *Gangs) halt(i int32) {
	for _, job := range gs.All[i].jobs {
		for k := range gs.Jobs.All[job].Tasks {
			if id := gs.Jobs.All[job].Tasks[k].running; id != policy.None {
				gs.Jobs.interruptTask(id)
			}
		}
	}
}

// lose ends gang i because one of its pods ends: all other pods are deleted.
func (gs *Gangs) lose(i int32) {
	g := &gs.All[i]
	if g.phase != gangWaiting && g.phase != gangWorking {
		return
	}
	gs.halt(i)
	gs.enter(i, gangEnding)
	for _, job := range g.jobs {
		for k := range gs.Jobs.All[job].Tasks {
			if id := gs.Jobs.All[job].Tasks[k].running; id != policy.None {
				gs.Pods.delete(id, policy.EndGang)
			}
		}
	}
}

// podGone records that a pod of gang i has ended. After the last one, the gang is created again,
// unless its work is done or it has restarted too often.
func (gs *Gangs) podGone(i int32) {
	g := &gs.All[i]
	if g.alive--; g.alive > 0 {
		return
	}
	g.ready = 0
	for _, job := range g.jobs {
		gs.Jobs.countWanted(gs.Jobs.All[job].work)
	}
	spec := &gs.Scenario.Gangs[g.gang]
	switch {
	case !slices.ContainsFunc(g.jobs, func(job int32) bool { return gs.Jobs.All[job].left > 0 }):
		gs.enter(i, gangOver)
		gs.Kueue.finish(g.unit)
		return
	case gs.suspended(g), gs.Kueue.holds(g.unit) && !g.late:
		// A suspension is not a failure.
	case g.late:
		g.late, g.started = false, false
		wait := requeueMost
		if g.requeues < 6 {
			wait = requeueFirst << g.requeues
		}
		g.requeues++
		g.retryAt = gs.Clock.Now.Add(wait)
		if gs.Metered() {
			gs.Result.Gangs.Requeues++
		}
		gs.Log.Add(gs.Clock.Now, engine.RecordGangRequeued, spec.Name, "", int64(wait/time.Millisecond))
		gs.enter(i, gangIdle)
		gs.Clock.Add(g.retryAt, engine.GangTimer, i, gangRetry, g.gen)
		return
	case spec.RestartsMax >= 0 && g.restarts >= spec.RestartsMax:
		gs.Log.Add(gs.Clock.Now, engine.RecordGangFailed, spec.Name, "", int64(g.restarts))
		if gs.Metered() {
			gs.Result.Gangs.Failed++
		}
		gs.enter(i, gangOver)
		gs.Kueue.finish(g.unit)
		return
	default:
		g.restarts++
		if gs.Metered() {
			gs.Result.Gangs.Restarts++
		}
		gs.Log.Add(gs.Clock.Now, engine.RecordGangRestart, spec.Name, "", int64(g.restarts))
	}
	gs.enter(i, gangIdle)
	gs.reconcile(i)
}

// handle handles a timer of gang i. Timers of past phases are ignored.
func (gs *Gangs) handle(i, what, gen int32) {
	g := &gs.All[i]
	if g.gen != gen {
		return
	}
	if what == gangRetry {
		gs.Kueue.requeue(g.unit)
		gs.reconcile(i)
		return
	}
	g.late = true
	gs.Kueue.hold(g.unit)
	gs.lose(i)
}

// fill adds the totals of the gangs to the result.
func (gs *Gangs) fill() {
	res := &gs.Result.Gangs
	for i := range gs.All {
		if g := &gs.All[i]; !g.counted && g.phase != gangOver {
			res.NotStarted++
		}
	}
	slices.SortFunc(gs.waits, cmp.Compare[int64])
	res.Started = int64(len(gs.waits))
	res.WaitP50, res.WaitP95 = percentile(gs.waits, 50), percentile(gs.waits, 95)
}
