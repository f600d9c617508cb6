package sim

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/chance"
	"github.com/spotter-dev/spotter/sim/engine"
)

// workloads are the controllers that make and delete pods.
type workloads struct {
	*environment
	budgets  *gpuBudgets
	jobs     *jobs
	observer *observer
	pdbs     *disruptionBudgets
	pods     *pods
	queue    *schedulingQueue
	serving  *serving
	watch    *watch

	state   []workState
	daemons []policy.TemplateID
}

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

func (wl *workloads) init() {
	w := wl.scenario
	wl.state = make([]workState, len(w.Workloads))
	wl.serving.of = make([]readiness, len(w.Workloads))
	wl.jobs.of = make([][]int32, len(w.Workloads))
	wl.pdbs.all = slices.Clone(w.PDBs)
	wl.pdbs.of = make([][]policy.WorkloadID, len(w.PDBs))
	for i := range w.Templates {
		if w.Templates[i].DaemonSet {
			wl.daemons = append(wl.daemons, policy.TemplateID(i))
			continue
		}
		for _, p := range w.Templates[i].PDBs {
			wl.pdbs.of[p] = append(wl.pdbs.of[p], w.Templates[i].Workload)
		}
	}
	wl.queue.lowest = math.MaxInt32
	for i := range wl.serving.of {
		wl.serving.of[i].since = wl.prepared.begin
		if !w.Templates[i].DaemonSet {
			wl.queue.lowest = min(wl.queue.lowest, w.Templates[i].Priority)
		}
	}
}

// start creates the pods wanted when warm-up begins and plans what the
// schedules say.
func (wl *workloads) start() {
	for i := range wl.scenario.Workloads {
		w, id := &wl.scenario.Workloads[i], policy.WorkloadID(i)
		if w.Job != nil {
			for k, at := range w.Job.Releases {
				if at >= wl.q.Now && at < wl.window.To {
					wl.q.Add(at, engine.JobReleased, int32(id), int32(k), 0)
				}
			}
			continue
		}
		first := int32(0)
		for k, step := range w.Schedule {
			if step.At <= wl.q.Now || k == 0 {
				first = step.Replicas
			}
			if step.At > wl.q.Now && step.At < wl.window.To {
				wl.q.Add(step.At, engine.ReplicasChange, int32(id), int32(k), 0)
			}
		}
		g := &wl.serving.of[i]
		g.wanted, g.desired = first, first
		wl.serving.setRequired(id)
		for range first {
			wl.pods.add(id)
		}
	}
	for i := range wl.state {
		wl.touch(policy.WorkloadID(i))
		wl.pdbs.update(policy.WorkloadID(i))
	}
}

// stepReplicas carries out step k of a workload's schedule.
func (wl *workloads) stepReplicas(w policy.WorkloadID, k int) {
	g, want := &wl.serving.of[w], wl.scenario.Workloads[w].Schedule[k].Replicas
	if want == g.wanted {
		return
	}
	g.advance(wl.q.Now, wl.window)
	g.wanted = want
	wl.serving.forgetOwed(w)
	if want < g.desired {
		g.desired = want
	} else {
		wl.q.Add(wl.q.Now.Add(wl.scenario.ReadyGrace), engine.GrowthCounts, int32(w), want, 0)
	}
	wl.serving.setRequired(w)
	wl.touch(w)
	wl.pdbs.update(w)
	wl.log.Add(wl.q.Now, engine.RecordReplicas, wl.scenario.Workloads[w].Name, "", int64(want))
	wl.reconcile(w)
}

// countGrowth makes what was wanted a ready grace ago, and is wanted still,
// count as desired.
func (wl *workloads) countGrowth(w policy.WorkloadID) {
	g := &wl.serving.of[w]
	since := wl.q.Now.Add(-wl.scenario.ReadyGrace)
	least := g.wanted
	for _, step := range wl.scenario.Workloads[w].Schedule {
		if step.At > since && step.At <= wl.q.Now {
			least = min(least, step.Replicas)
		}
	}
	// What held at the begin of the grace is bounded by the step before it.
	least = min(least, wl.replicasAt(w, since))
	g.advance(wl.q.Now, wl.window)
	g.desired = max(g.desired, least)
	wl.serving.setRequired(w)
}

func (wl *workloads) replicasAt(w policy.WorkloadID, t policy.Time) int32 {
	schedule := wl.scenario.Workloads[w].Schedule
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
func (sv *serving) setRequired(w policy.WorkloadID) {
	sv.of[w].required = sv.admitted(w, sv.requiredOf(w, sv.of[w].desired))
	sv.watch.workload(w)
}

// requiredOf returns the part of the pods of w that must be ready when so many
// are desired.
func (sv *serving) requiredOf(w policy.WorkloadID, desired int32) int32 {
	pdbs := sv.scenario.Templates[w].PDBs
	if len(pdbs) == 0 {
		required := desired - max(1, desired/4)
		if desired >= 1 {
			required = max(required, 1)
		}
		return max(required, 0)
	}
	required := int32(0)
	for _, p := range pdbs {
		required = max(required, sv.scenario.PDBs[p].Required(desired))
	}
	return min(required, desired)
}

// reconcile makes a workload have the pods that it wants.
func (wl *workloads) reconcile(w policy.WorkloadID) {
	ws, want := &wl.state[w], wl.serving.of[w].wanted
	switch wl.scenario.Workloads[w].Kind {
	case policy.KindDaemonSet, policy.KindJob:
		return // nodes and job instances make these
	case policy.KindStatefulSet:
		wl.reconcileOrdered(w)
		return
	}
	for ws.active < want {
		if wl.budgets.shut(w) {
			wl.deny(w)
			break
		}
		wl.queue.enqueue(wl.pods.add(w))
	}
	if ws.active > want && !ws.shrinking {
		wl.scaleDown(w, ws.active-want)
	}
}

// reconcileOrdered does so in a StatefulSet's way: from the lowest ordinal up,
// each once all before it are ready, and down from the highest.
func (wl *workloads) reconcileOrdered(w policy.WorkloadID) {
	ws, want := &wl.state[w], wl.serving.of[w].wanted
	if ws.active > want {
		highest := policy.PodID(policy.None)
		for _, id := range ws.pods {
			if wl.pods.all[id].Phase != policy.PodTerminating && (highest == policy.None || wl.pods.state[id].ordinal > wl.pods.state[highest].ordinal) {
				highest = id
			}
		}
		wl.pods.delete(highest, policy.EndScaled)
		return
	}
	if ws.active == want || int32(len(ws.pods)) > ws.active {
		return // complete, or one is still terminating and holds its name
	}
	for _, id := range ws.pods {
		if wl.pods.all[id].Phase != policy.PodReady && wl.pods.state[id].ordinal < wl.freeOrdinal(w) {
			return
		}
	}
	if wl.budgets.shut(w) {
		wl.deny(w)
		return
	}
	wl.queue.enqueue(wl.pods.add(w))
}

// freeOrdinal returns the lowest ordinal that no pod of w has.
func (wl *workloads) freeOrdinal(w policy.WorkloadID) int32 {
	for ordinal := int32(0); ; ordinal++ {
		if !slices.ContainsFunc(wl.state[w].pods, func(id policy.PodID) bool { return wl.pods.state[id].ordinal == ordinal }) {
			return ordinal
		}
	}
}

// scaleDown deletes n pods in the ReplicaSet controller's order: not bound,
// then not ready, then those with the lowest deletion cost, then those with most
// siblings on their node, then the youngest. Ages between two powers of two are alike, and
// ordered by UID, which is random (ActivePodsWithRanks in pkg/controller/
// controller_utils.go of Kubernetes 1.35).
func (wl *workloads) scaleDown(w policy.WorkloadID, n int32) {
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
	for _, id := range wl.state[w].pods {
		if wl.pods.all[id].Phase != policy.PodTerminating && wl.pods.all[id].Node != policy.None {
			siblings[wl.pods.all[id].Node]++
		}
	}
	for _, id := range wl.state[w].pods {
		p := &wl.pods.all[id]
		if p.Phase == policy.PodTerminating {
			continue
		}
		v, since := victim{id: id, cost: p.DeletionCost, uid: uint64(chance.New(wl.cfg.Seed, "pod-uid", p.Name))}, p.Created
		switch p.Phase {
		case policy.PodStarting:
			v.stage = 1
		case policy.PodReady:
			v.stage, since = 2, p.ReadySince
		}
		since -= since % 1000 // the API keeps whole seconds
		v.age = bits.Len64(uint64(wl.q.Now.Sub(since)))
		if p.Node != policy.None {
			v.siblings = siblings[p.Node]
		}
		all = append(all, v)
	}
	slices.SortFunc(all, func(a, b victim) int {
		return cmp.Or(cmp.Compare(a.stage, b.stage), cmp.Compare(a.cost, b.cost),
			cmp.Compare(b.siblings, a.siblings), cmp.Compare(a.age, b.age), cmp.Compare(a.uid, b.uid), cmp.Compare(a.id, b.id))
	})
	wl.state[w].shrinking = true
	for _, v := range all[:n] {
		wl.pods.delete(v.id, policy.EndScaled)
	}
	wl.state[w].shrinking = false
}

func (wl *workloads) touch(w policy.WorkloadID) {
	wl.watch.workload(w)
	ws := &wl.state[w]
	for v := range wl.observer.view {
		if bit := uint8(1) << v; ws.dirty&bit == 0 {
			ws.dirty |= bit
			wl.observer.view[v].work = append(wl.observer.view[v].work, w)
		}
	}
}

// disruptionBudgets are the PodDisruptionBudgets of the cluster.
type disruptionBudgets struct {
	*environment
	observer  *observer
	serving   *serving
	workloads *workloads

	all []policy.PDB
	of  [][]policy.WorkloadID // by budget, the workloads that it covers
}

// update brings the status of the budgets of workload w up to date, as the
// disruption controller does.
func (db *disruptionBudgets) update(w policy.WorkloadID) {
	for _, p := range db.scenario.Templates[w].PDBs {
		b := &db.all[p]
		b.Healthy, b.Expected = 0, 0
		for _, x := range db.of[p] {
			b.Healthy += db.serving.of[x].seen
			b.Expected += db.expected(x)
		}
		b.Desired = b.Required(b.Expected)
		b.Allowed = max(0, b.Healthy-b.Desired)
		db.observer.pdbsDirty = [2]bool{true, true}
	}
}

// expected is the scale of a workload as a budget counts it.
func (db *disruptionBudgets) expected(w policy.WorkloadID) int32 {
	if db.scenario.Workloads[w].Kind == policy.KindJob {
		return db.workloads.state[w].active
	}
	return db.serving.of[w].wanted
}

// jobs are the instances of jobs.
type jobs struct {
	*environment
	budgets   *gpuBudgets
	gangs     *gangs
	pods      *pods
	queue     *schedulingQueue
	serving   *serving
	workloads *workloads

	all       []jobRun
	of        [][]int32 // by workload, the instances that have work left
	suspended []bool    // by workload

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
			if js.suspended[j.work] {
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
