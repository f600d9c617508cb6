package sim

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
	writes  podWrites
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

	// version counts the rollouts that began, and old the pods of earlier versions, those
	// not terminating.
	version, old int32

	// missing is how many pods its controller is about to make, and doomed are those that it
	// is about to delete. It looks at nothing else meanwhile.
	missing int32
	doomed  []doomedPod

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

// placeVolumes gives the first replicas of a StatefulSet volumes that exist before the warm-up of
// an empty cluster: in the zones where its pods fit in turn, from one that its name chooses, and
// the same for every policy. Volumes that were made for the first pods would all go where the
// first nodes join, which differs by policy, and pods that must spread could not leave that zone.
func (wl *workloads) placeVolumes(id policy.WorkloadID, replicas int32) {
	zones := wl.prepared.volumeZones[id]
	if wl.scenario.StartCluster != scenarios.StartEmpty || len(zones) == 0 {
		return
	}
	from := portable.HashString(wl.scenario.Workloads[id].Name) % uint64(len(zones))
	for k := range replicas {
		wl.state[id].keepZone(k, zones[(from+uint64(k))%uint64(len(zones))])
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
		for _, at := range w.Rollouts {
			if at > wl.q.Now && at < wl.window.To {
				wl.q.Add(at, engine.RollsOut, int32(id), 0, 0)
			}
		}
		g := &wl.serving.of[i]
		g.wanted, g.desired = first, first
		wl.serving.setRequired(id)
		wl.placeVolumes(id, first)
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
	if ws.old > 0 {
		wl.roll(w)
		return
	}
	if ws.writing() {
		return
	}
	if wl.delays.PodWrites > 0 && ws.active < want {
		ws.missing = want - ws.active
		wl.writeLater(w)
		return
	}
	for ws.active < want && wl.add(w) {
	}
	if ws.active > want && !ws.shrinking {
		wl.scaleDown(w, ws.active-want, false)
	}
}

// add makes a pod, and reports false where a gate denies it.
func (wl *workloads) add(w policy.WorkloadID) bool {
	if wl.budgets.shut(w) {
		wl.deny(w)
		return false
	}
	wl.queue.enqueue(wl.pods.add(w))
	return true
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

// scaleDown deletes n pods, of old versions alone or of any, in the ReplicaSet controller's order: not bound,
// then not ready, then those with the lowest deletion cost, then those with most
// siblings on their node, then the youngest. Ages between two powers of two are alike, and
// ordered by UID, which is random (ActivePodsWithRanks in pkg/controller/
// controller_utils.go of Kubernetes 1.35).
func (wl *workloads) scaleDown(w policy.WorkloadID, n int32, old bool) {
	type victim struct {
		id       policy.PodID
		rank     int
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
		if p.Phase == policy.PodTerminating || old && !wl.old(id) {
			continue
		}
		v, since := victim{id: id, cost: p.DeletionCost, uid: uint64(chance.New(wl.cfg.Seed, "pod-uid", p.Name))}, p.Created
		switch p.Phase {
		case policy.PodStarting:
			v.rank = 1
		case policy.PodReady:
			v.rank, since = 2, p.ReadySince
		}
		since -= since % 1000 // the API keeps whole seconds
		v.age = bits.Len64(uint64(wl.q.Now.Sub(since)))
		if p.Node != policy.None {
			v.siblings = siblings[p.Node]
		}
		all = append(all, v)
	}
	slices.SortFunc(all, func(a, b victim) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.cost, b.cost),
			cmp.Compare(b.siblings, a.siblings), cmp.Compare(a.age, b.age), cmp.Compare(a.uid, b.uid), cmp.Compare(a.id, b.id))
	})
	if wl.delays.PodWrites > 0 && !old {
		for _, v := range all[:n] {
			wl.state[w].doomed = append(wl.state[w].doomed, doomedPod{v.id, wl.pods.state[v.id].gen})
		}
		wl.writeLater(w)
		return
	}
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
