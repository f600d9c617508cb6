package sim

import (
	"slices"
	"strconv"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// A podState is what the simulator knows of a pod beyond its policy.Pod.
type podState struct {
	gen     int32 // changes whenever the slot gets a new owner
	place   int32 // index in its workload's list of pods
	ordinal int32 // of a StatefulSet's pod
	job     int32 // index into run.jobs, or -1
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

// newPod creates a pending pod for workload w.
func (r *run) newPod(w policy.WorkloadID) policy.PodID {
	var id policy.PodID
	if n := len(r.freePods); n > 0 {
		id = r.freePods[n-1]
		r.freePods = r.freePods[:n-1]
	} else {
		id = policy.PodID(len(r.pods))
		r.pods = append(r.pods, policy.Pod{})
		r.podX = append(r.podX, podState{})
	}
	x := &r.podX[id]
	*x = podState{gen: x.gen + 1, dirty: x.dirty, job: -1, gang: -1}
	ws := &r.work[w]
	number := ws.created
	if r.world.Workloads[w].Kind == policy.KindStatefulSet {
		number = int(r.freeOrdinal(w))
		x.ordinal = int32(number)
	}
	ws.created++
	r.pods[id] = policy.Pod{ID: id, Name: r.world.Workloads[w].Name + "-" + strconv.Itoa(number),
		Template: policy.TemplateID(w), Phase: policy.PodPending, Node: policy.None, Nominated: policy.None,
		VolumeZone: policy.None, Created: r.q.now, DoNotDisrupt: r.world.Workloads[w].DoNotDisrupt}
	if r.world.Workloads[w].Kind == policy.KindStatefulSet {
		r.pods[id].VolumeZone = ws.volumeZone(x.ordinal)
	}
	x.place = int32(len(ws.pods))
	ws.pods = append(ws.pods, id)
	ws.active++
	r.come(id)
	r.touchedWork(w)
	r.recountRequired(w)
	r.touchPod(id)
	r.log.add(r.q.now, logCreated, r.pods[id].Name, "", 0)
	return id
}

// enqueue hands a pending pod to the scheduler.
func (r *run) enqueue(id policy.PodID) {
	r.pending = append(r.pending, id)
	r.lastPending, r.fresh = r.q.now, true
	r.planSchedule()
}

// wantSchedule lets the scheduler try all pending pods after the other events of this
// instant: something changed that may let one of them fit.
func (r *run) wantSchedule() {
	r.moved = true
	r.planSchedule()
}

// planSchedule lets the scheduler run after the other events of this instant.
func (r *run) planSchedule() {
	if !r.scheduling && len(r.pending) > 0 {
		r.scheduling = true
		r.q.add(r.q.now, evSchedule, 0, 0, 0)
	}
}

// schedule tries pending pods once, in the order of the scheduling queue: new ones, and
// the others where something changed since. Pods of one template that has no place are
// not tried one by one.
func (r *run) schedule() {
	moved, nodes := r.moved, r.anyNode()
	r.scheduling, r.moved = false, false
	r.pending = slices.DeleteFunc(r.pending, func(id policy.PodID) bool { return r.pods[id].Phase != policy.PodPending })
	slices.SortFunc(r.pending, r.byQueue)
	failed := r.failedScratch()
	clear(r.stays)
	bound, watching := false, false
	rest := r.pending[:0]
	for _, id := range r.pending {
		p, x := &r.pods[id], &r.podX[id]
		if !x.due(r.q.now, moved) {
			rest = append(rest, id)
			continue
		}
		if !nodes && !p.Gated {
			r.retry(x)
			rest = append(rest, id)
			continue
		}
		alike := p.VolumeZone == policy.None && r.sched.Nominated(id) == policy.None
		if !p.Gated && (!failed[p.Template] || !alike) {
			if n, ok := r.sched.Pick(p); ok {
				r.bind(id, n)
				bound = true
				continue
			}
			failed[p.Template] = failed[p.Template] || alike
		}
		if !p.Gated {
			x.fail(r.q.now)
			watching = watching || watchesPods(&r.world.Templates[p.Template])
		}
		r.disappoint(id)
		rest = append(rest, id)
		if !p.Gated && !(alike && r.stays[p.Template]) {
			r.stays[p.Template] = !r.preempt(id) && alike
		}
	}
	r.pending = rest
	for _, v := range r.victims {
		r.missed(v, CausePreemption)
		r.deletePod(v, policy.EndPreempted)
	}
	r.victims = r.victims[:0]
	if bound && watching {
		r.wantSchedule()
	}
	if len(r.pending) > 0 {
		r.planStep(r.q.now.Add(collect))
		r.wantProvision()
	}
}

// preempt makes room for pending pod id, if pods of lower priority can go. They end
// when all pending pods have been tried: that makes new ones. It reports whether
// some can.
func (r *run) preempt(id policy.PodID) bool {
	p := &r.pods[id]
	if r.world.Templates[p.Template].Priority <= r.lowest {
		return false
	}
	n, victims := r.sched.Preempt(p, r.pods, r.pdbs)
	if n == policy.None {
		return false
	}
	r.sched.Nominate(p, n, victims)
	r.disown(id)
	r.nominate(id, n)
	r.victims = append(r.victims, victims...)
	return true
}

// spreadTogether reports whether kube-scheduler's default constraints spread pods of
// t and u together: those of one ReplicaSet or StatefulSet. Scenarios have no
// Services, so that pods of Jobs and bare pods are not spread.
func (r *run) spreadTogether(t, u *policy.Template) bool {
	if t.Workload != u.Workload || t.Workload < 0 {
		return false
	}
	kind := r.world.Workloads[t.Workload].Kind
	return kind == policy.KindDeployment || kind == policy.KindStatefulSet
}

// disappoint takes the promise of a place from a pod that did not get it: the
// node is there, nobody on it is about to leave, and others were faster. The
// provisioner then plans for the pod again.
func (r *run) disappoint(id policy.PodID) {
	n := r.pods[id].Nominated
	if n == policy.None || r.nodes[n].Phase < policy.NodeInitialized {
		return
	}
	for _, x := range r.space.Pods(n) {
		if r.nodes[n].Usable() && r.pods[x].Phase == policy.PodTerminating {
			return
		}
	}
	r.disown(id)
	r.touchPod(id)
}

// disown drops what pod id was promised.
func (r *run) disown(id policy.PodID) {
	if n := r.pods[id].Nominated; n != policy.None {
		r.nodeX[n].nominated--
		r.changed(n)
		r.pods[id].Nominated = policy.None
	}
}

func (r *run) failedScratch() []bool {
	if r.failed == nil {
		r.failed = make([]bool, len(r.world.Templates))
		r.stays = make([]bool, len(r.world.Templates))
	}
	clear(r.failed)
	return r.failed
}

// bind puts a pod onto a node; its containers start there.
func (r *run) bind(id policy.PodID, n policy.NodeID) {
	p, x, node := &r.pods[id], &r.podX[id], &r.nodes[n]
	r.disown(id)
	r.sched.Withdraw(id)
	p.Node, p.Phase, p.Bound = n, policy.PodStarting, r.q.now
	if r.nodeX[n].unneeded != 0 {
		r.wantScan() // it is needed again
	}
	r.space.Bind(p, n)
	r.podsChanged(n)
	r.sched.Changed(n)
	r.touched(n)
	r.holdDevices(p.Template, 1)
	x.spot = r.nodeX[n].spot
	t := &r.world.Templates[p.Template]
	if len(t.Volumes) > 0 && p.VolumeZone == policy.None {
		r.bindVolumes(id, n)
	}
	r.unconsolidated()
	if !t.DaemonSet {
		r.podEvent(n)
		r.nodeX[n].pods++
		r.held.advance(r.q.now, r.window)
		r.held.boundPods++
	}
	r.touchPod(id)
	r.log.add(r.q.now, logBound, p.Name, node.Name, 0)
	ready := max(r.q.now, node.Initialized).Add(r.startTime(n, p.Template))
	if x.lost = r.nodeX[n].lost; x.lost {
		return // nobody has noticed that there is nothing left to run it
	}
	r.q.add(ready, evPodReady, int32(id), 0, x.gen)
}

// bindVolumes fixes a pod with zonal volumes to the zone of its node.
func (r *run) bindVolumes(id policy.PodID, n policy.NodeID) {
	p, t := &r.pods[id], &r.world.Templates[r.pods[id].Template]
	zonal := false
	for i := range t.Volumes {
		zonal = zonal || t.Volumes[i].Zonal
	}
	if !zonal || r.nodes[n].Market == policy.None {
		return
	}
	p.VolumeZone = r.world.Markets[r.nodes[n].Market].Zone
	if r.world.Workloads[t.Workload].Kind == policy.KindStatefulSet {
		r.work[t.Workload].keepZone(r.podX[id].ordinal, p.VolumeZone)
	}
}

// startTime is how long a pod of template t needs on node n to be ready.
func (r *run) startTime(n policy.NodeID, t policy.TemplateID) time.Duration {
	d := r.delays.Start
	if r.nodeX[n].firstOf(int(t)) {
		d += r.delays.Pull
	}
	if stated := r.world.Templates[t].Startup; stated > 0 {
		d += stated
	} else {
		d += r.delays.Ready
	}
	return time.Duration(float64(d) * r.slowFactor)
}

func (r *run) podReady(id policy.PodID) {
	p := &r.pods[id]
	if p.Phase != policy.PodStarting {
		return
	}
	p.Phase, p.ReadySince = policy.PodReady, r.q.now
	r.podsChanged(p.Node)
	if r.kar.held {
		r.pollAt(r.q.now)
	}
	r.touchPod(id)
	r.filled(id)
	r.countReady(id, 1)
	r.log.add(r.q.now, logReady, p.Name, "", 0)
	w := r.world.Templates[p.Template].Workload
	if r.q.now >= r.window.From && r.world.Workloads[w].Kind != policy.KindDaemonSet {
		r.readyTimes = append(r.readyTimes, int64(r.q.now-p.Created))
	}
	switch x := &r.podX[id]; {
	case x.gang >= 0:
		r.readyGang(x.gang)
	case x.job >= 0:
		r.startTask(id)
	}
	if r.world.Workloads[w].Kind == policy.KindStatefulSet {
		r.reconcile(w) // the next ordinal may be waiting
	}
}

// countReady adds d to the ready pods of id's workload and budgets. A pod whose
// node was lost served no longer before.
func (r *run) countReady(id policy.PodID, d int32) {
	w := r.world.Templates[r.pods[id].Template].Workload
	if x := &r.podX[id]; !x.lost {
		r.serve(w, d, x.spot)
	}
	r.gauges[w].seen += d
	r.touchWork(w)
	r.updatePDBs(w)
}

// serve adds d to the pods of w that serve.
func (r *run) serve(w policy.WorkloadID, d int32, spot bool) {
	g := &r.gauges[w]
	g.advance(r.q.now, r.window)
	g.ready += d
	if spot {
		g.readySpot += d
	}
	r.touchedWork(w)
}

// deletePod asks a pod to end. Its place on the node is free when it has.
func (r *run) deletePod(id policy.PodID, cause policy.EndCause) {
	r.deletePodWithin(id, cause, r.world.Templates[r.pods[id].Template].Grace)
}

// deletePodWithin asks a pod to end within grace.
func (r *run) deletePodWithin(id policy.PodID, cause policy.EndCause, grace time.Duration) {
	p := &r.pods[id]
	switch p.Phase {
	case policy.PodGone, policy.PodTerminating:
		return
	case policy.PodPending:
		r.retire(id)
		r.podGone(id, cause)
		return
	}
	r.retire(id)
	if r.podX[id].lost {
		return // no kubelet ends it: it goes with the Node
	}
	r.q.add(r.q.now.Add(min(r.delays.Terminate, grace)), evPodGone, int32(id), int32(cause), r.podX[id].gen)
}

// retire takes a pod out of what its workload counts: it serves no longer and
// the workload replaces it.
func (r *run) retire(id policy.PodID) {
	p := &r.pods[id]
	was, job := p.Phase, r.podX[id].job
	if job >= 0 {
		r.stopTask(id)
		r.podX[id].job = -1
	}
	if p.Phase == policy.PodPending {
		r.disown(id)
		r.sched.Withdraw(id)
	}
	if p.Node != policy.None {
		if !r.world.Templates[p.Template].DaemonSet {
			r.podEvent(p.Node)
		}
		// A terminating pod holds its place but counts in no spread.
		r.space.Terminating(p, p.Node)
		r.podsChanged(p.Node)
		r.sched.Changed(p.Node)
	}
	p.Phase, p.Deleting = policy.PodTerminating, r.q.now
	w := r.world.Templates[p.Template].Workload
	r.work[w].active--
	r.leave(id, was)
	r.touchedWork(w)
	r.recountRequired(w)
	r.touchPod(id)
	if was == policy.PodReady {
		r.countReady(id, -1)
	} else {
		r.updatePDBs(w)
	}
	if x := &r.podX[id]; job >= 0 && x.gang >= 0 {
		r.loseGang(x.gang)
	} else if job >= 0 {
		r.reconcileJob(int(job))
	} else if r.world.Workloads[w].Kind != policy.KindStatefulSet {
		r.reconcile(w)
	}
}

// podGone removes a pod that has ended, or went down with its node.
func (r *run) podGone(id policy.PodID, cause policy.EndCause) {
	p, x := &r.pods[id], &r.podX[id]
	n, w, gang := p.Node, r.world.Templates[p.Template].Workload, x.gang
	ended := policy.EndedPod{Name: p.Name, Template: p.Template, Start: p.Bound, End: r.q.now, Cause: cause}
	if n != policy.None {
		ended.Node = r.nodes[n].Name
		r.space.Unbind(p, n)
		r.podsChanged(n)
		r.sched.Changed(n)
		r.touched(n)
		r.holdDevices(p.Template, -1)
		if !r.world.Templates[p.Template].DaemonSet {
			r.nodeX[n].pods--
			r.held.advance(r.q.now, r.window)
			r.held.boundPods--
			r.wantScan()
		}
	} else if k := slices.Index(r.pending, id); k >= 0 {
		r.pending = slices.Delete(r.pending, k, k+1) // its slot may be used again at once
	}
	r.unconsolidated()
	r.ended = append(r.ended, ended)
	r.log.add(r.q.now, logEnded, p.Name, "", int64(cause))
	ws := &r.work[w]
	last := ws.pods[len(ws.pods)-1]
	ws.pods[x.place] = last
	r.podX[last].place = x.place
	ws.pods = ws.pods[:len(ws.pods)-1]
	p.Phase, p.Node, p.Name = policy.PodGone, policy.None, ""
	x.gen++
	r.touchPod(id)
	r.freePods = append(r.freePods, id)
	r.reconcile(w)
	if gang >= 0 {
		r.gangPodGone(gang)
	}
	r.wantSchedule()
	if n != policy.None && r.nodeX[n].drain >= 0 {
		r.continueDrain(int(r.nodeX[n].drain), r.drains[r.nodeX[n].drain].gen)
	}
}

// touchPod says that both views have yet to see pod id.
func (r *run) touchPod(id policy.PodID) {
	x := &r.podX[id]
	for v := range r.view {
		if bit := uint8(1) << v; x.dirty&bit == 0 {
			x.dirty |= bit
			r.view[v].pods = append(r.view[v].pods, id)
		}
	}
}
