package cluster

import (
	"cmp"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/sim/engine"
	"github.com/spotter-dev/spotter/sim/kueue"
	"github.com/spotter-dev/spotter/sim/result"
)

// retryPeriod is the time after which Kueue tries the workloads of a queue again for which there was
// no quota, once some became free (requeueBatchPeriod in pkg/cache/queue/inadmissible_workloads.go of
// Kueue 0.17).
const retryPeriod = time.Second

// Kueue keeps the instances of queued jobs suspended until there is quota for all of their pods.
type Kueue struct {
	*Cluster

	system *kueue.System // nil without queues
	units  []queuedUnit  // by kueue.ID
	tally  []queueTally  // by queue
	most   int           // largest number of flavors of a resource group

	// placed counts, by workload, the pods on the nodes with which the run starts of jobs that are
	// admitted from the start.
	placed []int32
}

// A queuedUnit is what is admitted as a whole: an instance of a job, or all jobs of an instance of a
// gang.
type queuedUnit struct {
	queue    int
	gang     int32 // index into Gangs, or -1
	jobs     []int32
	admitted bool
	since    policy.Time // when it was released, or lost its quota
}

// A queueTally counts what happened to a queue within the metered window.
type queueTally struct {
	admitted, preempted int64
	waits               []int64 // milliseconds until a unit was admitted, for each time
}

// notQueued is the unit of instances that need no admission.
const notQueued = kueue.ID(-1)

func (kq *Kueue) init() {
	setup := kq.Scenario.Queues
	if setup == nil {
		return
	}
	kq.system, kq.placed = kueue.New(setup.Setup), make([]int32, len(setup.Of))
	kq.tally = make([]queueTally, len(setup.Queues))
	for i := range setup.Queues {
		for g := range setup.Queues[i].Groups {
			kq.most = max(kq.most, len(setup.Queues[i].Groups[g].Flavors))
		}
	}
}

// submit puts the jobs of a unit into their queue. It returns false if they are in none.
func (kq *Kueue) submit(name string, gang int32, jobs ...int32) bool {
	if kq.system == nil {
		return false
	}
	of := func(job int32) *scenarios.Queued { return &kq.Scenario.Queues.Of[kq.Jobs.All[job].work] }
	first := of(jobs[0])
	if first.Queue == kueue.None {
		return false
	}
	w := kueue.Workload{UID: name, Queue: first.Queue, Priority: first.Priority, Created: kq.Clock.Now}
	if first.Created != 0 {
		w.Created = min(first.Created, w.Created)
	}
	for _, i := range jobs {
		j := &kq.Jobs.All[i]
		set := kueue.PodSet{Count: int64(kq.Scenario.Workloads[j.work].Job.Pods), Template: &kq.Scenario.Templates[j.work]}
		for _, v := range of(i).Requests {
			set.Requests = append(set.Requests, v*set.Count)
		}
		w.Sets = append(w.Sets, set)
	}
	id := kq.system.Submit(w)
	kq.units = append(kq.units, queuedUnit{queue: w.Queue, gang: gang, jobs: jobs, since: kq.Clock.Now})
	for _, i := range jobs {
		kq.Jobs.All[i].unit = id
	}
	if gang >= 0 {
		kq.Gangs.All[gang].unit = id
	}
	if flavors, runs := kq.running(jobs); runs {
		kq.system.Reserve(id, flavors, kq.Clock.Now)
		kq.resume(&kq.units[id], flavors)
		return true
	}
	kq.plan(0)
	return true
}

// runsAs returns the workload of the pods that a scenario has on a node at the start as those of
// workload w. If w is queued, its job is admitted then, and it is the first of its variants that may
// run on the node.
func (kq *Kueue) runsAs(w policy.WorkloadID, n *policy.Node) policy.WorkloadID {
	if kq.system == nil {
		return w
	}
	for _, v := range kq.Scenario.Queues.Of[w].Variants {
		if kq.Space.Suits(policy.TemplateID(v.Workload), n.Labels, n.Taints) == placement.OK {
			kq.placed[v.Workload]++
			return v.Workload
		}
	}
	return w
}

// running returns the flavors of jobs all of which have pods on the nodes with which the run starts,
// by job and resource. These pods count for no other job.
func (kq *Kueue) running(jobs []int32) (flavors [][]int, ok bool) {
	var variants []*scenarios.Variant
	for _, i := range jobs {
		of := kq.Scenario.Queues.Of[kq.Jobs.All[i].queued].Variants
		k := slices.IndexFunc(of, func(v scenarios.Variant) bool { return kq.placed[v.Workload] > 0 })
		if k < 0 {
			return nil, false
		}
		variants = append(variants, &of[k])
	}
	for k, v := range variants {
		kq.placed[v.Workload] -= min(kq.placed[v.Workload], kq.Scenario.Workloads[kq.Jobs.All[jobs[k]].queued].Job.Pods)
		flavors = append(flavors, v.Flavors)
	}
	return flavors, true
}

// plan plans a cycle of Kueue's scheduler.
func (kq *Kueue) plan(after time.Duration) {
	kq.Clock.Add(kq.Clock.Now.Add(after), engine.QueueCycle, 0, 0, 0)
}

// holds reports whether a unit must have no pods, since it is not admitted.
func (kq *Kueue) holds(id kueue.ID) bool { return id != notQueued && !kq.units[id].admitted }

// cycle runs cycles of Kueue's scheduler until one changes nothing. After a preemption the next one
// comes later: Kueue first suspends the jobs.
func (kq *Kueue) cycle() {
	for idle := 0; idle <= kq.most; idle++ { // without progress, other flavors are tried
		decisions := kq.system.Cycle(kq.Clock.Now)
		preempted := false
		for i := range decisions {
			d := &decisions[i]
			switch {
			case d.Outcome == kueue.Admitted:
				kq.admit(d)
				idle = -1
			case d.Parked:
				idle = -1
			}
			for _, v := range d.Victims {
				preempted = kq.preempt(v) || preempted
			}
		}
		if preempted {
			kq.plan(retryPeriod)
			return
		}
		if len(decisions) == 0 {
			return
		}
	}
}

// admit lets a unit have its pods on nodes of its flavors.
func (kq *Kueue) admit(d *kueue.Decision) {
	u := &kq.units[d.Workload]
	wait := int64(kq.Clock.Now - u.since)
	if kq.Metered() {
		t := &kq.tally[u.queue]
		t.admitted++
		t.waits = append(t.waits, wait)
	}
	kq.Log.Add(kq.Clock.Now, engine.RecordQueueAdmitted, kq.nameOf(u), kq.Scenario.Queues.Queues[u.queue].Name, wait)
	kq.resume(u, d.Flavors)
}

// resume creates the pods of a unit that has quota in these flavors, by job and resource.
func (kq *Kueue) resume(u *queuedUnit, flavors [][]int) {
	u.admitted = true
	for k, i := range u.jobs {
		of := &kq.Scenario.Queues.Of[kq.Jobs.All[i].queued]
		if w, known := of.Variant(flavors[k]); known {
			kq.move(i, w)
		}
	}
	kq.Jobs.reconcile(int(u.jobs[0]))
}

// nameOf returns the name of the job or gang of a unit.
func (kq *Kueue) nameOf(u *queuedUnit) string {
	if u.gang >= 0 {
		return kq.Scenario.Gangs[kq.Gangs.All[u.gang].gang].Name
	}
	return kq.Jobs.All[u.jobs[0]].name
}

// move makes job instance i one of workload w, whose pods it will have.
func (kq *Kueue) move(i int32, w policy.WorkloadID) {
	js := kq.Jobs
	before := js.All[i].work
	if before == w {
		return
	}
	if k := slices.Index(js.of[before], i); k >= 0 {
		js.of[before] = slices.Delete(js.of[before], k, k+1)
	}
	js.All[i].work = w
	js.of[w] = append(js.of[w], i)
	js.countWanted(before)
	js.countWanted(w)
}

// preempt takes the quota of a unit, and deletes its pods. It returns false if it has none anymore.
func (kq *Kueue) preempt(v kueue.Victim) bool {
	u := &kq.units[v.Workload]
	if !u.admitted {
		return false
	}
	u.admitted, u.since = false, kq.Clock.Now
	kq.system.Requeue(v.Workload)
	kq.system.Retry(u.queue)
	if kq.Metered() {
		kq.tally[u.queue].preempted++
	}
	kq.Log.Add(kq.Clock.Now, engine.RecordQueuePreempted, kq.nameOf(u), kq.Scenario.Queues.Queues[u.queue].Name,
		int64(v.Why))
	for _, i := range u.jobs {
		for k := range kq.Jobs.All[i].Tasks {
			if id := kq.Jobs.All[i].Tasks[k].running; id != policy.None {
				kq.Pods.delete(id, policy.EndPreempted)
			}
		}
	}
	return true
}

// hold takes the quota of a unit whose pods were not ready in time. It stays out of its queue until
// requeue, and then counts as new from the time of hold.
func (kq *Kueue) hold(id kueue.ID) {
	if id == notQueued || !kq.units[id].admitted {
		return
	}
	u := &kq.units[id]
	u.admitted, u.since = false, kq.Clock.Now
	kq.system.Hold(id, kq.Clock.Now)
	kq.free(u.queue)
}

// requeue lets a unit wait in its queue again.
func (kq *Kueue) requeue(id kueue.ID) {
	if id == notQueued {
		return
	}
	kq.system.Resume(id)
	kq.plan(0)
}

// shrink returns the quota of the pods that a job does not need anymore.
func (kq *Kueue) shrink(id kueue.ID, left, pods int32) {
	if id == notQueued || left >= pods {
		return
	}
	kq.system.Shrink(id, 0, int64(left))
	kq.free(kq.units[id].queue)
}

// finish removes a unit that has ended.
func (kq *Kueue) finish(id kueue.ID) {
	if id == notQueued {
		return
	}
	kq.units[id].admitted = false
	kq.system.Finish(id)
	kq.free(kq.units[id].queue)
}

// free records that quota of a queue became free.
func (kq *Kueue) free(queue int) {
	kq.system.Retry(queue)
	kq.plan(retryPeriod)
}

// fill adds the totals of the queues to the result.
func (kq *Kueue) fill() {
	if kq.system == nil {
		return
	}
	pending := make([]int64, len(kq.tally))
	for id := range kq.units {
		if kq.system.Waits(kueue.ID(id)) {
			pending[kq.units[id].queue]++
		}
	}
	for i := range kq.tally {
		t := &kq.tally[i]
		slices.SortFunc(t.waits, cmp.Compare[int64])
		kq.Result.Queues = append(kq.Result.Queues, result.QueueResult{Name: kq.Scenario.Queues.Queues[i].Name,
			Admitted: t.admitted, Preempted: t.preempted, Pending: pending[i],
			WaitP50: percentile(t.waits, 50), WaitP95: percentile(t.waits, 95)})
	}
}
