package cluster

import (
	"slices"
	"strconv"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/sim/engine"
	"github.com/spotter-dev/spotter/sim/result"
)

// Pods are the pods of the cluster, from their creation until they have ended.
type Pods struct {
	*Cluster

	All   []policy.Pod
	State []PodState
	free  []policy.PodID // slots without a pod
}

// A PodState is what the simulator knows of a pod beyond its policy.Pod.
type PodState struct {
	gen     int32 // changes whenever the slot gets a new owner
	place   int32 // index in its workload's list of pods
	ordinal int32 // of a StatefulSet's pod
	job     int32 // index into Jobs, or -1
	version int32 // number of rollouts of its workload before it was created
	task    int32 // index of the job's completion that it works on
	gang    int32 // index into Gangs, or -1
	spot    bool  // runs on a Spot node
	Lost    bool  // its node was taken: the pod no longer serves, whatever its phase
	taken   bool  // it ends, or is lost, for a cause outside its workload

	// cause is the cause for which its workload misses it while it is not ready or is taken.
	cause result.OutageCause
	backoff
}

// add creates a pending pod for workload w.
func (ps *Pods) add(w policy.WorkloadID) policy.PodID {
	var id policy.PodID
	if n := len(ps.free); n > 0 {
		id = ps.free[n-1]
		ps.free = ps.free[:n-1]
	} else {
		id = policy.PodID(len(ps.All))
		ps.All = append(ps.All, policy.Pod{})
		ps.State = append(ps.State, PodState{})
	}
	x := &ps.State[id]
	*x = PodState{gen: x.gen + 1, job: -1, gang: -1}
	ws := &ps.Workloads.State[w]
	x.version = ws.version
	number := ws.created
	if ps.Scenario.Workloads[w].Kind == policy.KindStatefulSet {
		number = int(ps.Workloads.freeOrdinal(w))
		x.ordinal = int32(number)
	}
	ws.created++
	ps.All[id] = policy.Pod{ID: id, Name: ps.Scenario.Workloads[w].Name + "-" + strconv.Itoa(number),
		Template: policy.TemplateID(w), Phase: policy.PodPending, Node: policy.None, Nominated: policy.None,
		VolumeZone: policy.None, Created: ps.Clock.Now, DoNotDisrupt: ps.Scenario.Workloads[w].DoNotDisrupt}
	if ps.Scenario.Workloads[w].Kind == policy.KindStatefulSet {
		ps.All[id].VolumeZone = ws.volumeZone(x.ordinal)
	}
	x.place = int32(len(ws.pods))
	ws.pods = append(ws.pods, id)
	ws.Active++
	ps.Serving.come(id)
	ps.ServingChanged.Publish(w)
	ps.Serving.recountRequired(w)
	ps.touch(id)
	ps.Log.Add(ps.Clock.Now, engine.RecordCreated, ps.All[id].Name, "", 0)
	return id
}

// bind binds a pod to a node, on which its containers start.
func (ps *Pods) bind(id policy.PodID, n policy.NodeID) {
	p, x, node := &ps.All[id], &ps.State[id], &ps.Nodes.All[n]
	ps.Queue.disown(id)
	ps.sched.Withdraw(id)
	p.Node, p.Phase, p.Bound = n, policy.PodStarting, ps.Clock.Now
	ps.Space.Bind(p, n)
	ps.sched.Changed(n)
	ps.GPUBudgets.hold(p.Template, 1)
	x.spot = ps.Nodes.State[n].Spot
	t := &ps.Scenario.Templates[p.Template]
	if len(t.Volumes) > 0 && p.VolumeZone == policy.None {
		ps.bindVolumes(id, n)
	}
	if !t.DaemonSet {
		ps.Nodes.State[n].Pods++
		ps.Nodes.Holding.advance(ps.Clock.Now, ps.Window)
		ps.Nodes.Holding.boundPods++
	}
	ps.PodsOfNode.Publish(n)
	ps.PodBound.Publish(id)
	ps.touch(id)
	ps.Log.Add(ps.Clock.Now, engine.RecordBound, p.Name, node.Name, 0)
	ready := max(ps.Clock.Now, node.Initialized).Add(ps.startTime(n, p.Template))
	if lasts := ps.Scenario.Workloads[t.Workload].ProtectedFor; lasts > 0 {
		ps.Clock.Add(ps.Clock.Now.Add(lasts), engine.PodUnprotected, int32(id), 0, x.gen)
	}
	if x.Lost = ps.Nodes.State[n].Lost; x.Lost {
		return // the node is lost, which the cluster has not noticed
	}
	ps.Clock.Add(ready, engine.PodReady, int32(id), 0, x.gen)
}

// unprotect ends the do-not-disrupt annotation of a pod. Karpenter notices it at its next
// evaluation.
func (ps *Pods) unprotect(id policy.PodID) {
	p := &ps.All[id]
	p.DoNotDisrupt = false
	ps.PodsOfNode.Publish(p.Node)
	ps.PodUnprotected.Publish(id)
	ps.touch(id)
}

// bindVolumes restricts a pod with zonal volumes to the zone of its node.
func (ps *Pods) bindVolumes(id policy.PodID, n policy.NodeID) {
	p, t := &ps.All[id], &ps.Scenario.Templates[ps.All[id].Template]
	zonal := false
	for i := range t.Volumes {
		zonal = zonal || t.Volumes[i].Zonal
	}
	if !zonal || ps.Nodes.All[n].Market == policy.None {
		return
	}
	p.VolumeZone = ps.Scenario.Markets[ps.Nodes.All[n].Market].Zone
	if ps.Scenario.Workloads[t.Workload].Kind == policy.KindStatefulSet {
		ps.Workloads.State[t.Workload].keepZone(ps.State[id].ordinal, p.VolumeZone)
	}
}

// startTime returns the time from the binding of a pod of template t to node n until it is ready.
func (ps *Pods) startTime(n policy.NodeID, t policy.TemplateID) time.Duration {
	d := ps.Delays.Start + ps.Delays.ReadyAfter(ps.Scenario.Templates[t].Startup)
	if ps.Nodes.State[n].firstOf(int(t)) {
		d += ps.Delays.Pull
	}
	return time.Duration(float64(d) * ps.SlowFactor)
}

func (ps *Pods) ready(id policy.PodID) {
	p := &ps.All[id]
	if p.Phase != policy.PodStarting {
		return
	}
	p.Phase, p.ReadySince = policy.PodReady, ps.Clock.Now
	ps.PodsOfNode.Publish(p.Node)
	ps.PodReady.Publish(id)
	ps.touch(id)
	ps.Serving.filled(id)
	ps.countReady(id, 1)
	ps.Log.Add(ps.Clock.Now, engine.RecordReady, p.Name, "", 0)
	w := ps.Scenario.Templates[p.Template].Workload
	if ps.Metered() && ps.Scenario.Workloads[w].Kind != policy.KindDaemonSet {
		ps.Serving.readyTimes = append(ps.Serving.readyTimes, int64(ps.Clock.Now-p.Created))
	}
	switch x := &ps.State[id]; {
	case x.gang >= 0:
		ps.Gangs.podReady(x.gang)
	case x.job >= 0:
		ps.Jobs.startTask(id)
	}
	if ps.Scenario.Workloads[w].Kind == policy.KindStatefulSet || ps.Workloads.State[w].old > 0 {
		ps.Workloads.reconcile(w) // the next ordinal may be waiting, or an old pod may be deleted
	}
}

// countReady adds d to the ready pods of id's workload and PodDisruptionBudgets. A pod on a lost
// node is not subtracted from the serving pods again.
func (ps *Pods) countReady(id policy.PodID, d int32) {
	w := ps.Scenario.Templates[ps.All[id].Template].Workload
	if x := &ps.State[id]; !x.Lost {
		ps.Serving.serve(w, d, x.spot)
	}
	ps.Serving.Of[w].seen += d
	ps.Workloads.touch(w)
	ps.PDBs.Update(w)
}

// serve adds d to the number of serving pods of w.
func (sv *Serving) serve(w policy.WorkloadID, d int32, spot bool) {
	g := &sv.Of[w]
	g.advance(sv.Clock.Now, sv.Window)
	g.ready += d
	if spot {
		g.readySpot += d
	}
	sv.ServingChanged.Publish(w)
}

// delete starts the termination of a pod. The pod occupies its node until it has ended.
func (ps *Pods) delete(id policy.PodID, cause policy.EndCause) {
	ps.deleteWithin(id, cause, ps.Scenario.Templates[ps.All[id].Template].Grace)
}

// deleteWithin starts the termination of a pod with the given grace period.
func (ps *Pods) deleteWithin(id policy.PodID, cause policy.EndCause, grace time.Duration) {
	p := &ps.All[id]
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
	if ps.State[id].Lost {
		return // no kubelet ends the pod; it is removed with the Node
	}
	ps.Clock.Add(ps.Clock.Now.Add(min(ps.Delays.Terminate, grace)), engine.PodGone, int32(id), int32(cause),
		ps.State[id].gen)
}

// noteEnding publishes that a pod starts to terminate, if Karpenter observes it. Karpenter does not
// observe a pod without a grace period: the API server removes the pod at once, and its removal
// triggers no event (nodeclaim/podevents/controller.go, Reconcile).
func (ps *Pods) noteEnding(id policy.PodID) {
	if p := &ps.All[id]; p.Node != policy.None && !ps.Scenario.Templates[p.Template].DaemonSet {
		ps.PodEnding.Publish(id)
	}
}

// retire removes a pod from the counts of its workload: it no longer serves, and the workload
// replaces it.
func (ps *Pods) retire(id policy.PodID) {
	p := &ps.All[id]
	was, job := p.Phase, ps.State[id].job
	if job >= 0 {
		ps.Jobs.stopTask(id)
		ps.State[id].job = -1
	}
	if p.Phase == policy.PodPending {
		ps.Queue.disown(id)
		ps.sched.Withdraw(id)
	}
	if p.Node != policy.None {
		// A terminating pod occupies its node but does not count for topology spread.
		ps.Space.MarkTerminating(p, p.Node)
		ps.sched.Changed(p.Node)
		ps.PodsOfNode.Publish(p.Node)
	}
	p.Phase, p.Deleting = policy.PodTerminating, ps.Clock.Now
	w := ps.Scenario.Templates[p.Template].Workload
	ws := &ps.Workloads.State[w]
	ws.Active--
	if ps.Workloads.old(id) {
		if ws.old--; ws.old == 0 {
			ps.Serving.setRequired(w)
		}
	}
	ps.Serving.leave(id, was)
	ps.ServingChanged.Publish(w)
	ps.Serving.recountRequired(w)
	ps.touch(id)
	if was == policy.PodReady {
		ps.countReady(id, -1)
	} else {
		ps.PDBs.Update(w)
	}
	if x := &ps.State[id]; job >= 0 && x.gang >= 0 {
		ps.Gangs.lose(x.gang)
	} else if job >= 0 {
		ps.Jobs.reconcile(int(job))
	} else if ps.Scenario.Workloads[w].Kind != policy.KindStatefulSet {
		ps.Workloads.reconcile(w)
	}
}

// remove removes a pod that has ended or was lost with its node.
func (ps *Pods) remove(id policy.PodID, cause policy.EndCause) {
	p, x := &ps.All[id], &ps.State[id]
	n, w, gang := p.Node, ps.Scenario.Templates[p.Template].Workload, x.gang
	ended := EndedPod{policy.EndedPod{Name: p.Name, Template: p.Template, Start: p.Bound, End: ps.Clock.Now,
		Cause: cause}, n}
	if n != policy.None {
		ended.EndedPod.Node = ps.Nodes.All[n].Name
		ps.Space.Unbind(p, n)
		ps.sched.Changed(n)
		ps.PodsOfNode.Publish(n)
		ps.GPUBudgets.hold(p.Template, -1)
		if !ps.Scenario.Templates[p.Template].DaemonSet {
			ps.Nodes.State[n].Pods--
			ps.Nodes.Holding.advance(ps.Clock.Now, ps.Window)
			ps.Nodes.Holding.boundPods--
		}
	} else if k := slices.Index(ps.Queue.Pending, id); k >= 0 {
		ps.Queue.Pending = slices.Delete(ps.Queue.Pending, k, k+1) // the slot may be reused at once
	}
	ps.PodEnded.Publish(ended)
	ps.Log.Add(ps.Clock.Now, engine.RecordEnded, p.Name, "", int64(cause))
	ws := &ps.Workloads.State[w]
	last := ws.pods[len(ws.pods)-1]
	ws.pods[x.place] = last
	ps.State[last].place = x.place
	ws.pods = ws.pods[:len(ws.pods)-1]
	p.Phase, p.Node, p.Name = policy.PodGone, policy.None, ""
	x.gen++
	ps.touch(id)
	ps.free = append(ps.free, id)
	ps.Workloads.reconcile(w)
	if gang >= 0 {
		ps.Gangs.podGone(gang)
	}
	ps.Queue.Want()
	if n != policy.None {
		ps.PodLeft.Publish(n)
	}
}

// touch publishes that a pod changed.
func (ps *Pods) touch(id policy.PodID) { ps.PodChanged.Publish(id) }

// strand makes the pod of a lost node stop serving. Its controller reacts when the loss of the node
// is noticed.
func (ps *Pods) strand(id policy.PodID) {
	p, x := &ps.All[id], &ps.State[id]
	x.gen++ // cancels the pod's planned events
	x.Lost = true
	ps.Serving.missed(id, ps.Serving.lossOf(p.Node))
	if !ps.Scenario.Templates[p.Template].DaemonSet && p.Phase != policy.PodTerminating && ps.Metered() {
		ps.Result.ReclaimEvictions++
	}
	ps.Log.Add(ps.Clock.Now, engine.RecordLost, p.Name, "", 0)
	switch {
	case x.job >= 0 && x.gang >= 0:
		ps.Gangs.halt(x.gang)
	case x.job >= 0:
		ps.Jobs.interruptTask(id)
	}
	if p.Phase == policy.PodReady {
		if x.gang >= 0 {
			ps.Gangs.All[x.gang].ready--
		}
		ps.Serving.serve(ps.Scenario.Templates[p.Template].Workload, -1, x.spot)
	}
}

// SetDeletionCost sets the deletion cost of a pod, by which its workload chooses the pods to
// delete.
func (ps *Pods) SetDeletionCost(id policy.PodID, cost int32) {
	p := &ps.All[id]
	p.DeletionCost = cost
	ps.PodsOfNode.Publish(p.Node)
	ps.touch(id)
}

// Place binds a pending pod to a node and makes it ready at once.
func (ps *Pods) Place(id policy.PodID, n policy.NodeID) {
	ps.bind(id, n)
	ps.ready(id)
}

// Evict deletes a pod through the eviction API. cause is the outage cause to which the missing pod
// is attributed. forced reports whether the provider is taking the node.
func (ps *Pods) Evict(id policy.PodID, cause result.OutageCause, grace time.Duration, forced bool) {
	p := &ps.All[id]
	ps.Log.Add(ps.Clock.Now, engine.RecordEvicted, p.Name, ps.Nodes.All[p.Node].Name, 0)
	switch {
	case !ps.Metered():
	case forced:
		ps.Result.ReclaimEvictions++
	default:
		ps.Result.VoluntaryEvictions++
	}
	ps.Serving.missed(id, cause)
	ps.deleteWithin(id, policy.EndEvicted, grace)
}
