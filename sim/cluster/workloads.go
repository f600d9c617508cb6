package cluster

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/portable"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/chance"
	"github.com/spotter-dev/spotter/sim/engine"
	"github.com/spotter-dev/spotter/sim/result"
)

// Workloads are the controllers that create and delete pods.
type Workloads struct {
	*Cluster

	State   []WorkState
	daemons []policy.TemplateID
	writes  podWrites
}

// A WorkState is the state of a workload's controller.
type WorkState struct {
	pods    []policy.PodID // existing pods, including terminating ones
	Active  int32          // number of existing pods that are not terminating
	created int
	zones   []policy.ZoneID // of a StatefulSet's volumes, by ordinal

	// owed is the number of missing pods, by cause, whose replacements are not yet created.
	owed [result.OutageCauses]int32

	// shrinking reports whether pods are being deleted one by one until Active equals the wanted
	// number.
	shrinking bool

	// version counts the rollouts that have started. old is the number of pods of earlier versions
	// that are not terminating.
	version, old int32

	// missing is the number of pods that the controller is about to create, doomed the pods that it
	// is about to delete. Until then it does not reconcile anything else.
	missing int32
	doomed  []doomedPod

	// denied is the time since which a closed gate has denied a wanted pod, or 0.
	denied policy.Time
}

func (w *WorkState) volumeZone(ordinal int32) policy.ZoneID {
	if int(ordinal) < len(w.zones) {
		return w.zones[ordinal]
	}
	return policy.None
}

func (w *WorkState) keepZone(ordinal int32, z policy.ZoneID) {
	for int(ordinal) >= len(w.zones) {
		w.zones = append(w.zones, policy.None)
	}
	w.zones[ordinal] = z
}

func (wl *Workloads) init() {
	w := wl.Scenario
	wl.State = make([]WorkState, len(w.Workloads))
	wl.Serving.Of = make([]Readiness, len(w.Workloads))
	wl.Jobs.of = make([][]int32, len(w.Workloads))
	wl.PDBs.All = slices.Clone(w.PDBs)
	wl.PDBs.of = make([][]policy.WorkloadID, len(w.PDBs))
	for i := range w.Templates {
		if w.Templates[i].DaemonSet {
			wl.daemons = append(wl.daemons, policy.TemplateID(i))
			continue
		}
		for _, p := range w.Templates[i].PDBs {
			wl.PDBs.of[p] = append(wl.PDBs.of[p], w.Templates[i].Workload)
		}
	}
	wl.Queue.lowest = math.MaxInt32
	for i := range wl.Serving.Of {
		wl.Serving.Of[i].since = wl.Prepared.Begin
		if !w.Templates[i].DaemonSet {
			wl.Queue.lowest = min(wl.Queue.lowest, w.Templates[i].Priority)
		}
	}
}

// placeVolumes gives the first replicas of a StatefulSet volumes that exist before the warm-up of
// an empty cluster. The volumes rotate over the zones where the pods fit. The name of the workload
// determines the first zone, so the zones are the same for every policy. Without this, volumes
// would be created for the first pods in the zones where the first nodes join. These zones would
// depend on the policy, and pods that must spread could not leave them.
func (wl *Workloads) placeVolumes(id policy.WorkloadID, replicas int32) {
	zones := wl.Prepared.VolumeZones[id]
	if wl.Scenario.StartCluster != scenarios.StartEmpty || len(zones) == 0 {
		return
	}
	from := portable.HashString(wl.Scenario.Workloads[id].Name) % uint64(len(zones))
	for k := range replicas {
		wl.State[id].keepZone(k, zones[(from+uint64(k))%uint64(len(zones))])
	}
}

// Start creates the pods that are wanted when the warm-up starts, and plans the changes of the
// schedules.
func (wl *Workloads) Start() {
	for i := range wl.Scenario.Workloads {
		w, id := &wl.Scenario.Workloads[i], policy.WorkloadID(i)
		if w.Job != nil {
			for k, at := range w.Job.Releases {
				if at >= wl.Clock.Now && at < wl.Window.To {
					wl.Clock.Add(at, engine.JobReleased, int32(id), int32(k), 0)
				}
			}
			continue
		}
		first := int32(0)
		for k, step := range w.Schedule {
			if step.At <= wl.Clock.Now || k == 0 {
				first = step.Replicas
			}
			if step.At > wl.Clock.Now && step.At < wl.Window.To {
				wl.Clock.Add(step.At, engine.ReplicasChange, int32(id), int32(k), 0)
			}
		}
		for _, at := range w.Rollouts {
			if at > wl.Clock.Now && at < wl.Window.To {
				wl.Clock.Add(at, engine.RollsOut, int32(id), 0, 0)
			}
		}
		g := &wl.Serving.Of[i]
		g.wanted, g.desired = first, first
		wl.Serving.setRequired(id)
		wl.placeVolumes(id, first)
		for range first {
			wl.Pods.add(id)
		}
	}
	for i := range wl.State {
		wl.touch(policy.WorkloadID(i))
		wl.PDBs.Update(policy.WorkloadID(i))
	}
}

// stepReplicas applies step k of a workload's schedule.
func (wl *Workloads) stepReplicas(w policy.WorkloadID, k int) {
	g, want := &wl.Serving.Of[w], wl.Scenario.Workloads[w].Schedule[k].Replicas
	if want == g.wanted {
		return
	}
	g.advance(wl.Clock.Now, wl.Window)
	g.wanted = want
	wl.Serving.forgetOwed(w)
	if want < g.desired {
		g.desired = want
	} else {
		wl.Clock.Add(wl.Clock.Now.Add(wl.Scenario.ReadyGrace), engine.GrowthCounts, int32(w), want, 0)
	}
	wl.Serving.setRequired(w)
	wl.touch(w)
	wl.PDBs.Update(w)
	wl.Log.Add(wl.Clock.Now, engine.RecordReplicas, wl.Scenario.Workloads[w].Name, "", int64(want))
	wl.reconcile(w)
}

// countGrowth adds to the desired number the pods that have been wanted for the whole ready grace.
func (wl *Workloads) countGrowth(w policy.WorkloadID) {
	g := &wl.Serving.Of[w]
	since := wl.Clock.Now.Add(-wl.Scenario.ReadyGrace)
	least := g.wanted
	for _, step := range wl.Scenario.Workloads[w].Schedule {
		if step.At > since && step.At <= wl.Clock.Now {
			least = min(least, step.Replicas)
		}
	}
	// At the start of the ready grace, the replicas of the preceding step were wanted.
	least = min(least, wl.replicasAt(w, since))
	g.advance(wl.Clock.Now, wl.Window)
	g.desired = max(g.desired, least)
	wl.Serving.setRequired(w)
}

func (wl *Workloads) replicasAt(w policy.WorkloadID, t policy.Time) int32 {
	schedule := wl.Scenario.Workloads[w].Schedule
	n := schedule[0].Replicas
	for _, step := range schedule {
		if step.At <= t {
			n = step.Replicas
		}
	}
	return n
}

// reconcile creates or deletes pods until a workload has the pods that it wants.
func (wl *Workloads) reconcile(w policy.WorkloadID) {
	ws, want := &wl.State[w], wl.Serving.Of[w].wanted
	switch wl.Scenario.Workloads[w].Kind {
	case policy.KindDaemonSet, policy.KindJob:
		return // nodes and job instances create these pods
	case policy.KindStatefulSet:
		wl.reconcileOrdered(w)
		return
	}
	if ws.old > 0 {
		wl.roll(w)
		return
	}
	if ws.writing() {
		return
	}
	if wl.Delays.PodWrites > 0 && ws.Active < want {
		ws.missing = want - ws.Active
		wl.writeLater(w)
		return
	}
	for ws.Active < want && wl.add(w) {
	}
	if ws.Active > want && !ws.shrinking {
		wl.scaleDown(w, ws.Active-want, false)
	}
}

// add creates a pod. It returns false if a gate denies it.
func (wl *Workloads) add(w policy.WorkloadID) bool {
	if wl.GPUBudgets.shut(w) {
		wl.deny(w)
		return false
	}
	wl.Queue.enqueue(wl.Pods.add(w))
	return true
}

// reconcileOrdered reconciles a StatefulSet: it creates pods from the lowest ordinal up, each once
// all pods before it are ready, and deletes them from the highest down.
func (wl *Workloads) reconcileOrdered(w policy.WorkloadID) {
	ws, want := &wl.State[w], wl.Serving.Of[w].wanted
	if ws.Active > want {
		highest := policy.PodID(policy.None)
		for _, id := range ws.pods {
			if wl.Pods.All[id].Phase != policy.PodTerminating &&
				(highest == policy.None || wl.Pods.State[id].ordinal > wl.Pods.State[highest].ordinal) {
				highest = id
			}
		}
		wl.Pods.delete(highest, policy.EndScaled)
		return
	}
	if ws.Active == want || int32(len(ws.pods)) > ws.Active {
		return // complete, or a terminating pod still uses its name
	}
	for _, id := range ws.pods {
		if wl.Pods.All[id].Phase != policy.PodReady && wl.Pods.State[id].ordinal < wl.freeOrdinal(w) {
			return
		}
	}
	if wl.GPUBudgets.shut(w) {
		wl.deny(w)
		return
	}
	wl.Queue.enqueue(wl.Pods.add(w))
}

// freeOrdinal returns the lowest ordinal that no pod of w uses.
func (wl *Workloads) freeOrdinal(w policy.WorkloadID) int32 {
	for ordinal := int32(0); ; ordinal++ {
		if !slices.ContainsFunc(wl.State[w].pods,
			func(id policy.PodID) bool { return wl.Pods.State[id].ordinal == ordinal }) {
			return ordinal
		}
	}
}

// scaleDown deletes n pods, only of old versions if old is true. It uses the order of the
// ReplicaSet controller: unbound pods, then unready ones, then those with the lowest deletion cost,
// then those with most siblings on their node, then the youngest. Ages between two powers of two
// count as equal; such pods are ordered by UID, which is random (ActivePodsWithRanks in
// pkg/controller/controller_utils.go of Kubernetes 1.35).
func (wl *Workloads) scaleDown(w policy.WorkloadID, n int32, old bool) {
	type victim struct {
		id       policy.PodID
		rank     int
		cost     int32
		siblings int
		age      int // binary logarithm of the age in milliseconds
		uid      uint64
	}
	var all []victim
	siblings := make(map[policy.NodeID]int)
	for _, id := range wl.State[w].pods {
		if wl.Pods.All[id].Phase != policy.PodTerminating && wl.Pods.All[id].Node != policy.None {
			siblings[wl.Pods.All[id].Node]++
		}
	}
	for _, id := range wl.State[w].pods {
		p := &wl.Pods.All[id]
		if p.Phase == policy.PodTerminating || old && !wl.old(id) {
			continue
		}
		v, since := victim{id: id, cost: p.DeletionCost, uid: uint64(chance.New(wl.Seed, "pod-uid", p.Name))}, p.Created
		switch p.Phase {
		case policy.PodStarting:
			v.rank = 1
		case policy.PodReady:
			v.rank, since = 2, p.ReadySince
		}
		since -= since % 1000 // the API has a resolution of one second
		v.age = bits.Len64(uint64(wl.Clock.Now.Sub(since)))
		if p.Node != policy.None {
			v.siblings = siblings[p.Node]
		}
		all = append(all, v)
	}
	slices.SortFunc(all, func(a, b victim) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.cost, b.cost),
			cmp.Compare(b.siblings, a.siblings), cmp.Compare(a.age, b.age), cmp.Compare(a.uid, b.uid), cmp.Compare(a.id, b.id))
	})
	if wl.Delays.PodWrites > 0 && !old {
		for _, v := range all[:n] {
			wl.State[w].doomed = append(wl.State[w].doomed, doomedPod{v.id, wl.Pods.State[v.id].gen})
		}
		wl.writeLater(w)
		return
	}
	wl.State[w].shrinking = true
	for _, v := range all[:n] {
		wl.Pods.delete(v.id, policy.EndScaled)
	}
	wl.State[w].shrinking = false
}

// touch publishes that a workload changed.
func (wl *Workloads) touch(w policy.WorkloadID) { wl.WorkloadChanged.Publish(w) }

// Observe updates the observable fields of a workload.
func (wl *Workloads) Observe(id policy.WorkloadID, w *policy.Workload) {
	g := &wl.Serving.Of[id]
	w.Replicas, w.Ready = g.wanted, g.seen
	if wl.Scenario.Workloads[id].Job == nil {
		return
	}
	w.Replicas, w.Deadline, w.Work, w.PausedBy = wl.State[id].Active, 0, 0, wl.Jobs.suspendedBy[id]
	w.Suspended = w.PausedBy != ""
	for _, i := range wl.Jobs.of[id] {
		j := &wl.Jobs.All[i]
		if j.due != 0 && !j.settled && (w.Deadline == 0 || j.due < w.Deadline) {
			w.Deadline = j.due
		}
		for k := range j.Tasks {
			if !j.Tasks[k].over {
				w.Work += wl.Scenario.Workloads[id].Job.Work - j.Tasks[k].Done
			}
		}
	}
}
