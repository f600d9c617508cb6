package sim

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// A gangPhase is where an instance of a gang is in its life.
type gangPhase uint8

const (
	gangIdle    gangPhase = iota // no pod is there: not yet, or not again
	gangWaiting                  // pods are there, and not all are ready
	gangWorking                  // all are ready and work
	gangEnding                   // one was lost; the others are being deleted
	gangOver                     // its work is done, or it has failed
)

// How long Kueue waits before it admits a workload again whose pods were not ready
// in time: requeueFirst, doubled each time, at most requeueMost
// (waitForPodsReady.requeuingStrategy of its configuration: backoffBaseSeconds
// and backoffMaxSeconds).
const (
	requeueFirst = 60 * time.Second
	requeueMost  = 3600 * time.Second
)

// A gangRun is one instance of a gang: one instance of each of its jobs. Its pods
// are created together, work only while all of them are ready, and are all
// deleted and made anew when one is lost.
type gangRun struct {
	gang  int32   // index into World.Gangs
	jobs  []int32 // its instances of the gang's jobs
	phase gangPhase
	gen   int32 // changes with every phase, by which a timer of a past phase is known

	alive int32 // pods that are there, terminating ones too
	ready int32 // of them those that are ready and not on a lost node

	released policy.Time
	retryAt  policy.Time // when it may be admitted again
	started  bool        // it has worked since it was admitted
	counted  bool        // its first start is in the result
	late     bool        // it ends because its pods were not ready in time
	restarts int32
	requeues int
}

// A gangEvent is what an evGang is for.
const (
	gangTimeout = iota // not all pods were ready in time
	gangRetry          // it is admitted again
)

func (r *run) newGangs() {
	r.gangOf = make([]int32, len(r.world.Workloads))
	for i := range r.gangOf {
		r.gangOf[i] = -1
	}
	r.gangOpen = make([]int32, len(r.world.Gangs))
	for i := range r.world.Gangs {
		r.gangOpen[i] = -1
		for _, w := range r.world.Gangs[i].Workloads {
			r.gangOf[w] = int32(i)
		}
	}
}

// joinGang puts a job instance that was just released into the instance of its
// gang, and creates the pods of all once the last job is there. It reports false
// for a job of no gang.
func (r *run) joinGang(job int32) bool {
	j := &r.jobs[job]
	of := r.gangOf[j.work]
	if of < 0 {
		return false
	}
	i := r.gangOpen[of]
	if i < 0 {
		i = int32(len(r.gangs))
		r.gangs = append(r.gangs, gangRun{gang: of, released: r.q.now})
		r.gangOpen[of] = i
	}
	g := &r.gangs[i]
	g.jobs = append(g.jobs, job)
	j.gang = i
	if len(g.jobs) == len(r.world.Gangs[of].Workloads) {
		r.gangOpen[of] = -1
		r.reconcileGang(i)
	}
	return true
}

// enter moves gang i to a phase.
func (r *run) enterGang(i int32, phase gangPhase) {
	g := &r.gangs[i]
	g.phase = phase
	g.gen++
}

// reconcileGang creates the pods of gang i, all of them, where none is there and
// it may have them: none of its jobs is suspended or denied pods, and it does not
// wait to be admitted again.
func (r *run) reconcileGang(i int32) {
	g := &r.gangs[i]
	world := &r.world.Gangs[g.gang]
	if g.phase != gangIdle || g.alive > 0 || r.gangOpen[g.gang] == i || r.q.now < g.retryAt {
		return
	}
	if slices.ContainsFunc(world.Workloads, func(w policy.WorkloadID) bool { return r.suspended[w] }) {
		return
	}
	for _, w := range world.Workloads {
		if r.shut(w) {
			r.denied(w)
			return
		}
	}
	r.enterGang(i, gangWaiting)
	for _, job := range g.jobs {
		for k := range r.jobs[job].tasks {
			id := r.newPod(r.jobs[job].work)
			x := &r.podX[id]
			x.job, x.task, x.gang = job, int32(k), i
			t := &r.jobs[job].tasks[k]
			t.running, t.began = id, 0
			g.alive++
			r.enqueue(id)
		}
		r.countWanted(r.jobs[job].work)
	}
	limit := world.ReadyTimeout
	if g.started {
		limit = world.RecoveryTimeout
	}
	if limit > 0 {
		r.q.add(r.q.now.Add(limit), evGang, i, gangTimeout, g.gen)
	}
}

// countWanted notes how many pods a job has.
func (r *run) countWanted(w policy.WorkloadID) {
	r.gauges[w].wanted = r.work[w].active
	r.touchWork(w)
}

// readyGang notes that one more pod of gang i is ready. With the last of them all
// begin to work, at one instant.
func (r *run) readyGang(i int32) {
	g := &r.gangs[i]
	g.ready++
	if g.phase != gangWaiting || g.ready < r.world.Gangs[g.gang].Size {
		return
	}
	r.enterGang(i, gangWorking)
	g.started = true
	if !g.counted {
		g.counted = true
		if r.q.now >= r.window.From {
			r.gangWaits = append(r.gangWaits, int64(r.q.now-g.released))
		}
	}
	r.log.add(r.q.now, logGangStart, r.world.Gangs[g.gang].Name, "", int64(r.q.now-g.released))
	for _, job := range g.jobs {
		for k := range r.jobs[job].tasks {
			r.startTask(r.jobs[job].tasks[k].running)
		}
	}
}

// haltGang stops the work of all pods of gang i, since none can go on without the
// others. What was not made safe at a checkpoint is lost by each.
func (r *run) haltGang(i int32) {
	for _, job := range r.gangs[i].jobs {
		for k := range r.jobs[job].tasks {
			if id := r.jobs[job].tasks[k].running; id != policy.None {
				r.interruptTask(id)
			}
		}
	}
}

// loseGang ends gang i since one of its pods ends: all others are deleted.
func (r *run) loseGang(i int32) {
	g := &r.gangs[i]
	if g.phase != gangWaiting && g.phase != gangWorking {
		return
	}
	r.haltGang(i)
	r.enterGang(i, gangEnding)
	for _, job := range g.jobs {
		for k := range r.jobs[job].tasks {
			if id := r.jobs[job].tasks[k].running; id != policy.None {
				r.deletePod(id, policy.EndGang)
			}
		}
	}
}

// gangPodGone notes that a pod of gang i has ended. With the last one the gang is
// made anew, unless its work is done or it has been lost too often.
func (r *run) gangPodGone(i int32) {
	g := &r.gangs[i]
	if g.alive--; g.alive > 0 {
		return
	}
	g.ready = 0
	for _, job := range g.jobs {
		r.countWanted(r.jobs[job].work)
	}
	world := &r.world.Gangs[g.gang]
	switch {
	case !slices.ContainsFunc(g.jobs, func(job int32) bool { return r.jobs[job].left > 0 }):
		r.enterGang(i, gangOver)
		return
	case slices.ContainsFunc(world.Workloads, func(w policy.WorkloadID) bool { return r.suspended[w] }):
		// It was suspended, which is no failure.
	case g.late:
		g.late, g.started = false, false
		wait := requeueMost
		if g.requeues < 6 {
			wait = requeueFirst << g.requeues
		}
		g.requeues++
		g.retryAt = r.q.now.Add(wait)
		if r.q.now >= r.window.From {
			r.result.Gangs.Requeues++
		}
		r.log.add(r.q.now, logGangRequeued, world.Name, "", int64(wait/time.Millisecond))
		r.enterGang(i, gangIdle)
		r.q.add(g.retryAt, evGang, i, gangRetry, g.gen)
		return
	case world.RestartsMax >= 0 && g.restarts >= world.RestartsMax:
		r.log.add(r.q.now, logGangFailed, world.Name, "", int64(g.restarts))
		if r.q.now >= r.window.From {
			r.result.Gangs.Failed++
		}
		r.enterGang(i, gangOver)
		return
	default:
		g.restarts++
		if r.q.now >= r.window.From {
			r.result.Gangs.Restarts++
		}
		r.log.add(r.q.now, logGangRestart, world.Name, "", int64(g.restarts))
	}
	r.enterGang(i, gangIdle)
	r.reconcileGang(i)
}

// handleGang carries out a timer of gang i.
func (r *run) handleGang(i, what, gen int32) {
	g := &r.gangs[i]
	if g.gen != gen {
		return
	}
	if what == gangRetry {
		r.reconcileGang(i)
		return
	}
	g.late = true
	r.loseGang(i)
}

// fillGangs completes the result with what the gangs came to.
func (r *run) fillGangs() {
	res := &r.result.Gangs
	for i := range r.gangs {
		if g := &r.gangs[i]; !g.counted && g.phase != gangOver {
			res.NotStarted++
		}
	}
	slices.SortFunc(r.gangWaits, cmp.Compare[int64])
	res.Started = int64(len(r.gangWaits))
	res.WaitP50, res.WaitP95 = percentile(r.gangWaits, 50), percentile(r.gangWaits, 95)
}

// checkGangs holds that the pods of a gang work all together or not at all, and
// that all are there or none is on its way.
func (r *run) checkGangs() error {
	for i := range r.gangs {
		g := &r.gangs[i]
		name, working, left, alive := r.world.Gangs[g.gang].Name, int32(0), int32(0), int32(0)
		for _, job := range g.jobs {
			for k := range r.jobs[job].tasks {
				t := &r.jobs[job].tasks[k]
				if t.over {
					continue
				}
				left++
				if t.began == 0 {
					continue
				}
				working++
				if x := &r.podX[t.running]; x.lost || r.pods[t.running].Phase != policy.PodReady {
					return fmt.Errorf("pod %s of gang %s works and is not ready", r.pods[t.running].Name, name)
				}
			}
		}
		for id := range r.pods {
			if r.pods[id].Phase != policy.PodGone && r.podX[id].gang == int32(i) {
				alive++
			}
		}
		// Those that end their work at one instant do so one after the other.
		done := g.phase == gangWorking && working == left
		if working != 0 && !done {
			return fmt.Errorf("%d of the %d pods of gang %s work", working, left, name)
		}
		if alive != g.alive {
			return fmt.Errorf("gang %s counts %d pods, there are %d", name, g.alive, alive)
		}
	}
	return nil
}
