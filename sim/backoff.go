package sim

import (
	"cmp"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/sim/engine"
	"github.com/spotter-dev/spotter/sim/scheduler"
)

// A schedulingQueue holds the pending pods and runs the scheduler on them.
type schedulingQueue struct {
	*environment
	consolidation *consolidation
	decider       *decider
	karpenter     *karpenterProvisioner
	nodes         *nodes
	pdbs          *disruptionBudgets
	pods          *pods
	sched         *scheduler.Scheduler
	serving       *serving
	space         *placement.Space

	pending []policy.PodID
	lowest  int32 // the least priority of any template

	// scheduling says that a run of the scheduler is planned, and moved that something
	// changed since the last one: pods that found no node may find one. flushAt is when
	// the last try is planned for pods that found no node at all.
	scheduling, moved bool
	flushAt           policy.Time

	// What a run counts in: by template, the pods that have no place and those for
	// which preemption makes no room; and the pods to preempt.
	failed, stays []bool
	victims       []policy.PodID

	// stated are, by template, the nodes on which the scenario has pods from the start,
	// each as often as it has; nil where it has none.
	stated [][]policy.NodeID
}

// A backoff is what the scheduling queue knows of a pending pod. A pod that found no node
// is tried again when something changes that may help it; one that failed lately then
// stands behind those that did not. While there is no Node object at all a try is an
// error, after which the pod is left alone for a while whatever changes.
// (pkg/scheduler/backend/queue of Kubernetes 1.35, with queueing hints and
// SchedulerPopFromBackoffQ, which are its defaults.)
type backoff struct {
	attempts, errors uint8 // that found no place, and in a row without any node
	tried            policy.Time
	ends             policy.Time // of the backoff, a whole second
}

// The backoff doubles from the first of these to the second (DefaultPodInitialBackoffDuration,
// DefaultPodMaxBackoffDuration). Queues are flushed once a second.
const (
	backoffFirst = time.Second
	backoffMost  = 10 * time.Second
	queueWindow  = time.Second
)

// backoffAfter returns how long a pod is left alone after so many failures.
func backoffAfter(n uint8) time.Duration { return min(backoffFirst<<min(n-1, 8), backoffMost) }

func wholeSecond(t policy.Time) policy.Time { return t - t%policy.Time(queueWindow.Milliseconds()) }

// fail notes that the pod found no node.
func (b *backoff) fail(now policy.Time) {
	b.attempts, b.errors, b.tried = min(b.attempts, 254)+1, 0, now
	b.ends = wholeSecond(now.Add(backoffAfter(b.attempts)))
}

// due reports whether the pod is to be tried now; moved says that something changed that
// may help those that found no node.
func (b *backoff) due(now policy.Time, moved bool) bool {
	if b.errors > 0 {
		return b.ends < wholeSecond(now)
	}
	return moved || b.attempts == 0
}

// retry notes that there was no node at all, and has the pod tried when its backoff ends.
func (sq *schedulingQueue) retry(x *podState) {
	x.errors, x.tried = min(x.errors, 254)+1, sq.q.Now
	x.ends = wholeSecond(sq.q.Now.Add(backoffAfter(x.errors)))
	if at := x.ends.Add(queueWindow); at != sq.flushAt {
		sq.flushAt = at
		sq.q.Add(at, engine.Schedule, 0, 0, 0)
	}
}

// anyRegistered reports whether there is a Node object.
func (ns *nodes) anyRegistered() bool {
	for i := range ns.all {
		if ns.all[i].Phase >= policy.NodeRegistered {
			return true
		}
	}
	return false
}

// byQueue returns the order in which pods leave the scheduling queue: by priority and the time since
// which they wait for a try, after these the ones that failed lately.
func (sq *schedulingQueue) byQueue() func(a, b policy.PodID) int {
	now, pods, states, templates := wholeSecond(sq.q.Now), sq.pods.all, sq.pods.state, sq.scenario.Templates
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

// watchesPods reports whether other pods that are bound may let pods of t fit.
func watchesPods(t *policy.Template) bool {
	return len(t.PodAffinity) > 0 || slices.ContainsFunc(t.Spread, func(c policy.Spread) bool { return !c.Soft })
}
