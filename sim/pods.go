package sim

import (
	"slices"
	"strconv"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/sim/engine"
	"github.com/spotter-dev/spotter/sim/scheduler"
)

// pods are the pods of the cluster, from their creation until they have ended.
type pods struct {
	*environment
	autoscaler    *autoscaler
	bills         *bills
	budgets       *gpuBudgets
	consolidation *consolidation
	drains        *drains
	faults        *faults
	gangs         *gangs
	jobs          *jobs
	nodes         *nodes
	observer      *observer
	pdbs          *disruptionBudgets
	queue         *schedulingQueue
	sched         *scheduler.Scheduler
	serving       *serving
	space         *placement.Space
	watch         *watch
	workloads     *workloads

	all   []policy.Pod
	state []podState
	free  []policy.PodID // slots without a pod
}

// A podState is what the simulator knows of a pod beyond its policy.Pod.
type podState struct {
	gen     int32 // changes whenever the slot gets a new owner
	place   int32 // index in its workload's list of pods
	ordinal int32 // of a StatefulSet's pod
	job     int32 // index into run.jobs, or -1
	version int32 // the rollouts of its workload before it was made
	task    int32 // the completion of the job that it works on
	gang    int32 // index into run.gangs, or -1
	dirty   uint8 // one bit for each view that has not seen the change
	spot    bool  // runs on a spot node
	lost    bool  // its node was taken: it serves no longer, whatever its phase
	stuck   bool  // pending, and the provisioner found nothing to buy for it
	taken   bool  // it ends, or is lost, by anybody's doing but its workload's

	// cause is why its workload misses it while it is not ready, or is taken.
	cause OutageCause
	backoff
}

// add creates a pending pod for workload w.
func (ps *pods) add(w policy.WorkloadID) policy.PodID {
	var id policy.PodID
	if n := len(ps.free); n > 0 {
		id = ps.free[n-1]
		ps.free = ps.free[:n-1]
	} else {
		id = policy.PodID(len(ps.all))
		ps.all = append(ps.all, policy.Pod{})
		ps.state = append(ps.state, podState{})
	}
	x := &ps.state[id]
	*x = podState{gen: x.gen + 1, dirty: x.dirty, job: -1, gang: -1}
	ws := &ps.workloads.state[w]
	x.version = ws.version
	number := ws.created
	if ps.scenario.Workloads[w].Kind == policy.KindStatefulSet {
		number = int(ps.workloads.freeOrdinal(w))
		x.ordinal = int32(number)
	}
	ws.created++
	ps.all[id] = policy.Pod{ID: id, Name: ps.scenario.Workloads[w].Name + "-" + strconv.Itoa(number),
		Template: policy.TemplateID(w), Phase: policy.PodPending, Node: policy.None, Nominated: policy.None,
		VolumeZone: policy.None, Created: ps.q.Now, DoNotDisrupt: ps.scenario.Workloads[w].DoNotDisrupt}
	if ps.scenario.Workloads[w].Kind == policy.KindStatefulSet {
		ps.all[id].VolumeZone = ws.volumeZone(x.ordinal)
	}
	x.place = int32(len(ws.pods))
	ws.pods = append(ws.pods, id)
	ws.active++
	ps.serving.come(id)
	ps.watch.workload(w)
	ps.serving.recountRequired(w)
	ps.touch(id)
	ps.log.Add(ps.q.Now, engine.RecordCreated, ps.all[id].Name, "", 0)
	return id
}

// enqueue hands a pending pod to the scheduler.
func (sq *schedulingQueue) enqueue(id policy.PodID) {
	sq.pending = append(sq.pending, id)
	sq.karpenter.lastPending, sq.karpenter.fresh = sq.q.Now, true
	sq.plan()
}

// want lets the scheduler try all pending pods after the other events of this
// instant: something changed that may let one of them fit.
func (sq *schedulingQueue) want() {
	sq.moved = true
	sq.plan()
}

// plan lets the scheduler run after the other events of this instant.
func (sq *schedulingQueue) plan() {
	if !sq.scheduling && len(sq.pending) > 0 {
		sq.scheduling = true
		sq.q.Add(sq.q.Now, engine.Schedule, 0, 0, 0)
	}
}

// schedule tries pending pods once, in the order of the scheduling queue: new ones, and
// the others where something changed since. Pods of one template that has no place are
// not tried one by one.
func (sq *schedulingQueue) schedule() {
	moved, nodes := sq.moved, sq.nodes.anyRegistered()
	sq.scheduling, sq.moved = false, false
	slices.SortFunc(sq.pending, sq.byQueue())
	failed := sq.failedScratch()
	clear(sq.stays)
	bound, watching := false, false
	rest := sq.pending[:0]
	for _, id := range sq.pending {
		p, x := &sq.pods.all[id], &sq.pods.state[id]
		if p.Phase != policy.PodPending {
			continue
		}
		if !p.Gated && sq.q.Now == sq.prepared.begin && sq.putStated(id) {
			bound = true
			continue
		}
		if !x.due(sq.q.Now, moved) {
			rest = append(rest, id)
			continue
		}
		if !nodes && !p.Gated {
			sq.retry(x)
			rest = append(rest, id)
			continue
		}
		alike := p.VolumeZone == policy.None && sq.sched.Nominated(id) == policy.None
		if !p.Gated && (!failed[p.Template] || !alike) {
			if n, ok := sq.sched.Pick(p); ok {
				sq.pods.bind(id, n)
				bound = true
				continue
			}
			failed[p.Template] = failed[p.Template] || alike
		}
		if !p.Gated {
			x.fail(sq.q.Now)
			watching = watching || watchesPods(&sq.scenario.Templates[p.Template])
		}
		sq.disappoint(id)
		rest = append(rest, id)
		if !p.Gated && !(alike && sq.stays[p.Template]) {
			sq.stays[p.Template] = !sq.preempt(id) && alike
		}
	}
	sq.pending = rest
	for _, v := range sq.victims {
		sq.serving.missed(v, CausePreemption)
		sq.pods.delete(v, policy.EndPreempted)
	}
	sq.victims = sq.victims[:0]
	if bound && watching {
		sq.want()
	}
	if len(sq.pending) > 0 {
		sq.decider.plan(sq.q.Now.Add(collect))
		sq.karpenter.want()
	}
}

// preempt makes room for pending pod id, if pods of lower priority can go. They end
// when all pending pods have been tried: that makes new ones. It reports whether
// some can.
func (sq *schedulingQueue) preempt(id policy.PodID) bool {
	p := &sq.pods.all[id]
	if sq.scenario.Templates[p.Template].Priority <= sq.lowest {
		return false
	}
	n, victims := sq.sched.Preempt(p, sq.pods.all, sq.pdbs.all)
	if n == policy.None {
		return false
	}
	sq.sched.Nominate(p, n, victims)
	sq.disown(id)
	sq.nominate(id, n)
	sq.victims = append(sq.victims, victims...)
	return true
}

// disappoint takes the promise of a place from a pod that did not get it: the
// node is there, nobody on it is about to leave, and others were faster. The
// provisioner then plans for the pod again.
func (sq *schedulingQueue) disappoint(id policy.PodID) {
	n := sq.pods.all[id].Nominated
	if n == policy.None || sq.nodes.plans[n] == planComing || sq.nodes.all[n].Phase < policy.NodeInitialized {
		return
	}
	for _, x := range sq.space.Pods(n) {
		if sq.nodes.all[n].Usable() && sq.pods.all[x].Phase == policy.PodTerminating {
			return
		}
	}
	sq.disown(id)
	sq.pods.touch(id)
}

// disown drops what pod id was promised.
func (sq *schedulingQueue) disown(id policy.PodID) {
	if n := sq.pods.all[id].Nominated; n != policy.None {
		sq.nodes.state[n].nominated--
		sq.consolidation.tracker.noteNode(n)
		sq.pods.all[id].Nominated = policy.None
	}
}

func (sq *schedulingQueue) failedScratch() []bool {
	if sq.failed == nil {
		sq.failed = make([]bool, len(sq.scenario.Templates))
		sq.stays = make([]bool, len(sq.scenario.Templates))
	}
	clear(sq.failed)
	return sq.failed
}

// bind puts a pod onto a node; its containers start there.
func (ps *pods) bind(id policy.PodID, n policy.NodeID) {
	p, x, node := &ps.all[id], &ps.state[id], &ps.nodes.all[n]
	ps.queue.disown(id)
	ps.sched.Withdraw(id)
	p.Node, p.Phase, p.Bound = n, policy.PodStarting, ps.q.Now
	ps.autoscaler.noteUse(n)
	ps.space.Bind(p, n)
	ps.consolidation.tracker.notePods(n)
	ps.sched.Changed(n)
	ps.watch.node(n)
	ps.budgets.hold(p.Template, 1)
	ps.bills.use(n, p.Template, 1)
	x.spot = ps.nodes.state[n].spot
	t := &ps.scenario.Templates[p.Template]
	if len(t.Volumes) > 0 && p.VolumeZone == policy.None {
		ps.bindVolumes(id, n)
	}
	ps.consolidation.noteChange()
	if !t.DaemonSet {
		ps.consolidation.tracker.notePodEvent(n)
		ps.nodes.state[n].pods++
		ps.nodes.held.advance(ps.q.Now, ps.window)
		ps.nodes.held.boundPods++
	}
	ps.touch(id)
	ps.log.Add(ps.q.Now, engine.RecordBound, p.Name, node.Name, 0)
	ready := max(ps.q.Now, node.Initialized).Add(ps.startTime(n, p.Template))
	if lasts := ps.scenario.Workloads[t.Workload].ProtectedFor; lasts > 0 {
		ps.q.Add(ps.q.Now.Add(lasts), engine.PodUnprotected, int32(id), 0, x.gen)
	}
	if x.lost = ps.nodes.state[n].lost; x.lost {
		return // nobody has noticed that there is nothing left to run it
	}
	ps.q.Add(ready, engine.PodReady, int32(id), 0, x.gen)
}

// unprotect ends the do-not-disrupt of a pod. Karpenter notices it at its next look.
func (ps *pods) unprotect(id policy.PodID) {
	p := &ps.all[id]
	p.DoNotDisrupt = false
	ps.consolidation.tracker.notePods(p.Node)
	if ps.consolidation.held {
		ps.consolidation.pollAt(ps.q.Now)
	}
	ps.autoscaler.want()
	ps.touch(id)
}

// bindVolumes fixes a pod with zonal volumes to the zone of its node.
func (ps *pods) bindVolumes(id policy.PodID, n policy.NodeID) {
	p, t := &ps.all[id], &ps.scenario.Templates[ps.all[id].Template]
	zonal := false
	for i := range t.Volumes {
		zonal = zonal || t.Volumes[i].Zonal
	}
	if !zonal || ps.nodes.all[n].Market == policy.None {
		return
	}
	p.VolumeZone = ps.scenario.Markets[ps.nodes.all[n].Market].Zone
	if ps.scenario.Workloads[t.Workload].Kind == policy.KindStatefulSet {
		ps.workloads.state[t.Workload].keepZone(ps.state[id].ordinal, p.VolumeZone)
	}
}

// startTime is how long a pod of template t needs on node n to be ready.
func (ps *pods) startTime(n policy.NodeID, t policy.TemplateID) time.Duration {
	d := ps.delays.Start + ps.delays.ReadyAfter(ps.scenario.Templates[t].Startup)
	if ps.nodes.state[n].firstOf(int(t)) {
		d += ps.delays.Pull
	}
	return time.Duration(float64(d) * ps.faults.slowFactor)
}

func (ps *pods) ready(id policy.PodID) {
	p := &ps.all[id]
	if p.Phase != policy.PodStarting {
		return
	}
	p.Phase, p.ReadySince = policy.PodReady, ps.q.Now
	ps.consolidation.tracker.notePods(p.Node)
	if ps.consolidation.held {
		ps.consolidation.pollAt(ps.q.Now)
	}
	ps.touch(id)
	ps.serving.filled(id)
	ps.countReady(id, 1)
	ps.log.Add(ps.q.Now, engine.RecordReady, p.Name, "", 0)
	w := ps.scenario.Templates[p.Template].Workload
	if ps.q.Now >= ps.window.From && ps.scenario.Workloads[w].Kind != policy.KindDaemonSet {
		ps.serving.readyTimes = append(ps.serving.readyTimes, int64(ps.q.Now-p.Created))
	}
	switch x := &ps.state[id]; {
	case x.gang >= 0:
		ps.gangs.podReady(x.gang)
	case x.job >= 0:
		ps.jobs.startTask(id)
	}
	if ps.scenario.Workloads[w].Kind == policy.KindStatefulSet || ps.workloads.state[w].old > 0 {
		ps.workloads.reconcile(w) // the next ordinal may be waiting, or an old pod may go
	}
}

// countReady adds d to the ready pods of id's workload and budgets. A pod whose
// node was lost served no longer before.
func (ps *pods) countReady(id policy.PodID, d int32) {
	w := ps.scenario.Templates[ps.all[id].Template].Workload
	if x := &ps.state[id]; !x.lost {
		ps.serving.serve(w, d, x.spot)
	}
	ps.serving.of[w].seen += d
	ps.workloads.touch(w)
	ps.pdbs.update(w)
}

// serve adds d to the pods of w that serve.
func (sv *serving) serve(w policy.WorkloadID, d int32, spot bool) {
	g := &sv.of[w]
	g.advance(sv.q.Now, sv.window)
	g.ready += d
	if spot {
		g.readySpot += d
	}
	sv.watch.workload(w)
}

// delete asks a pod to end. Its place on the node is free when it has.
func (ps *pods) delete(id policy.PodID, cause policy.EndCause) {
	ps.deleteWithin(id, cause, ps.scenario.Templates[ps.all[id].Template].Grace)
}

// deleteWithin asks a pod to end within grace.
func (ps *pods) deleteWithin(id policy.PodID, cause policy.EndCause, grace time.Duration) {
	p := &ps.all[id]
	switch p.Phase {
	case policy.PodGone, policy.PodTerminating:
		return
	case policy.PodPending:
		ps.retire(id)
		ps.remove(id, cause)
		return
	}
	if grace > 0 {
		ps.noteEnding(id)
	}
	ps.retire(id)
	if ps.state[id].lost {
		return // no kubelet ends it: it goes with the Node
	}
	ps.q.Add(ps.q.Now.Add(min(ps.delays.Terminate, grace)), engine.PodGone, int32(id), int32(cause), ps.state[id].gen)
}

// noteEnding notes that Karpenter sees a pod end. It does not see one without a grace period:
// the API server removes that at once, and a pod that is gone is no event
// (nodeclaim/podevents/controller.go, Reconcile).
func (ps *pods) noteEnding(id policy.PodID) {
	if p := &ps.all[id]; p.Node != policy.None && !ps.scenario.Templates[p.Template].DaemonSet {
		ps.consolidation.tracker.notePodEvent(p.Node)
	}
}

// retire takes a pod out of what its workload counts: it serves no longer and
// the workload replaces it.
func (ps *pods) retire(id policy.PodID) {
	p := &ps.all[id]
	was, job := p.Phase, ps.state[id].job
	if job >= 0 {
		ps.jobs.stopTask(id)
		ps.state[id].job = -1
	}
	if p.Phase == policy.PodPending {
		ps.queue.disown(id)
		ps.sched.Withdraw(id)
	}
	if p.Node != policy.None {
		// A terminating pod holds its place but counts in no spread.
		ps.space.Terminating(p, p.Node)
		ps.consolidation.tracker.notePods(p.Node)
		ps.sched.Changed(p.Node)
	}
	p.Phase, p.Deleting = policy.PodTerminating, ps.q.Now
	w := ps.scenario.Templates[p.Template].Workload
	ws := &ps.workloads.state[w]
	ws.active--
	if ps.workloads.old(id) {
		if ws.old--; ws.old == 0 {
			ps.serving.setRequired(w)
		}
	}
	ps.serving.leave(id, was)
	ps.watch.workload(w)
	ps.serving.recountRequired(w)
	ps.touch(id)
	if was == policy.PodReady {
		ps.countReady(id, -1)
	} else {
		ps.pdbs.update(w)
	}
	if x := &ps.state[id]; job >= 0 && x.gang >= 0 {
		ps.gangs.lose(x.gang)
	} else if job >= 0 {
		ps.jobs.reconcile(int(job))
	} else if ps.scenario.Workloads[w].Kind != policy.KindStatefulSet {
		ps.workloads.reconcile(w)
	}
}

// remove removes a pod that has ended, or went down with its node.
func (ps *pods) remove(id policy.PodID, cause policy.EndCause) {
	p, x := &ps.all[id], &ps.state[id]
	n, w, gang := p.Node, ps.scenario.Templates[p.Template].Workload, x.gang
	ended := policy.EndedPod{Name: p.Name, Template: p.Template, Start: p.Bound, End: ps.q.Now, Cause: cause}
	if n != policy.None {
		ended.Node = ps.nodes.all[n].Name
		ps.space.Unbind(p, n)
		ps.consolidation.tracker.notePods(n)
		ps.sched.Changed(n)
		ps.watch.node(n)
		ps.budgets.hold(p.Template, -1)
		ps.bills.use(n, p.Template, -1)
		if !ps.scenario.Templates[p.Template].DaemonSet {
			ps.nodes.state[n].pods--
			ps.nodes.held.advance(ps.q.Now, ps.window)
			ps.nodes.held.boundPods--
			ps.autoscaler.want()
		}
	} else if k := slices.Index(ps.queue.pending, id); k >= 0 {
		ps.queue.pending = slices.Delete(ps.queue.pending, k, k+1) // its slot may be used again at once
	}
	ps.consolidation.noteChange()
	ps.observer.ended = append(ps.observer.ended, ended)
	ps.log.Add(ps.q.Now, engine.RecordEnded, p.Name, "", int64(cause))
	ws := &ps.workloads.state[w]
	last := ws.pods[len(ws.pods)-1]
	ws.pods[x.place] = last
	ps.state[last].place = x.place
	ws.pods = ws.pods[:len(ws.pods)-1]
	p.Phase, p.Node, p.Name = policy.PodGone, policy.None, ""
	x.gen++
	ps.touch(id)
	ps.free = append(ps.free, id)
	ps.workloads.reconcile(w)
	if gang >= 0 {
		ps.gangs.podGone(gang)
	}
	ps.queue.want()
	if n != policy.None && ps.nodes.state[n].drain >= 0 {
		ps.drains.proceed(int(ps.nodes.state[n].drain), ps.drains.all[ps.nodes.state[n].drain].gen)
	}
}

// touch says that both views have yet to see pod id.
func (ps *pods) touch(id policy.PodID) {
	ps.observer.changes.NotePod(id)
	x := &ps.state[id]
	for v := range ps.observer.view {
		if bit := uint8(1) << v; x.dirty&bit == 0 {
			x.dirty |= bit
			ps.observer.view[v].pods = append(ps.observer.view[v].pods, id)
		}
	}
}
