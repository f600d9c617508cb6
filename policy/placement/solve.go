package placement

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// A Solver places pods as Karpenter's scheduler does. It modifies its space temporarily and
// restores it.
type Solver struct {
	sp         *Space
	b          *Batch
	offerTable *offerTable

	common []int32 // the pods that all attempts share, in order
	own    []int32 // the pods of one attempt only
	queue  []int32
	pushed []int32 // by pod: length of the queue after the pod was put back
	placed []policy.NodeID

	hopeless []bool  // by relaxation: its pods fit nowhere in this attempt
	failed   []int32 // by relaxation: version at which a pod fit nowhere
	version  int32   // incremented with every pod that is placed

	nodes   existingNodes
	claims  claimSet
	pools   poolSet
	asks    askList
	domains domainChooser

	reserved reservations
	filling  filling
}

func (sv *Solver) init(sp *Space) {
	sv.sp = sp
	table, occupancy, groups := &sp.table, &sp.occupancy, &sp.groups
	sv.nodes = existingNodes{sv: sv, table: table, occupancy: occupancy, groups: groups}
	sv.claims = claimSet{sv: sv, table: table, occupancy: occupancy, groups: groups}
	sv.pools = poolSet{solver: sv, table: table, groups: groups}
	sv.asks = askList{table: table, occupancy: occupancy}
	sv.domains = domainChooser{sv: sv, table: table, occupancy: occupancy, groups: groups}
}

// Solve places pods as Karpenter's scheduler does (Solve in
// pkg/controllers/provisioning/scheduling/scheduler.go of Karpenter 1.14.1): in descending order of
// CPU and memory requests, each on the first node with enough resources, else in the open claim
// with the fewest pods, else in a new claim of the first pool that can serve it. Preferences are
// first treated as required and then dropped one by one. It modifies the space temporarily and
// restores it.
func (sv *Solver) Solve(b *Batch) Solution {
	sv.Prepare(b)
	return sv.Attempt()
}

// Prepare reads b for any number of attempts. Between attempts the caller may change: pods after
// those that b has now, From, Without, Abort, Draw, the limits and usage of pools, and the pods on
// nodes that are left out or not in Nodes.
func (sv *Solver) Prepare(b *Batch) {
	sp := sv.sp
	sv.b, sv.filling = b, filling{}
	sp.groups.compileRepelled()
	sv.offerTable = sp.offers.offerTableOf(b.Offers, b)
	sv.reserved.read(sv.offerTable, b.OffersVersion)
	sv.pools.read = false
	sv.nodes.open()
	sv.domains.forget()
	sv.common = sv.sort(sv.common[:0], 0)
}

// Attempt solves the batch that was prepared last.
func (sv *Solver) Attempt() Solution {
	if !sv.run() {
		return Solution{Aborted: true}
	}
	return sv.end()
}

// run places the pods of an attempt. If the attempt is aborted, it reverts it and returns false.
func (sv *Solver) run() bool {
	sv.begin()
	sv.order()
	if sv.filling.bounds {
		sv.largeFirst()
	}
	for head := 0; head < len(sv.queue); head++ {
		p, left := sv.queue[head], int32(len(sv.queue)-head)
		if sv.pushed[p] == left {
			break // all remaining pods were tried since the last success
		}
		if !sv.schedule(p) {
			sv.queue = append(sv.queue, p)
			sv.pushed[p] = left
		} else if sv.b.Abort != nil && sv.b.Abort(int(p), sv.placed[p], len(sv.claims.opened)) {
			sv.undo()
			return false
		}
	}
	return true
}

// begin prepares the scratch data for an attempt.
func (sv *Solver) begin() {
	sp, b := sv.sp, sv.b
	for i := range b.Pods {
		sv.relaxationsOf(&b.Pods[i])
	}
	sv.leave(-1)
	sv.pools.learn()
	rebuilt := sp.groups.layRelaxations()
	sv.offerTable.divideAll(sp)
	sv.claims.begin(rebuilt)
	sv.domains.begin(rebuilt)
	sv.pools.begin(rebuilt)
	sv.reserved.begin(b.AwaitReserved)
	sv.queue, sv.asks.list = sv.queue[:0], sv.asks.list[:0]
	sv.pushed = resize(sv.pushed, len(b.Pods))
	sv.placed = resize(sv.placed, len(b.Pods))
	for i := range sv.placed {
		sv.placed[i] = policy.None
	}
	sv.failed = resize(sv.failed, len(sp.groups.relaxations))
	sv.hopeless = resize(sv.hopeless, len(sp.groups.relaxations))
	sv.version = 1
	sv.nodes.begin()
	for i := range b.Pods {
		sv.domains.activate(&sp.groups.relaxations[sv.relaxationsOf(&b.Pods[i])])
	}
	for id := range sp.groups.groups {
		if g := &sp.groups.groups[id]; g.sort == repelled && g.pods > 0 && g.run != sv.domains.run {
			sv.domains.register(g)
		}
	}
}

// leave removes the pods of Batch.From from the counts of their nodes (delta -1), or adds them back
// (delta 1).
func (sv *Solver) leave(delta int32) {
	for i, n := range sv.b.From {
		if n == policy.None {
			continue
		}
		nd := &sv.sp.occupancy.nodes[n]
		at, there := slices.BinarySearch(nd.pods, sv.b.Pods[i].ID)
		if !there {
			panic(fmt.Sprintf("placement: pod %d is not bound to node %d (%s)", sv.b.Pods[i].ID, n, nd.name))
		}
		x := nd.bound[at]
		k := &sv.sp.table.kinds[x.template]
		sv.sp.groups.countGroups(k, n, x.terminating, delta)
		if k.volumes.any() {
			sv.sp.occupancy.attach(k, n, delta)
		}
	}
}

// learn adds the values of topology keys that a pool names.
func (ct *classTable) learn(pool *Pool) {
	for key := 1; key < len(ct.keys); key++ {
		k := &ct.keys[key]
		for i := range pool.Requirements {
			if r := &pool.Requirements[i]; r.Key == k.name && r.Op == policy.OpIn {
				for _, value := range r.Values {
					k.valueOf(value)
				}
			}
		}
		for i := range pool.Domains {
			if pool.Domains[i].Key == k.name {
				k.valueOf(pool.Domains[i].Value)
			}
		}
	}
}

// resize returns a list of n zero values, reusing the memory of list if possible.
func resize[T any](list []T, n int) []T {
	if cap(list) < n {
		return make([]T, n, n+n/4)
	}
	list = list[:n]
	clear(list)
	return list
}

// layRelaxations builds the requirements of relaxations and filters by topology key. It reports
// whether it rebuilt all of them because keys or values were added.
func (gt *groupTable) layRelaxations() (rebuilt bool) {
	if rebuilt = gt.layOut(); rebuilt {
		gt.relaxationsLaid, gt.groupsLaid = 0, 0
	}
	for ; gt.relaxationsLaid < len(gt.relaxations); gt.relaxationsLaid++ {
		gt.setsOf(&gt.relaxations[gt.relaxationsLaid])
	}
	for ; gt.groupsLaid < len(gt.groups); gt.groupsLaid++ {
		if f := gt.groups[gt.groupsLaid].filter; f != nil {
			gt.termsOf(f)
		}
	}
	return rebuilt
}

// order fills the queue: it merges the pods of this attempt with those that all attempts share.
func (sv *Solver) order() {
	sv.queue = sv.sort(append(sv.queue, sv.common...), len(sv.common))
	at := len(sv.common)
	if at == 0 || at == len(sv.queue) {
		return
	}
	sv.own = append(sv.own[:0], sv.queue[at:]...)
	own := sv.own
	for to := len(sv.queue) - 1; len(own) > 0; to-- {
		last := own[len(own)-1]
		if at > 0 && sv.before(last, sv.queue[at-1]) < 0 {
			at--
			sv.queue[to] = sv.queue[at]
			continue
		}
		sv.queue[to], own = last, own[:len(own)-1]
	}
}

// sort appends the pods from position from on to list, in queue order.
func (sv *Solver) sort(list []int32, from int) []int32 {
	for i := from; i < len(sv.b.Pods); i++ {
		list = append(list, int32(i))
	}
	slices.SortFunc(list[from:], sv.before)
	return list
}

// before compares two pods by their queue keys.
func (sv *Solver) before(x, y int32) int {
	p, q := &sv.b.Pods[x], &sv.b.Pods[y]
	return queueKeyOf(&sv.sp.table.kinds[p.Template].requests,
		p).Compare(queueKeyOf(&sv.sp.table.kinds[q.Template].requests, q))
}

// A QueueKey defines the order in which pods are tried.
type QueueKey struct {
	cpu, memory int64
	created     policy.Time // in seconds
	id          policy.PodID
}

// QueueKeyOf returns the key of p, which is a pod of t.
func QueueKeyOf(t *policy.Template, p *policy.Pod) QueueKey { return queueKeyOf(&t.Requests, p) }

func queueKeyOf(r *policy.Resources, p *policy.Pod) QueueKey {
	return QueueKey{r.CPU, r.Memory, p.Created / 1000, p.ID}
}

// Compare compares keys as Karpenter's queue does (byCPUAndMemoryDescending in queue.go), which
// uses creation times in whole seconds.
func (k QueueKey) Compare(o QueueKey) int {
	switch {
	case k.cpu != o.cpu:
		return cmp.Compare(o.cpu, k.cpu)
	case k.memory != o.memory:
		return cmp.Compare(o.memory, k.memory)
	case k.created != o.created:
		return cmp.Compare(k.created, o.created)
	}
	return cmp.Compare(k.id, o.id)
}

func (sv *Solver) relaxationsOf(p *policy.Pod) int32 {
	return sv.sp.groups.relaxationsOf(p.Template, sv.b.IgnorePreferences)
}

// schedule places one pod, dropping preferences as necessary. It reports whether the pod was
// placed.
func (sv *Solver) schedule(p int32) bool {
	sp := sv.sp
	pod := &sv.b.Pods[p]
	first := sv.relaxationsOf(pod)
	same := pod.VolumeZone == policy.None && sv.b.Resting == nil
	if same && (sv.hopeless[first] || sv.failed[first] == sv.version) {
		return false
	}
	sv.domains.drawn = false
	bound := len(sp.table.kinds[pod.Template].avoids) > 0
	for s := first; s >= 0; s = sp.groups.relaxations[s].next {
		st := &sp.groups.relaxations[s]
		if st.lenient && !sv.pools.lenient {
			break
		}
		if s != first {
			sv.domains.activate(st)
		}
		bound = bound || len(st.groups) > 0 || st.own
		if !sv.b.NewOnly && sv.nodes.addToNode(p, s) || sv.claims.addToClaim(p, s) || sv.claims.addToNew(p, s) {
			sv.version++
			return true
		}
		if sv.reserved.deferred {
			sv.reserved.waits = true // its preferences are not dropped
			return false
		}
	}
	if same {
		sv.hopeless[first] = !bound
		if !sv.domains.drawn {
			sv.failed[first] = sv.version
		}
	}
	return false
}

// inClaim marks a pod in Solver.pushed that is in a claim.
const inClaim = -1

// end returns the solution and reverts the counts of the attempt.
func (sv *Solver) end() Solution {
	out := Solution{Nodes: sv.placed, Deferred: sv.reserved.waits}
	for _, c := range sv.claims.opened {
		out.Bins = append(out.Bins, sv.claims.binOf(c))
		for _, p := range c.pods {
			sv.pushed[p] = inClaim
		}
	}
	for p, n := range sv.placed {
		if n == policy.None && sv.pushed[p] != inClaim {
			out.Unplaced = append(out.Unplaced, p)
		}
	}
	sv.undo()
	return out
}

// undo reverts the counts of the attempt and prepares the scratch data for the next one.
func (sv *Solver) undo() {
	sv.domains.end()
	sv.claims.end()
	sv.nodes.end()
	sv.leave(1)
}
