package portfolio

import (
	"math"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// A jobProgress is the progress of the running pods of a template.
type jobProgress struct {
	ready    int32
	youngest policy.Time // latest start of a ready pod
	safe     float64     // hours of work that need not be repeated, of all pods; all hours without checkpoints
}

// A progress contains the progress of jobs, and the slack that it leaves.
type progress struct {
	*poolContext

	// of is the progress of the pods of jobs by template; nil if there are no jobs.
	of []jobProgress

	// dueOnly reports whether all pods of the pool, and all pods that wait for a node of any pool,
	// belong to jobs with a deadline.
	dueOnly bool
}

// readProgress sums the progress of running pods.
func readProgress(x *poolContext) *progress {
	j := &progress{poolContext: x}
	if slices.ContainsFunc(j.s.Templates, func(t policy.Template) bool { return ofJob(j.s, &t) }) {
		j.readPods()
		j.readDue()
		j.forgetRefused()
	}
	return j
}

// readPods sums the progress of running pods by template.
func (j *progress) readPods() {
	j.of = make([]jobProgress, len(j.s.Templates))
	for i := range j.s.Pods {
		p := &j.s.Pods[i]
		t := &j.s.Templates[p.Template]
		if p.Phase == policy.PodReady && ofJob(j.s, t) {
			x := &j.of[p.Template]
			x.ready, x.youngest = x.ready+1, max(x.youngest, p.ReadySince)
			x.safe += madeSafe(t, j.s.Now.Sub(p.ReadySince))
		}
	}
	for i := range j.of {
		if t, x := &j.s.Templates[i], &j.of[i]; t.Gang > 0 {
			x.safe = 0
			if n := max(j.s.Workloads[t.Workload].Replicas, 1); x.ready >= n {
				x.safe = float64(n) * madeSafe(t, j.s.Now.Sub(x.youngest))
			}
		}
	}
}

// madeSafe returns the hours up to the last checkpoint of a pod that has run for age, or all hours
// if it has no checkpoints.
func madeSafe(t *policy.Template, age time.Duration) float64 {
	if t.Checkpoint > 0 {
		age -= age % t.Checkpoint
	}
	return max(age, 0).Hours()
}

// rest returns the hours from now within which the job of t is done at the latest if it has all of
// its nodes. Pods of a gang run in parallel. Other pods start as nodes become free, which takes at
// most W/n + (1-1/n)p for work W on n nodes of which the longest pod takes p (Graham, Bounds on
// multiprocessing timing anomalies, 1969).
func (j *progress) rest(t *policy.Template) float64 {
	w := &j.s.Workloads[t.Workload]
	n, work := float64(max(w.Replicas, 1)), max(w.Work.Hours()-j.of[t.ID].safe, 0)
	if t.Gang > 0 {
		return work / n
	}
	return work/n + float64((1-1/n)*min(work, t.Duration.Hours()))
}

// slack returns the hours that the job of t can lose before it misses its deadline. It is -Inf if
// the duration or the deadline is not stated: such a job must not be delayed.
func (j *progress) slack(t *policy.Template) float64 {
	w := &j.s.Workloads[t.Workload]
	if w.Deadline == 0 || t.Duration == 0 {
		return math.Inf(-1)
	}
	return w.Deadline.Sub(j.s.Now).Hours() - j.rest(t)
}

// probeFirst returns how long a Spot market is not tried again that refused while it had no nodes
// of Spotter. If only jobs with deadlines wait for it, it is tried in the next step: that costs
// nothing, and each hour on-demand costs what Spot saves.
func (j *progress) probeFirst() time.Duration {
	if j.dueOnly {
		return policy.DefaultStep.Sub(0) / 2
	}
	return probeFirst
}

// forgetRefused clears the backoff of drains that failed because a Spot replacement was refused, if
// only jobs with deadlines wait for Spot: the drains themselves did not fail, and an ever longer
// backoff costs what Spot saves.
func (j *progress) forgetRefused() {
	if !j.dueOnly || len(j.memory.Backoff) == 0 {
		return
	}
	if slices.ContainsFunc(j.pool.Markets, func(id policy.MarketID) bool {
		m := &j.s.Markets[id]
		return m.Capacity == policy.Spot && m.Experience.Refused != 0 && m.Experience.Refused >= j.memory.Moved
	}) {
		j.memory.Backoff, j.changed = nil, true
	}
}

// readDue sets dueOnly.
func (j *progress) readDue() {
	for i := range j.e.pods.all {
		x := &j.e.pods.all[i]
		if x.daemon || x.phase == policy.PodGone || x.phase == policy.PodTerminating {
			continue
		}
		if x.at >= 0 && j.s.Nodes[x.at].Pool != j.pool.ID {
			continue
		}
		t := &j.s.Templates[x.template]
		if j.dueOnly = ofJob(j.s, t) && !math.IsInf(j.slack(t), -1); !j.dueOnly {
			return
		}
	}
}

// A waiting decides what a pool with only pods of jobs buys. If waits is set, the jobs have time,
// and nothing is bought on-demand while Spot is refused. If urgent is set, a job has none, and no
// more Spot is bought. In other pools neither is set.
type waiting struct {
	*poolContext
	jobs          *jobs
	perPod        *podLosses
	waits, urgent bool
}

// readWaiting returns the waiting of a pool with the given Spot share.
func readWaiting(j *jobs, share float64) *waiting {
	w := &waiting{poolContext: j.poolContext, jobs: j, perPod: j.perPod}
	if p := w.pool; share >= 1 && p.OnDemandFallback && p.Provisioner != policy.ProvisionerClusterAutoscaler {
		w.read()
	}
	return w
}

// read determines whether the jobs for which the next node would be bought have time: the jobs with
// pods without a node, or else all running jobs.
func (w *waiting) read() {
	n := len(w.s.Templates)
	placed, pending, stays := make([]int, n), make([]int, n), make([]bool, n)
	for i := range w.e.pods.all {
		x := &w.e.pods.all[i]
		switch {
		case x.daemon || x.phase == policy.PodGone || x.phase == policy.PodTerminating:
			continue
		case x.at < 0:
			pending[x.template]++
		case w.s.Nodes[x.at].Pool == w.pool.ID:
			placed[x.template]++
		default:
			continue
		}
		if !ofJob(w.s, &w.s.Templates[x.template]) {
			return
		}
		stays[x.template] = stays[x.template] || x.doNotDisrupt
	}
	asked := pending
	if !slices.ContainsFunc(asked, func(n int) bool { return n > 0 }) {
		asked = placed
	}
	w.waits = slices.ContainsFunc(asked, func(n int) bool { return n > 0 })
	for i := range w.s.Templates {
		if t := &w.s.Templates[i]; asked[i] > 0 {
			spare := w.perPod.spare(t)
			if pending[i] == 0 {
				spare -= w.perPod.changeover(t) // the next node is bought for what is lost
			}
			w.waits = w.waits && spare > w.reserve(t, stays[i]) && !w.idles(t, placed[i], pending[i])
			w.urgent = w.urgent || t.Checkpoint > 0 && spare < 0 && !math.IsInf(spare, -1)
		}
	}
}

// idles reports whether an hour of waiting for the pending pods of a gang costs more than it saves:
// the nodes of the other pods are paid for while they idle.
func (w *waiting) idles(t *policy.Template, placed, pending int) bool {
	spot, fixed := w.perPod.redo[t.ID], w.perPod.values[t.ID]
	return t.Gang > 0 && pending > 0 && float64(float64(placed)*spot) > float64(float64(pending)*(fixed-spot))
}

// step is the maximum delay of a decision, in hours.
var step = policy.DefaultStep.Sub(0).Hours()

// reserve returns the hours of slack that a job must not spend on waiting. A job that may be moved
// reserves what it would lose if it did the rest on Spot: a change to an on-demand node and one
// back for each loss. Without that reserve it would have to stay on-demand to its end even if Spot
// returns (Wu et al., Can't Be Late, NSDI 2024). A job that must stay where it is needs no reserve.
func (w *waiting) reserve(t *policy.Template, stays bool) float64 {
	if stays {
		return 0
	}
	return float64(2*w.jobs.hazard()*w.jobs.losses(t)) * float64(w.jobs.rest(t)*w.perPod.changeover(t))
}

// withheld returns s without the fallback to on-demand in pools that wait, and without the markets
// that are losing nodes.
func withheld(s *policy.Snapshot, states []*planState) *policy.Snapshot {
	falls := func(d *planState) bool {
		return slices.ContainsFunc(d.prices.ranked, func(r ranked) bool { return r.falling })
	}
	if !slices.ContainsFunc(states, func(d *planState) bool { return d != nil && (d.waiting.waits || falls(d)) }) {
		return s
	}
	x := *s
	x.Pools = slices.Clone(s.Pools)
	for i, d := range states {
		if d != nil && d.waiting.waits {
			x.Pools[i].OnDemandFallback = false
		}
		if d != nil && falls(d) {
			x.Pools[i].Markets = slices.DeleteFunc(slices.Clone(d.pool.Markets), d.prices.falls)
		}
	}
	return &x
}
