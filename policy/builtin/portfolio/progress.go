package portfolio

import (
	"math"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// A jobProgress is what the pods of a template have done since they began.
type jobProgress struct {
	ready    int32
	youngest policy.Time // when the last of them began
	safe     float64     // hours made safe, or done where nothing is made safe, of all
}

// A progress holds how far jobs have come, and what that leaves them to spare.
type progress struct {
	*poolContext

	// of is by template what the pods of jobs have done; nil where there is no job.
	of []jobProgress

	// dueOnly says that all pods of the pool, and those that wait for a node of any pool, are
	// of jobs that are due at a time.
	dueOnly bool
}

// readProgress sums what the pods at work have done.
func readProgress(x *poolContext) *progress {
	j := &progress{poolContext: x}
	if slices.ContainsFunc(j.s.Templates, func(t policy.Template) bool { return ofJob(j.s, &t) }) {
		j.readPods()
		j.readDue()
		j.forgetRefused()
	}
	return j
}

// readPods sums by template what the pods at work have done.
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

// madeSafe returns the hours that a pod at work for so long has made safe, or all of them
// where it makes nothing safe.
func madeSafe(t *policy.Template, age time.Duration) float64 {
	if t.Checkpoint > 0 {
		age -= age % t.Checkpoint
	}
	return max(age, 0).Hours()
}

// rest returns the hours in which the job of t is done from now on at the latest if it has
// all of its nodes. Pods of a gang work side by side; others begin as nodes get free, which
// takes at most W/n + (1-1/n)p for work W of n pods of which the longest takes p (Graham,
// Bounds on multiprocessing timing anomalies, 1969).
func (j *progress) rest(t *policy.Template) float64 {
	w := &j.s.Workloads[t.Workload]
	n, work := float64(max(w.Replicas, 1)), max(w.Work.Hours()-j.of[t.ID].safe, 0)
	if t.Gang > 0 {
		return work / n
	}
	return work/n + float64((1-1/n)*min(work, t.Duration.Hours()))
}

// slack returns the hours that the job of t has to spare until its deadline. It has none if its
// duration or its deadline is not stated: then it must not be late.
func (j *progress) slack(t *policy.Template) float64 {
	w := &j.s.Workloads[t.Workload]
	if w.Deadline == 0 || t.Duration == 0 {
		return math.Inf(-1)
	}
	return w.Deadline.Sub(j.s.Now).Hours() - j.rest(t)
}

// probeFirst returns how long a Spot market that refused without nodes of Spotter in it is not
// requested again. If only jobs with deadlines wait for it, it is tried in the next step: that
// costs nothing, and each hour on demand costs what Spot saves.
func (j *progress) probeFirst() time.Duration {
	if j.dueOnly {
		return policy.DefaultStep.Sub(0) / 2
	}
	return probeFirst
}

// forgetRefused lets nodes be tried again whose drains were given up since the spot that was
// bought in their place was refused, where only jobs with deadlines wait for it: nothing
// speaks against these drains, and to leave the nodes alone for ever longer costs what spot
// saves.
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

// readDue finds whether all pods of the pool, and those that wait for a node of any pool, are
// of jobs that are due at a time.
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

// A waiting decides what a pool whose pods are all of jobs buys while they have time, and
// when they have none. waits says that nothing is bought on demand while spot is refused,
// urgent that no more spot is bought. Other pools do neither.
type waiting struct {
	*poolContext
	jobs          *jobs
	perPod        *podLosses
	waits, urgent bool
}

// readWaiting finds what a pool of this share does about jobs.
func readWaiting(j *jobs, share float64) *waiting {
	w := &waiting{poolContext: j.poolContext, jobs: j, perPod: j.perPod}
	if p := w.pool; share >= 1 && p.OnDemandFallback && p.Provisioner != policy.ProvisionerClusterAutoscaler {
		w.read()
	}
	return w
}

// read finds whether the jobs that the next node would be bought for have time: those with pods
// that have no node, or else all running jobs.
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

// idles reports whether an hour of waiting for the pending pods of a gang costs more than it
// saves: the nodes of the others are paid for and do nothing.
func (w *waiting) idles(t *policy.Template, placed, pending int) bool {
	spot, fixed := w.perPod.redo[t.ID], w.perPod.values[t.ID]
	return t.Gang > 0 && pending > 0 && float64(float64(placed)*spot) > float64(float64(pending)*(fixed-spot))
}

// step is how late a decision may come, in hours.
var step = policy.DefaultStep.Sub(0).Hours()

// reserve returns the hours that a job could spare and does not spend on waiting. One that may
// be moved keeps what it loses if all that is left is done on spot, a change to a node on
// demand and one back for each loss: without them it would have to stay on demand to its end
// also where spot is back (Wu et al., Can't Be Late, NSDI 2024). One that stays where it is
// does so anyway.
func (w *waiting) reserve(t *policy.Template, stays bool) float64 {
	if stays {
		return 0
	}
	return float64(2*w.jobs.hazard()*w.jobs.losses(t)) * float64(w.jobs.rest(t)*w.perPod.changeover(t))
}

// withheld returns s with no fallback to on demand in the pools that wait, and without the markets
// that lose nodes.
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
