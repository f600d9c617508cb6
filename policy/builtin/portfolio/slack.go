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
// they go and to change once more would make it late.
func (j *jobs) tight(pods []policy.Pod) bool {
	return slices.ContainsFunc(pods, func(p policy.Pod) bool {
		t := &j.s.Templates[p.Template]
		if !ofJob(j.s, t) || t.Checkpoint == 0 {
			return false
		}
		slack := j.slack(t)
		return !math.IsInf(slack, -1) && slack < step+3*j.changeover(t)
	})
}

// hazard returns the reclaims per node-hour for which a job keeps slack: what the pool met
// itself, where that is more than the forecast makes of it. Whether it pays to go back to spot
// is asked of the forecast and what was met together: a job that stays away for an hour of
// many losses would never learn that they have ended.
func (j *jobs) hazard() float64 {
	return max(j.reclaims.hazard, j.reclaims.met/(1+j.reclaims.hours))
}
