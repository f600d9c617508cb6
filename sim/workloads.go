package sim

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/chance"
)

// A workState is a workload's controller.
type workState struct {
	pods    []policy.PodID // those not gone, terminating ones too
	active  int32          // of them those not terminating
	created int
	zones   []policy.ZoneID // of a StatefulSet's volumes, by ordinal
	dirty   uint8

	// owed are pods that were taken and of which the next ones made have the place.
	owed [OutageCauses]int32

	// shrinking says that pods are being deleted one by one until active is
	// what is wanted.
	shrinking bool

	// denied is since when a closed gate has denied it a pod that it wants.
	denied policy.Time
}

func (w *workState) volumeZone(ordinal int32) policy.ZoneID {
	if int(ordinal) < len(w.zones) {
		return w.zones[ordinal]
	}
	return policy.None
}

func (w *workState) keepZone(ordinal int32, z policy.ZoneID) {
	for int(ordinal) >= len(w.zones) {
		w.zones = append(w.zones, policy.None)
	}
	w.zones[ordinal] = z
}

func (r *run) newWorkloads() {
	w := r.world
	r.work = make([]workState, len(w.Workloads))
	r.gauges = make([]gauge, len(w.Workloads))
	r.jobsOf = make([][]int32, len(w.Workloads))
	r.pdbs = slices.Clone(w.PDBs)
	r.pdbOf = make([][]policy.WorkloadID, len(w.PDBs))
	for i := range w.Templates {
		if w.Templates[i].DaemonSet {
			r.daemons = append(r.daemons, policy.TemplateID(i))
			continue
		}
		for _, p := range w.Templates[i].PDBs {
			r.pdbOf[p] = append(r.pdbOf[p], w.Templates[i].Workload)
		}
	}
	r.lowest = math.MaxInt32
	for i := range r.gauges {
		r.gauges[i].since = r.stage.begin
		if !w.Templates[i].DaemonSet {
			r.lowest = min(r.lowest, w.Templates[i].Priority)
		}
	}
}

// startWorkloads creates the pods wanted when warm-up begins and plans what the
// schedules say.
func (r *run) startWorkloads() {
	for i := range r.world.Workloads {
		w, id := &r.world.Workloads[i], policy.WorkloadID(i)
		if w.Job != nil {
			for k, at := range w.Job.Releases {
				if at >= r.q.now && at < r.window.To {
					r.q.add(at, evRelease, int32(id), int32(k), 0)
				}
			}
			continue
		}
		first := int32(0)
		for k, step := range w.Schedule {
			if step.At <= r.q.now || k == 0 {
				first = step.Replicas
			}
			if step.At > r.q.now && step.At < r.window.To {
				r.q.add(step.At, evReplicas, int32(id), int32(k), 0)
			}
		}
		g := &r.gauges[i]
		g.wanted, g.desired = first, first
		r.setRequired(id)
		for range first {
			r.newPod(id)
		}
	}
	for i := range r.work {
		r.touchWork(policy.WorkloadID(i))
		r.updatePDBs(policy.WorkloadID(i))
	}
}

// stepReplicas carries out step k of a workload's schedule.
func (r *run) stepReplicas(w policy.WorkloadID, k int) {
	g, want := &r.gauges[w], r.world.Workloads[w].Schedule[k].Replicas
	if want == g.wanted {
		return
	}
	g.advance(r.q.now, r.window)
	g.wanted = want
	r.forgetOwed(w)
	if want < g.desired {
		g.desired = want
	} else {
		r.q.add(r.q.now.Add(r.world.ReadyGrace), evGrace, int32(w), want, 0)
	}
	r.setRequired(w)
	r.touchWork(w)
	r.updatePDBs(w)
	r.log.add(r.q.now, logReplicas, r.world.Workloads[w].Name, "", int64(want))
	r.reconcile(w)
}

// countGrowth makes what was wanted a ready grace ago, and is wanted still,
// count as desired.
func (r *run) countGrowth(w policy.WorkloadID) {
	g := &r.gauges[w]
	since := r.q.now.Add(-r.world.ReadyGrace)
	least := g.wanted
	for _, step := range r.world.Workloads[w].Schedule {
		if step.At > since && step.At <= r.q.now {
			least = min(least, step.Replicas)
		}
	}
	// What held at the begin of the grace is bounded by the step before it.
	least = min(least, r.replicasAt(w, since))
	g.advance(r.q.now, r.window)
	g.desired = max(g.desired, least)
	r.setRequired(w)
}

func (r *run) replicasAt(w policy.WorkloadID, t policy.Time) int32 {
	schedule := r.world.Workloads[w].Schedule
	n := schedule[0].Replicas
	for _, step := range schedule {
		if step.At <= t {
			n = step.Replicas
		}
	}
	return n
}

// setRequired derives the required part of what is desired: the strictest
// matching budget, or without one all but a quarter (at least one may miss).
func (r *run) setRequired(w policy.WorkloadID) {
	r.gauges[w].required = r.admitted(w, r.requiredOf(w, r.gauges[w].desired))
	r.touchedWork(w)
}

// requiredOf returns the part of the pods of w that must be ready when so many
// are desired.
func (r *run) requiredOf(w policy.WorkloadID, desired int32) int32 {
	pdbs := r.world.Templates[w].PDBs
	if len(pdbs) == 0 {
		required := desired - max(1, desired/4)
		if desired >= 1 {
			required = max(required, 1)
		}
		return max(required, 0)
	}
	required := int32(0)
	for _, p := range pdbs {
		required = max(required, r.world.PDBs[p].Required(desired))
	}
	return min(required, desired)
}

// reconcile makes a workload have the pods that it wants.
func (r *run) reconcile(w policy.WorkloadID) {
	ws, want := &r.work[w], r.gauges[w].wanted
	switch r.world.Workloads[w].Kind {
	case policy.KindDaemonSet, policy.KindJob:
		return // nodes and job instances make these
	case policy.KindStatefulSet:
		r.reconcileOrdered(w)
		return
	}
	for ws.active < want {
		if r.shut(w) {
			r.denied(w)
			break
		}
		r.enqueue(r.newPod(w))
	}
	if ws.active > want && !ws.shrinking {
		r.scaleDown(w, ws.active-want)
	}
}

// reconcileOrdered does so in a StatefulSet's way: from the lowest ordinal up,
// each once all before it are ready, and down from the highest.
func (r *run) reconcileOrdered(w policy.WorkloadID) {
	ws, want := &r.work[w], r.gauges[w].wanted
	if ws.active > want {
		highest := policy.PodID(policy.None)
		for _, id := range ws.pods {
			if r.pods[id].Phase != policy.PodTerminating && (highest == policy.None || r.podX[id].ordinal > r.podX[highest].ordinal) {
				highest = id
			}
		}
		r.deletePod(highest, policy.EndScaled)
		return
	}
	if ws.active == want || int32(len(ws.pods)) > ws.active {
		return // complete, or one is still terminating and holds its name
	}
	for _, id := range ws.pods {
		if r.pods[id].Phase != policy.PodReady && r.podX[id].ordinal < r.freeOrdinal(w) {
			return
		}
	}
	if r.shut(w) {
		r.denied(w)
		return
	}
	r.enqueue(r.newPod(w))
}

// freeOrdinal returns the lowest ordinal that no pod of w has.
func (r *run) freeOrdinal(w policy.WorkloadID) int32 {
	for ordinal := int32(0); ; ordinal++ {
		if !slices.ContainsFunc(r.work[w].pods, func(id policy.PodID) bool { return r.podX[id].ordinal == ordinal }) {
			return ordinal
		}
	}
}

// scaleDown deletes n pods in the ReplicaSet controller's order: not bound,
// then not ready, then those with the lowest deletion cost, then those with most
// siblings on their node, then the youngest. Ages between two powers of two are alike, and
// ordered by UID, which is random (ActivePodsWithRanks in pkg/controller/
// controller_utils.go of Kubernetes 1.35).
func (r *run) scaleDown(w policy.WorkloadID, n int32) {
	type victim struct {
		id       policy.PodID
		stage    int
		cost     int32
		siblings int
		age      int // its logarithm
		uid      uint64
	}
	var all []victim
	siblings := make(map[policy.NodeID]int)
	for _, id := range r.work[w].pods {
		if r.pods[id].Phase != policy.PodTerminating && r.pods[id].Node != policy.None {
			siblings[r.pods[id].Node]++
		}
	}
	for _, id := range r.work[w].pods {
		p := &r.pods[id]
		if p.Phase == policy.PodTerminating {
			continue
		}
		v, since := victim{id: id, cost: p.DeletionCost, uid: uint64(chance.New(r.cfg.Seed, "pod-uid", p.Name))}, p.Created
		switch p.Phase {
		case policy.PodStarting:
			v.stage = 1
		case policy.PodReady:
			v.stage, since = 2, p.ReadySince
		}
		since -= since % 1000 // the API keeps whole seconds
		v.age = bits.Len64(uint64(r.q.now.Sub(since)))
		if p.Node != policy.None {
			v.siblings = siblings[p.Node]
		}
		all = append(all, v)
	}
	slices.SortFunc(all, func(a, b victim) int {
		return cmp.Or(cmp.Compare(a.stage, b.stage), cmp.Compare(a.cost, b.cost),
			cmp.Compare(b.siblings, a.siblings), cmp.Compare(a.age, b.age), cmp.Compare(a.uid, b.uid), cmp.Compare(a.id, b.id))
	})
	r.work[w].shrinking = true
	for _, v := range all[:n] {
		r.deletePod(v.id, policy.EndScaled)
	}
	r.work[w].shrinking = false
}

func (r *run) touchWork(w policy.WorkloadID) {
	r.touchedWork(w)
	ws := &r.work[w]
	for v := range r.view {
		if bit := uint8(1) << v; ws.dirty&bit == 0 {
			ws.dirty |= bit
			r.view[v].work = append(r.view[v].work, w)
		}
	}
}

// updatePDBs brings the status of the budgets of workload w up to date, as the
// disruption controller does.
func (r *run) updatePDBs(w policy.WorkloadID) {
	for _, p := range r.world.Templates[w].PDBs {
		b := &r.pdbs[p]
		b.Healthy, b.Expected = 0, 0
		for _, x := range r.pdbOf[p] {
			b.Healthy += r.gauges[x].seen
			b.Expected += r.expected(x)
		}
		b.Desired = b.Required(b.Expected)
		b.Allowed = max(0, b.Healthy-b.Desired)
		r.pdbsDirty = [2]bool{true, true}
	}
}

// expected is the scale of a workload as a budget counts it.
func (r *run) expected(w policy.WorkloadID) int32 {
	if r.world.Workloads[w].Kind == policy.KindJob {
		return r.work[w].active
	}
	return r.gauges[w].wanted
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

// releaseJob creates instance k of job w.
func (r *run) releaseJob(w policy.WorkloadID, k int) {
	job := r.world.Workloads[w].Job
	j := jobRun{work: w, name: r.world.Workloads[w].Name, released: r.q.now, left: job.Completions, gang: -1, tasks: make([]task, job.Completions)}
	for i := range j.tasks {
		j.tasks[i].running = policy.None
	}
	if job.Deadline > 0 {
		j.due = r.q.now.Add(job.Deadline)
		if j.due < r.window.To {
			r.q.add(j.due, evJobDeadline, int32(len(r.jobs)), 0, 0)
		}
	}
	r.jobsOf[w] = append(r.jobsOf[w], int32(len(r.jobs)))
	r.jobs = append(r.jobs, j)
	r.log.add(r.q.now, logReleased, j.name, "", int64(k))
	if i := len(r.jobs) - 1; !r.joinGang(int32(i)) {
		r.reconcileJob(i)
	}
}

// reconcileJob keeps as many pods at work as the job allows. Those of a gang are
// there all or none.
func (r *run) reconcileJob(i int) {
	j := &r.jobs[i]
	if j.gang >= 0 {
		r.reconcileGang(j.gang)
		return
	}
	limit := r.world.Workloads[j.work].Job.Pods
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
			if r.suspended[j.work] {
				break
			}
			if r.shut(j.work) {
				r.denied(j.work)
				break
			}
			id := r.newPod(j.work)
			r.podX[id].job, r.podX[id].task = int32(i), int32(k)
			t.running, t.began = id, 0
			busy++
			r.enqueue(id)
		}
	}
	r.countWanted(j.work)
}

// startTask lets a ready pod work on.
func (r *run) startTask(id policy.PodID) {
	x := &r.podX[id]
	j := &r.jobs[x.job]
	t := &j.tasks[x.task]
	t.began = r.q.now
	r.q.add(r.q.now.Add(r.world.Workloads[j.work].Job.Work-t.done), evPodFinished, int32(id), 0, x.gen)
}

// stopTask takes the work from a pod that ends.
func (r *run) stopTask(id policy.PodID) {
	x := &r.podX[id]
	r.interruptTask(id)
	if t := &r.jobs[x.job].tasks[x.task]; t.running == id {
		t.running = policy.None
		t.done, t.kept = t.done+t.kept, 0
	}
}

// interruptTask makes a pod stop working. What was not made safe at a
// checkpoint is lost.
func (r *run) interruptTask(id policy.PodID) {
	x := &r.podX[id]
	j := &r.jobs[x.job]
	job, t := r.world.Workloads[j.work].Job, &j.tasks[x.task]
	if t.over || t.running != id || t.began == 0 {
		return
	}
	worked, safe := r.q.now.Sub(t.began), time.Duration(0)
	if job.Checkpoint > 0 {
		safe = worked - worked%job.Checkpoint
	}
	t.began = 0
	if x.lost {
		t.kept = safe
	} else {
		t.done += safe
	}
	if r.q.now >= r.window.From {
		r.result.WorkLost += worked - safe
	}
}

// podFinished ends a pod that has done its work.
func (r *run) podFinished(id policy.PodID) {
	x := &r.podX[id]
	if x.job < 0 || r.pods[id].Phase != policy.PodReady {
		return
	}
	i := int(x.job)
	j := &r.jobs[i]
	t := &j.tasks[x.task]
	if t.began == 0 {
		return // its gang was halted meanwhile
	}
	t.began = 0
	t.done, t.over, t.running = r.world.Workloads[j.work].Job.Work, true, policy.None
	j.left--
	x.job = -1
	r.retire(id)
	r.podGone(id, policy.EndFinished)
	if j.left == 0 {
		of := r.jobsOf[j.work]
		if k := slices.Index(of, int32(i)); k >= 0 {
			r.jobsOf[j.work] = slices.Delete(of, k, k+1)
		}
		r.log.add(r.q.now, logJobDone, j.name, "", 0)
		r.settleJob(i, r.q.now)
		return
	}
	r.reconcileJob(i)
}

// settleJob accounts for instance i at its end, its deadline or the end of the
// window, whichever comes first.
func (r *run) settleJob(i int, at policy.Time) {
	j := &r.jobs[i]
	if j.settled {
		return
	}
	j.settled = true
	r.touchWork(j.work) // its deadline is none any more
	w := &r.world.Workloads[j.work]
	job, value := w.Job, r.stage.podValue[j.work]
	end := r.window.To
	if j.due != 0 {
		end = min(end, j.due)
	}
	if end <= r.window.From {
		return
	}
	if j.left == 0 {
		if at >= r.window.From {
			r.result.JobsDone++
		}
		return
	}
	// Work released too late to be finished on on-demand costs nothing: a node
	// has to come first, and every completion starts a pod of its own.
	rounds := (job.Completions + job.Pods - 1) / job.Pods
	each := r.delays.Start + max(r.delays.Ready, r.world.Templates[j.work].Startup) + job.Work
	if j.released.Add(r.registerMax+r.delays.Initialize+r.delays.Pull+each*time.Duration(rounds)) > end {
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
	r.result.JobCost += 2 * perHourOf(value, leftMS)
	if j.due != 0 && j.due <= at {
		j.missed = true
		r.result.JobsMissed++
		r.result.JobCost += (value * policy.Money(min(job.Pods, j.left))).Times(w.OutagePenalty)
		r.log.add(at, logJobMissed, j.name, "", leftMS)
	}
}
