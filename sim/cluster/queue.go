package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/sim/engine"
	"github.com/spotter-dev/spotter/sim/result"
)

// A SchedulingQueue contains the pending pods and runs the scheduler on them.
type SchedulingQueue struct {
	*Cluster

	Pending []policy.PodID
	lowest  int32 // lowest priority of any template

	// scheduling reports whether a run of the scheduler is planned. moved reports whether something
	// changed since the last run that may let pods fit that could not be placed. flushAt is when
	// the last planned retry of pods is that were tried while no node existed.
	scheduling, moved bool
	flushAt           policy.Time

	// Scratch memory of a run: by template, whether its pods could not be placed and whether
	// preemption makes no room for them; and the pods to preempt.
	failed, stays []bool
	victims       []policy.PodID

	// stated are, by template, the nodes on which the scenario has pods at the start. A node is
	// repeated for each of its pods. The slice is nil if the scenario has no such pods.
	stated [][]policy.NodeID
}

// A backoff is the state of a pending pod in the scheduling queue. A pod that could not be placed
// is tried again when a change may help it; if it failed recently, it is queued after pods that did
// not. While no Node object exists, a try is an error, after which the pod is not tried for a while
// regardless of changes. (pkg/scheduler/backend/queue of Kubernetes 1.35, with queueing hints and
// SchedulerPopFromBackoffQ, which are its defaults.)
type backoff struct {
	attempts, errors uint8 // failed tries, and consecutive tries while no node existed
	tried            policy.Time
	ends             policy.Time // end of the backoff, a whole second
}

// The first and the longest backoff, which doubles from one to the other
// (DefaultPodInitialBackoffDuration, DefaultPodMaxBackoffDuration). Queues are flushed every
// queueWindow.
const (
	backoffFirst = time.Second
	backoffMost  = 10 * time.Second
	queueWindow  = time.Second
)

// backoffAfter returns the backoff after n failures.
func backoffAfter(n uint8) time.Duration { return min(backoffFirst<<min(n-1, 8), backoffMost) }

func wholeSecond(t policy.Time) policy.Time { return t - t%policy.Time(queueWindow.Milliseconds()) }

// fail records that the pod could not be placed.
func (b *backoff) fail(now policy.Time) {
	b.attempts, b.errors, b.tried = min(b.attempts, 254)+1, 0, now
	b.ends = wholeSecond(now.Add(backoffAfter(b.attempts)))
}

// due reports whether the pod must be tried now. moved reports whether a change may let pods fit
// that could not be placed.
func (b *backoff) due(now policy.Time, moved bool) bool {
	if b.errors > 0 {
		return b.ends < wholeSecond(now)
	}
	return moved || b.attempts == 0
}

// retry records that no node existed, and plans a try of the pod after its backoff.
func (sq *SchedulingQueue) retry(x *PodState) {
	x.errors, x.tried = min(x.errors, 254)+1, sq.Clock.Now
	x.ends = wholeSecond(sq.Clock.Now.Add(backoffAfter(x.errors)))
	if at := x.ends.Add(queueWindow); at != sq.flushAt {
		sq.flushAt = at
		sq.Clock.Add(at, engine.Schedule, 0, 0, 0)
	}
}

// byQueue returns the comparison function for the order in which pods leave the scheduling queue:
// by descending priority and then by the start of their wait. Pods that are still in backoff come
// last.
func (sq *SchedulingQueue) byQueue() func(a, b policy.PodID) int {
	now, pods, states, templates := wholeSecond(sq.Clock.Now), sq.Pods.All, sq.Pods.State, sq.Scenario.Templates
	return func(a, b policy.PodID) int {
		x, y := &states[a], &states[b]
		switch left, right := x.ends >= now, y.ends >= now; {
		case left && right && x.ends != y.ends:
			return cmp.Compare(x.ends, y.ends)
		case left && !right:
			return 1
		case right && !left:
			return -1
		}
		p, q := &pods[a], &pods[b]
		if p.Template != q.Template && templates[p.Template].Priority != templates[q.Template].Priority {
			return cmp.Compare(templates[q.Template].Priority, templates[p.Template].Priority)
		}
		if since, other := max(p.Created, x.tried), max(q.Created, y.tried); since != other {
			return cmp.Compare(since, other)
		}
		if p.Created != q.Created {
			return cmp.Compare(p.Created, q.Created)
		}
		return cmp.Or(cmp.Compare(p.Template, q.Template), cmp.Compare(a, b))
	}
}

// watchesPods reports whether the binding of other pods may let pods of t fit.
func watchesPods(t *policy.Template) bool {
	return len(t.PodAffinity) > 0 || slices.ContainsFunc(t.Spread, func(c policy.Spread) bool { return !c.Soft })
}

// enqueue adds a pending pod to the queue.
func (sq *SchedulingQueue) enqueue(id policy.PodID) {
	sq.Pending = append(sq.Pending, id)
	sq.PodPending.Publish(id)
	sq.plan()
}

// Want requests a try of all pending pods after the other events of this instant, because something
// changed that may let one of them fit.
func (sq *SchedulingQueue) Want() {
	sq.moved = true
	sq.plan()
}

// plan plans a run of the scheduler after the other events of this instant.
func (sq *SchedulingQueue) plan() {
	if !sq.scheduling && len(sq.Pending) > 0 {
		sq.scheduling = true
		sq.Clock.Add(sq.Clock.Now, engine.Schedule, 0, 0, 0)
	}
}

// schedule tries pending pods once, in the order of the scheduling queue: new ones, and, if
// something changed, the others. Once a pod of a template could not be placed, the interchangeable
// pods of that template are not tried.
func (sq *SchedulingQueue) schedule() {
	moved, nodes := sq.moved, sq.Nodes.anyRegistered()
	sq.scheduling, sq.moved = false, false
	slices.SortFunc(sq.Pending, sq.byQueue())
	failed := sq.failed
	clear(failed)
	clear(sq.stays)
	bound, watching := false, false
	rest := sq.Pending[:0]
	for _, id := range sq.Pending {
		p, x := &sq.Pods.All[id], &sq.Pods.State[id]
		if p.Phase != policy.PodPending {
			continue
		}
		if !p.Gated && sq.Clock.Now == sq.Prepared.Begin && sq.putStated(id) {
			bound = true
			continue
		}
		if !x.due(sq.Clock.Now, moved) {
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
				sq.Pods.bind(id, n)
				bound = true
				continue
			}
			failed[p.Template] = failed[p.Template] || alike
		}
		if !p.Gated {
			x.fail(sq.Clock.Now)
			watching = watching || watchesPods(&sq.Scenario.Templates[p.Template])
		}
		sq.disappoint(id)
		rest = append(rest, id)
		if !p.Gated && !(alike && sq.stays[p.Template]) {
			sq.stays[p.Template] = !sq.preempt(id) && alike
		}
	}
	sq.Pending = rest
	for _, v := range sq.victims {
		sq.Serving.missed(v, result.CausePreemption)
		sq.Pods.delete(v, policy.EndPreempted)
	}
	sq.victims = sq.victims[:0]
	if bound && watching {
		sq.Want()
	}
	if len(sq.Pending) > 0 {
		sq.PodsWait.Publish(len(sq.Pending))
	}
}

// preempt nominates pending pod id to a node on which pods of lower priority can be preempted, and
// reports whether there is one. The victims are deleted after all pending pods have been tried,
// since their deletion creates new pending pods.
func (sq *SchedulingQueue) preempt(id policy.PodID) bool {
	p := &sq.Pods.All[id]
	if sq.Scenario.Templates[p.Template].Priority <= sq.lowest {
		return false
	}
	n, victims := sq.sched.Preempt(p, sq.Pods.All, sq.PDBs.All)
	if n == policy.None {
		return false
	}
	sq.sched.Nominate(p, n, victims)
	sq.disown(id)
	sq.nominate(id, n)
	sq.victims = append(sq.victims, victims...)
	return true
}

// disappoint drops the nomination of a pod that did not get its place: the node is ready, none of
// its pods is terminating, and other pods took the place. The provisioner then plans for the pod
// again.
func (sq *SchedulingQueue) disappoint(id policy.PodID) {
	n := sq.Pods.All[id].Nominated
	if n == policy.None || sq.Nodes.Plans[n] == PlanComing || sq.Nodes.All[n].Phase < policy.NodeInitialized {
		return
	}
	for _, x := range sq.Space.Pods(n) {
		if sq.Nodes.All[n].Usable() && sq.Pods.All[x].Phase == policy.PodTerminating {
			return
		}
	}
	sq.disown(id)
	sq.Pods.touch(id)
}

// disown drops the nomination of pod id.
func (sq *SchedulingQueue) disown(id policy.PodID) {
	if n := sq.Pods.All[id].Nominated; n != policy.None {
		sq.Nodes.State[n].Nominated--
		sq.Disowned.Publish(n)
		sq.Pods.All[id].Nominated = policy.None
	}
}

// Promise nominates a pod to a node that is launching, or drops its nomination if n is policy.None.
func (sq *SchedulingQueue) Promise(id policy.PodID, n policy.NodeID) {
	was := sq.Pods.All[id].Nominated
	if was == n {
		return
	}
	if was != policy.None {
		sq.Nodes.State[was].Nominated--
		sq.Pods.All[id].Nominated = policy.None
		sq.Pods.touch(id)
		sq.Nodes.Touch(was)
	}
	if n != policy.None {
		sq.nominate(id, n)
	}
}

func (sq *SchedulingQueue) nominate(id policy.PodID, n policy.NodeID) {
	sq.Pods.All[id].Nominated = n
	sq.Nodes.State[n].Nominated++
	sq.Nodes.All[n].Nominated = sq.Clock.Now
	sq.Nominations.Publish(n)
	sq.Pods.touch(id)
	sq.Nodes.Touch(n)
}

// State records which pods the scenario has on node n at the start.
func (sq *SchedulingQueue) State(n policy.NodeID, pods []scenarios.PodsOnNode) {
	for _, x := range pods {
		if sq.stated == nil {
			sq.stated = make([][]policy.NodeID, len(sq.Scenario.Templates))
		}
		for range x.Count {
			w := sq.Kueue.runsAs(x.Workload, &sq.Nodes.All[n])
			sq.stated[w] = append(sq.stated[w], n)
		}
	}
}

// putStated places a pending pod, ready at once, on the next node that the scenario states for its
// workload. It returns false if no such node is left. A node on which the pod does not fit because
// of resources or other hard limits is skipped. Rules of topology spread and affinity do not
// prevent the placement, because they apply only when a pod is scheduled.
func (sq *SchedulingQueue) putStated(id policy.PodID) bool {
	if sq.stated == nil {
		return false
	}
	p := &sq.Pods.All[id]
	for left := &sq.stated[p.Template]; len(*left) > 0; {
		n := (*left)[0]
		*left = (*left)[1:]
		switch why := sq.Space.Check(p, n); why {
		case placement.OK, placement.Skewed, placement.Lonely, placement.Repelled, placement.RepelledByPod:
			sq.Pods.Place(id, n)
			return true
		default:
			x := &sq.Nodes.All[n]
			sq.Warn(fmt.Sprintf("pods of %s that spec.nodes has on nodes of %s (%s) do not all fit there: %v",
				sq.Scenario.Workloads[p.Template].Name,
				sq.Scenario.Pools[x.Pool].Name, sq.Scenario.Markets[x.Market].Name, why))
		}
	}
	return false
}

// Start places the pods that exist when the warm-up starts: on the nodes that the scenario states,
// otherwise where the scheduler can place them at once. The other pods are enqueued.
func (sq *SchedulingQueue) Start() {
	for i := range len(sq.Pods.All) {
		if id := policy.PodID(i); sq.Pods.All[id].Phase == policy.PodPending && !sq.putStated(id) {
			if n, ok := sq.sched.Pick(&sq.Pods.All[id]); ok {
				sq.Pods.Place(id, n)
			} else {
				sq.enqueue(id)
			}
		}
	}
}
