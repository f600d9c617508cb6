package cluster

import (
	"slices"
	"strconv"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/sim/engine"
	"github.com/spotter-dev/spotter/sim/kueue"
)

// Jobs are the job instances of a run.
type Jobs struct {
	*Cluster

	All         []jobRun
	of          [][]int32 // by workload, the instances that have work left
	suspendedBy []string  // by workload, the budget that suspends it; empty if it is not suspended

	// registerMax is the longest registration delay of a node in any market.
	registerMax time.Duration
}

func (js *Jobs) init() {
	for i := range js.Scenario.Markets {
		_, most := js.Delays.Register(&js.Scenario.Markets[i])
		js.registerMax = max(js.registerMax, most)
	}
}

// A jobRun is one instance of a job.
type jobRun struct {
	work     policy.WorkloadID
	queued   policy.WorkloadID // the job that it is an instance of: work is a variant of it once it is admitted
	unit     kueue.ID          // what it is admitted with, or notQueued
	name     string
	released policy.Time
	due      policy.Time // deadline, 0 without one
	left     int32       // number of completions not yet done
	gang     int32       // index into Gangs, or -1
	Tasks    []Task
	settled  bool
	missed   bool
}

// A Task is one completion of a job instance.
type Task struct {
	Done    time.Duration // work saved at checkpoints
	Kept    time.Duration // additional saved work of a lost pod whose loss is not noticed yet
	running policy.PodID  // policy.None while no pod works on it
	began   policy.Time   // when the pod started to work; 0 while it is not ready
	over    bool
}

// release creates instance k of job w.
func (js *Jobs) release(w policy.WorkloadID, k int) {
	job := js.Scenario.Workloads[w].Job
	j := jobRun{work: w, queued: w, unit: notQueued, gang: -1, name: js.Scenario.Workloads[w].Name, released: js.Clock.Now,
		left: job.Completions, Tasks: make([]Task, job.Completions)}
	for i := range j.Tasks {
		j.Tasks[i].running = policy.None
	}
	if job.Deadline > 0 {
		j.due = js.Clock.Now.Add(job.Deadline)
		if j.due < js.Window.To {
			js.Clock.Add(j.due, engine.JobDue, int32(len(js.All)), 0, 0)
		}
	}
	js.of[w] = append(js.of[w], int32(len(js.All)))
	js.All = append(js.All, j)
	js.Log.Add(js.Clock.Now, engine.RecordReleased, j.name, "", int64(k))
	if i := len(js.All) - 1; !js.Gangs.join(int32(i)) && !js.Kueue.submit(j.name+"#"+strconv.Itoa(i), -1, int32(i)) {
		js.reconcile(i)
	}
}

// reconcile creates pods until as many work as the job allows. The pods of a gang are created all
// together.
func (js *Jobs) reconcile(i int) {
	j := &js.All[i]
	if j.gang >= 0 {
		js.Gangs.reconcile(j.gang)
		return
	}
	limit := js.Scenario.Workloads[j.work].Job.Pods
	busy := int32(0)
	for k := range j.Tasks {
		if j.Tasks[k].running != policy.None {
			busy++
		}
	}
	for k := range j.Tasks {
		if busy >= limit {
			break
		}
		if t := &j.Tasks[k]; !t.over && t.running == policy.None {
			if js.suspendedBy[j.work] != "" || js.Kueue.holds(j.unit) {
				break
			}
			if js.GPUBudgets.shut(j.work) {
				js.Workloads.deny(j.work)
				break
			}
			id := js.Pods.add(j.work)
			js.Pods.State[id].job, js.Pods.State[id].task = int32(i), int32(k)
			t.running, t.began = id, 0
			busy++
			js.Queue.enqueue(id)
		}
	}
	js.countWanted(j.work)
}

// startTask lets a ready pod start or resume its work.
func (js *Jobs) startTask(id policy.PodID) {
	x := &js.Pods.State[id]
	j := &js.All[x.job]
	t := &j.Tasks[x.task]
	t.began = js.Clock.Now
	js.Clock.Add(js.Clock.Now.Add(js.Scenario.Workloads[j.work].Job.Work-t.Done), engine.PodFinished, int32(id), 0, x.gen)
}

// stopTask removes the task from a pod that ends.
func (js *Jobs) stopTask(id policy.PodID) {
	x := &js.Pods.State[id]
	js.interruptTask(id)
	if t := &js.All[x.job].Tasks[x.task]; t.running == id {
		t.running = policy.None
		t.Done, t.Kept = t.Done+t.Kept, 0
	}
}

// interruptTask makes a pod stop working. The work since the last checkpoint is lost.
func (js *Jobs) interruptTask(id policy.PodID) {
	x := &js.Pods.State[id]
	j := &js.All[x.job]
	job, t := js.Scenario.Workloads[j.work].Job, &j.Tasks[x.task]
	if t.over || t.running != id || t.began == 0 {
		return
	}
	worked, safe := js.Clock.Now.Sub(t.began), time.Duration(0)
	if job.Checkpoint > 0 {
		safe = worked - worked%job.Checkpoint
	}
	t.began = 0
	if x.Lost {
		t.Kept = safe
	} else {
		t.Done += safe
	}
	if js.Metered() {
		js.Result.WorkLost += worked - safe
	}
}

// podFinished ends a pod that has done its work.
func (js *Jobs) podFinished(id policy.PodID) {
	x := &js.Pods.State[id]
	if x.job < 0 || js.Pods.All[id].Phase != policy.PodReady {
		return
	}
	i := int(x.job)
	j := &js.All[i]
	t := &j.Tasks[x.task]
	if t.began == 0 {
		return // its gang was halted in the meantime
	}
	t.began = 0
	t.Done, t.over, t.running = js.Scenario.Workloads[j.work].Job.Work, true, policy.None
	j.left--
	x.job = -1
	js.Pods.noteEnding(id)
	js.Pods.retire(id)
	js.Pods.remove(id, policy.EndFinished)
	if j.left == 0 {
		of := js.of[j.work]
		if k := slices.Index(of, int32(i)); k >= 0 {
			js.of[j.work] = slices.Delete(of, k, k+1)
		}
		js.Log.Add(js.Clock.Now, engine.RecordJobDone, j.name, "", 0)
		js.settle(i, js.Clock.Now)
		if j.gang < 0 {
			js.Kueue.finish(j.unit)
		}
		return
	}
	if j.gang < 0 {
		js.Kueue.shrink(j.unit, j.left, js.Scenario.Workloads[j.work].Job.Pods)
	}
	js.reconcile(i)
}

// settle accounts for instance i at its completion, its deadline or the end of the window,
// whichever comes first.
func (js *Jobs) settle(i int, at policy.Time) {
	j := &js.All[i]
	if j.settled {
		return
	}
	j.settled = true
	js.Workloads.touch(j.work) // the workload no longer has this deadline
	w := &js.Scenario.Workloads[j.queued]
	job, value := w.Job, js.Prepared.PodValue(j.queued)
	end := js.Window.To
	if j.due != 0 {
		end = min(end, j.due)
	}
	if end <= js.Window.From {
		return
	}
	if j.left == 0 {
		if at >= js.Window.From {
			js.Result.JobsDone++
		}
		return
	}
	// Work that was released too late to be finished on on-demand nodes costs nothing. The estimate
	// includes the launch of a node, and the start of a new pod for every completion.
	rounds := (job.Completions + job.Pods - 1) / job.Pods
	each := js.Delays.JobRound(js.Scenario.Templates[j.work].Startup, job.Work)
	if j.released.Add(js.registerMax+js.Delays.Initialize+js.Delays.Pull+each*time.Duration(rounds)) > end {
		return
	}
	leftMS := int64(0)
	for k := range j.Tasks {
		t := &j.Tasks[k]
		if t.over {
			continue
		}
		done := t.Done + t.Kept
		if t.began != 0 {
			done += at.Sub(t.began)
		}
		leftMS += int64(max(0, job.Work-done) / time.Millisecond)
	}
	js.Result.JobCost += 2 * perHourOf(value, leftMS)
	if j.due != 0 && j.due <= at {
		j.missed = true
		js.Result.JobsMissed++
		js.Result.JobCost += (value * policy.Money(min(job.Pods, j.left))).Times(w.OutagePenalty)
		js.Log.Add(at, engine.RecordJobMissed, j.name, "", leftMS)
	}
}

// Settle accounts for all instances at the end of the window.
func (js *Jobs) Settle(end policy.Time) {
	for i := range js.All {
		js.settle(i, end)
	}
}
