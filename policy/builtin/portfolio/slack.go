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

// readProgress sums what the pods at work have done.
func (j *jobs) readProgress() {
	if !slices.ContainsFunc(j.s.Templates, func(t policy.Template) bool { return ofJob(j.s, &t) }) {
		return
	}
	j.progress = make([]jobProgress, len(j.s.Templates))
	for i := range j.s.Pods {
		p := &j.s.Pods[i]
		t := &j.s.Templates[p.Template]
		if p.Phase == policy.PodReady && ofJob(j.s, t) {
			x := &j.progress[p.Template]
			x.ready, x.youngest = x.ready+1, max(x.youngest, p.ReadySince)
			x.safe += madeSafe(t, j.s.Now.Sub(p.ReadySince))
		}
	}
	for i := range j.progress {
		if t, x := &j.s.Templates[i], &j.progress[i]; t.Gang > 0 {
			x.safe = 0
			if n := max(j.s.Workloads[t.Workload].Replicas, 1); x.ready >= n {
				x.safe = float64(n) * madeSafe(t, j.s.Now.Sub(x.youngest))
			}
		}
	}
	j.readDue()
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
func (j *jobs) rest(t *policy.Template) float64 {
	w := &j.s.Workloads[t.Workload]
	n, work := float64(max(w.Replicas, 1)), max(w.Work.Hours()-j.progress[t.ID].safe, 0)
	if t.Gang > 0 {
		return work / n
	}
	return work/n + float64((1-1/n)*min(work, t.Duration.Hours()))
}

// slack returns the hours that the job of t has to spare until its deadline. It has none
// where nobody stated how long it takes and when it is due: nothing says that it may be
// late.
func (j *jobs) slack(t *policy.Template) float64 {
	w := &j.s.Workloads[t.Workload]
	if w.Deadline == 0 || t.Duration == 0 {
		return math.Inf(-1)
	}
	return w.Deadline.Sub(j.s.Now).Hours() - j.rest(t)
}

// changeover returns the hours by which one loss sets back a pod of t, or its gang, at
// most: what is done again, and until it works elsewhere.
func (j *jobs) changeover(t *policy.Template) float64 {
	redo := t.Duration
	if t.Checkpoint > 0 {
		redo = min(redo, t.Checkpoint)
	}
	return redo.Hours() + j.e.losses.minutes[t.ID]/60
}

// spare returns the hours that the job of t can lose before it must not be on spot any more:
// its slack without a decision that comes late, one loss on spot and a change to a node on
// demand. It is below every number where nobody stated how long the job takes and when it is
// due.
func (j *jobs) spare(t *policy.Template) float64 {
	return j.slack(t) - step - float64(2*j.changeover(t))
}

// readRedo finds what an hour of lost work costs to do again: as much as the pod costs on
// spot where its job has time to do it there, else on demand. Where services stand beside jobs,
// each hour of them keeps nodes from being emptied besides, and counts as one on demand.
func (j *jobs) readRedo() {
	if !j.dueOnly {
		return
	}
	for i := range j.progress {
		t := &j.s.Templates[i]
		if !ofJob(j.s, t) || j.spare(t) < 0 {
			continue
		}
		x := &j.e.losses.redo[i]
		for _, id := range j.pool.Markets {
			if m := &j.s.Markets[id]; m.Capacity == policy.Spot && m.Offered {
				if part := t.Requests.LargestShare(j.s.Types[m.Type].Allocatable); part <= 1 {
					*x = min(*x, float64(part*m.Charge().Float()))
				}
			}
		}
	}
}

// within returns how much of a saving of so many dollars in all, and an hour, a move of pods
// brings: where all are of jobs, what is saved until their work is done or their node is
// lost.
func (j *jobs) within(saved, hourly float64, pods []policy.Pod) float64 {
	most := 0.0
	for i := range pods {
		t := &j.s.Templates[pods[i].Template]
		if !ofJob(j.s, t) || t.Duration == 0 {
			return saved
		}
		run, age := j.run(&pods[i])
		if w := &j.s.Workloads[t.Workload]; w.Replicas <= 1 || t.Gang > 0 {
			run, age = j.rest(t), 0
		}
		most = max(most, run-age)
	}
	if len(pods) == 0 {
		return saved
	}
	return min(saved, float64(hourly*min(most, 1/max(j.reclaims.hazard, 1e-9))))
}

// tight reports whether pods are of a job that has no time for a move: to be lost where
// they go and to change once more would make it late, or leave too little for later. Each
// move and loss takes two changeovers of what it can spare, so that it can afford a number of
// them in what is left to do. In a pool of such jobs these are spread over that time: before the
// next one passes [paceShare] of the interval at which they would be used up just at the end. Spot
// that comes and goes would otherwise use them all at the start (Wu et al., Can't Be Late, NSDI
// 2024, spread progress for that).
func (j *jobs) tight(pods []policy.Pod) bool {
	return slices.ContainsFunc(pods, func(p policy.Pod) bool {
		t := &j.s.Templates[p.Template]
		if !ofJob(j.s, t) || t.Checkpoint == 0 {
			return false
		}
		spare, x := j.spare(t), j.changeover(t)
		if math.IsInf(spare, -1) {
			return false
		}
		interval := float64(2*x*j.rest(t)) / max(spare, x)
		return spare < x || j.dueOnly && j.s.Now.Sub(p.ReadySince).Hours() < paceShare*interval
	})
}

// paceShare is the part of the interval between two moves for which a job stays where it is
// at least. The rest is what it works on spot, and waits for it, in between.
const paceShare = 0.25

// hazard returns the reclaims per node-hour for which a job keeps slack: what the pool met
// itself, as if it had met one in usualLife before, where that is more than the forecast makes
// of it. It falls with each hour on spot without a loss.
func (j *jobs) hazard() float64 {
	return max(j.reclaims.hazard, (1+j.reclaims.met)/(usualLife+j.reclaims.hours))
}

// usualLife is after how many hours a node is lost in a market of which nothing is known: the
// inverse of 0.37 an hour, the geometric mean of the least and the most, 0.10 and 1.39, of
// nine recorded zones of V100.
const usualLife = 2.7

// probeFirst returns how long a spot market that refused without nodes of ours in it is not
// asked again. Where only jobs with deadlines wait for it, it is tried in the next step:
// that costs nothing, and each hour on demand costs what spot saves.
func (j *jobs) probeFirst() time.Duration {
	if j.dueOnly {
		return policy.DefaultStep.Sub(0) / 2
	}
	return probeFirst
}

// forgetRefused lets nodes be tried again whose drains were given up since the spot that was
// bought in their place was refused, where only jobs with deadlines wait for it: nothing
// speaks against these drains, and to leave the nodes alone for ever longer costs what spot
// saves.
func (j *jobs) forgetRefused() {
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
func (j *jobs) readDue() {
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
