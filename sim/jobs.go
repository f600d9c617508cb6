package sim

import (
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/sim/engine"
)

// jobs are the instances of jobs.
type jobs struct {
	*environment
	budgets   *gpuBudgets
	gangs     *gangs
	pods      *pods
	queue     *schedulingQueue
	serving   *serving
	workloads *workloads

	all         []jobRun
	of          [][]int32 // by workload, the instances that have work left
	suspendedBy []string  // by workload, the budget for which it is suspended; empty if it is not

	// registerMax is the longest that a node of any market takes to join.
	registerMax time.Duration
}

func (js *jobs) init() {
	for i := range js.scenario.Markets {
		_, most := js.delays.register(&js.scenario.Markets[i])
		js.registerMax = max(js.registerMax, most)
	}
}

// A jobRun is one instance of a job.
type jobRun struct {
	work     policy.WorkloadID
	name     string
	released policy.Time
	due      policy.Time // its deadline, 0 without one
	left     int32       // completions not yet done
	gang     int32       // index into run.gangs, or -1
	tasks    []task
	settled  bool
	missed   bool
}

// A task is one completion of a job instance.
type task struct {
	done    time.Duration // work made safe
	kept    time.Duration // and that which nobody knows yet to be all that is left
	running policy.PodID  // None while no pod works on it
	began   policy.Time   // when the pod began; 0 while it is not ready
	over    bool
}

// release creates instance k of job w.
func (js *jobs) release(w policy.WorkloadID, k int) {
	job := js.scenario.Workloads[w].Job
	j := jobRun{work: w, name: js.scenario.Workloads[w].Name, released: js.q.Now, left: job.Completions, gang: -1, tasks: make([]task, job.Completions)}
	for i := range j.tasks {
		j.tasks[i].running = policy.None
	}
	if job.Deadline > 0 {
		j.due = js.q.Now.Add(job.Deadline)
		if j.due < js.window.To {
			js.q.Add(j.due, engine.JobDue, int32(len(js.all)), 0, 0)
		}
	}
	js.of[w] = append(js.of[w], int32(len(js.all)))
	js.all = append(js.all, j)
	js.log.Add(js.q.Now, engine.RecordReleased, j.name, "", int64(k))
	if i := len(js.all) - 1; !js.gangs.join(int32(i)) {
		js.reconcile(i)
	}
}

// reconcile keeps as many pods at work as the job allows. Those of a gang are
// there all or none.
func (js *jobs) reconcile(i int) {
	j := &js.all[i]
	if j.gang >= 0 {
		js.gangs.reconcile(j.gang)
		return
	}
	limit := js.scenario.Workloads[j.work].Job.Pods
	busy := int32(0)
	for k := range j.tasks {
		if j.tasks[k].running != policy.None {
			busy++
		}
	}
	for k := range j.tasks {
		if busy >= limit {
			break
		}
		if t := &j.tasks[k]; !t.over && t.running == policy.None {
			if js.suspendedBy[j.work] != "" {
				break
			}
			if js.budgets.shut(j.work) {
				js.workloads.deny(j.work)
				break
			}
			id := js.pods.add(j.work)
			js.pods.state[id].job, js.pods.state[id].task = int32(i), int32(k)
			t.running, t.began = id, 0
			busy++
			js.queue.enqueue(id)
		}
	}
	js.countWanted(j.work)
}

// startTask lets a ready pod work on.
func (js *jobs) startTask(id policy.PodID) {
	x := &js.pods.state[id]
	j := &js.all[x.job]
	t := &j.tasks[x.task]
	t.began = js.q.Now
	js.q.Add(js.q.Now.Add(js.scenario.Workloads[j.work].Job.Work-t.done), engine.PodFinished, int32(id), 0, x.gen)
}

// stopTask takes the work from a pod that ends.
func (js *jobs) stopTask(id policy.PodID) {
	x := &js.pods.state[id]
	js.interruptTask(id)
	if t := &js.all[x.job].tasks[x.task]; t.running == id {
		t.running = policy.None
		t.done, t.kept = t.done+t.kept, 0
	}
}

// interruptTask makes a pod stop working. What was not made safe at a
// checkpoint is lost.
func (js *jobs) interruptTask(id policy.PodID) {
	x := &js.pods.state[id]
	j := &js.all[x.job]
	job, t := js.scenario.Workloads[j.work].Job, &j.tasks[x.task]
	if t.over || t.running != id || t.began == 0 {
		return
	}
	worked, safe := js.q.Now.Sub(t.began), time.Duration(0)
	if job.Checkpoint > 0 {
		safe = worked - worked%job.Checkpoint
	}
	t.began = 0
	if x.lost {
		t.kept = safe
	} else {
		t.done += safe
	}
	if js.q.Now >= js.window.From {
		js.result.WorkLost += worked - safe
	}
}

// podFinished ends a pod that has done its work.
func (js *jobs) podFinished(id policy.PodID) {
	x := &js.pods.state[id]
	if x.job < 0 || js.pods.all[id].Phase != policy.PodReady {
		return
	}
	i := int(x.job)
	j := &js.all[i]
	t := &j.tasks[x.task]
	if t.began == 0 {
		return // its gang was halted meanwhile
	}
	t.began = 0
	t.done, t.over, t.running = js.scenario.Workloads[j.work].Job.Work, true, policy.None
	j.left--
	x.job = -1
	js.pods.noteEnding(id)
	js.pods.retire(id)
	js.pods.remove(id, policy.EndFinished)
	if j.left == 0 {
		of := js.of[j.work]
		if k := slices.Index(of, int32(i)); k >= 0 {
			js.of[j.work] = slices.Delete(of, k, k+1)
		}
		js.log.Add(js.q.Now, engine.RecordJobDone, j.name, "", 0)
		js.settle(i, js.q.Now)
		return
	}
	js.reconcile(i)
}

// settle accounts for instance i at its end, its deadline or the end of the
// window, whichever comes first.
func (js *jobs) settle(i int, at policy.Time) {
	j := &js.all[i]
	if j.settled {
		return
	}
	j.settled = true
	js.workloads.touch(j.work) // its deadline is none any more
	w := &js.scenario.Workloads[j.work]
	job, value := w.Job, js.prepared.podValue[j.work]
	end := js.window.To
	if j.due != 0 {
		end = min(end, j.due)
	}
	if end <= js.window.From {
		return
	}
	if j.left == 0 {
		if at >= js.window.From {
			js.result.JobsDone++
		}
		return
	}
	// Work released too late to be finished on on-demand costs nothing: a node
	// has to come first, and every completion starts a pod of its own.
	rounds := (job.Completions + job.Pods - 1) / job.Pods
	each := js.delays.JobRound(js.scenario.Templates[j.work].Startup, job.Work)
	if j.released.Add(js.registerMax+js.delays.Initialize+js.delays.Pull+each*time.Duration(rounds)) > end {
		return
	}
	leftMS := int64(0)
	for k := range j.tasks {
		t := &j.tasks[k]
		if t.over {
			continue
		}
		done := t.done + t.kept
		if t.began != 0 {
			done += at.Sub(t.began)
		}
		leftMS += int64(max(0, job.Work-done) / time.Millisecond)
	}
	js.result.JobCost += 2 * perHourOf(value, leftMS)
	if j.due != 0 && j.due <= at {
		j.missed = true
		js.result.JobsMissed++
		js.result.JobCost += (value * policy.Money(min(job.Pods, j.left))).Times(w.OutagePenalty)
		js.log.Add(at, engine.RecordJobMissed, j.name, "", leftMS)
	}
}
