package portfolio

import (
	"math"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/portable"
)

// A jobs computes the costs of losing pods of jobs: the work that is done again, and the penalty of
// a late job. all counts with each pod the pods of its gang that are lost with it; gangs counts
// each pod once.
type jobs struct {
	*progress
	perPod   *podLosses
	reclaims *reclaims

	// all is the cost of losing every pod of a job, one node at a time, in dollars. gangs is the
	// same with each pod counted once, by gang size.
	all   float64
	gangs []gangLosses
}

// readJobs sums the cost of losing each pod of a job in dollars: the work that must be done again,
// and the penalty if its job becomes late. The whole gang is lost with a pod of a gang.
func readJobs(p *progress, perPod *podLosses, r *reclaims) *jobs {
	j := &jobs{progress: p, perPod: perPod, reclaims: r}
	if p.of == nil {
		return j
	}
	for i := range j.s.Pods {
		p := &j.s.Pods[i]
		if ofJob(j.s, &j.s.Templates[p.Template]) && j.holds(p) {
			work, late := j.loss(p)
			gang := j.s.Templates[p.Template].Gang
			if gang == 0 {
				work, late = work+late, 0
			} else {
				j.add(0, late)
			}
			j.all += float64(work*j.losses(&j.s.Templates[p.Template])) + late
			j.add(gang, work)
		}
	}
	return j
}

// A gangLosses is the cost of losing the pods in gangs of one size, each counted once. A size of 0
// means pods without a gang.
type gangLosses struct {
	size int32
	loss float64 // dollars
}

// add adds the loss of a pod in a gang of the given size.
func (j *jobs) add(gang int32, loss float64) {
	k := slices.IndexFunc(j.gangs, func(g gangLosses) bool { return g.size == gang })
	if k < 0 {
		k = len(j.gangs)
		j.gangs = append(j.gangs, gangLosses{size: gang})
	}
	j.gangs[k].loss += loss
}

// shock returns the expected cost in dollars if the fraction q of all pods is lost at once: that
// fraction of the pods without a gang, and of a gang of n pods the fraction min(1, q·n).
func (j *jobs) shock(q float64) float64 {
	sum := 0.0
	for _, g := range j.gangs {
		sum += float64(g.loss * min(1, float64(q*float64(max(g.size, 1)))))
	}
	return sum
}

// losses returns how often the gang of t is lost relative to one node: the number of its nodes,
// divided by the number of them that are lost at once. Before any loss, a shortage is assumed to
// take all nodes of the gang in a market, which counts as one observed shortage.
func (j *jobs) losses(t *policy.Template) float64 {
	if t.Gang == 0 || j.e.gangs.nodes == nil {
		return 1
	}
	x, nodes := &j.memory.Shocks, float64(max(j.e.gangs.nodes[t.ID], 1))
	most := nodes / float64(max(j.e.gangs.markets[t.ID], 1))
	return nodes / min(max((most+x.Taken)/(1+x.Spans), 1), most)
}

// lostWith returns the number of pods that are lost with p, including p, divided by the number of
// pods of the gang on its node. A node with several pods of a gang thus loses the gang once.
func (j *jobs) lostWith(p *policy.Pod) float64 {
	gang := j.s.Templates[p.Template].Gang
	if gang == 0 {
		return 1
	}
	mates := int32(1)
	if n := j.s.Pods[p.ID].Node; n >= 0 {
		mates = max(j.e.gangs.mates[int64(n)<<32|int64(p.Template)], 1)
	}
	return float64(max(gang, mates)) / float64(mates)
}

// ofJob reports whether pods of t belong to a job.
func ofJob(s *policy.Snapshot, t *policy.Template) bool {
	w := t.Workload
	return w >= 0 && s.Workloads[w].Kind == policy.KindJob
}

// loss returns the cost in dollars of losing p, a pod of a job, at a random instant of its whole
// run: its own work, and the delay of its job. Work since the last checkpoint has to be done again;
// with repeated losses that takes (exp(hI)-1)/h for an interval I at a hazard h.
func (j *jobs) loss(p *policy.Pod) (work, delay float64) {
	t := &j.s.Templates[p.Template]
	w, value := &j.s.Workloads[t.Workload], j.perPod.values[p.Template]
	run, age := j.run(p)
	safe := run
	if t.Checkpoint > 0 {
		safe = min(run, t.Checkpoint.Hours())
	}
	h := max(j.reclaims.hazard, 1e-9)
	redo := safe / 2
	// The loss of any node of a gang is a loss for the whole gang.
	if x := min(float64(h*j.losses(t))*safe, 5); x > 1e-3 {
		redo = float64((portable.Expm1(x)/x - 1) * safe / x)
	}
	redo += j.perPod.minutes[p.Template] / 60
	work = float64(j.perPod.redo[p.Template] * redo)
	if w.Deadline == 0 || t.Checkpoint > 0 {
		return work, 0
	}
	spare := w.Deadline.Sub(j.s.Now).Hours() - (run - age)
	late := min(max((run-spare)/run, 0), 1)
	n := float64(max(w.Replicas, 1))
	// One lost pod makes the job late; further losses add no penalty.
	y := max(float64(float64(h*run)*n), 1e-9)
	once := -portable.Expm1(-y) / y
	return work, float64(float64(float64(value*n)*float64(t.PenaltyHours()+run)) * float64(late*once))
}

// run returns how long a pod of a job runs in total, and has run, in hours. If no duration is
// stated, the pod is assumed to run for as long again as it has run.
func (j *jobs) run(p *policy.Pod) (all, age float64) {
	if p.Phase == policy.PodReady {
		age = j.s.Now.Sub(p.ReadySince).Hours()
	}
	all = j.s.Templates[p.Template].Duration.Hours()
	if all == 0 {
		all = max(float64(2*age), 1)
	}
	return max(all, age, 0.01), age
}

// redone returns the cost in dollars of moving running pods: work since the last checkpoint is done
// again, and the job may be late.
func (j *jobs) redone(pods []policy.Pod) float64 {
	sum := 0.0
	for i := range pods {
		if ofJob(j.s, &j.s.Templates[pods[i].Template]) {
			sum += j.leaving(&pods[i])
		}
	}
	return sum
}

// leaving returns the cost in dollars of evicting p, a pod of a job, now.
func (j *jobs) leaving(p *policy.Pod) float64 {
	t := &j.s.Templates[p.Template]
	w, value := &j.s.Workloads[t.Workload], j.perPod.values[p.Template]
	run, lost := j.run(p)
	spare := max(j.slack(t), w.Deadline.Sub(j.s.Now).Hours()-(run-lost))
	needed := lost + restartDelay.Hours()
	if t.Checkpoint > 0 {
		lost = min(lost, t.Checkpoint.Hours()/2)
		needed = j.perPod.changeover(t)
	}
	cost := float64(float64(j.perPod.redo[p.Template]*lost) * j.lostWith(p))
	if w.Deadline != 0 && spare >= 0 && spare < needed {
		cost += float64(value*float64(max(w.Replicas, 1))) * t.PenaltyHours()
	}
	return cost
}

// within returns the part of a saving that a move of pods realises. saved is the saving in dollars
// and hourly the saving per hour. If all pods belong to jobs, the saving lasts until their work is
// done or their node is lost.
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

// tight reports whether any of pods belongs to a job that has no time for a move: being lost at the
// destination and moving once more would make it late, or leave too little time for later. Each
// move and each loss takes two changeovers of its slack, so the slack allows a limited number of
// them in the remaining work. In a pool of such jobs they are spread over that time: the next move
// must wait for [paceShare] of the interval at which the slack would be used up exactly at the end.
// Spot capacity that comes and goes would otherwise use up the slack at the start (Wu et al., Can't
// Be Late, NSDI 2024, spread progress for that reason).
func (j *jobs) tight(pods []policy.Pod) bool {
	return slices.ContainsFunc(pods, func(p policy.Pod) bool {
		t := &j.s.Templates[p.Template]
		if !ofJob(j.s, t) || t.Checkpoint == 0 {
			return false
		}
		spare, x := j.perPod.spare(t), j.perPod.changeover(t)
		if math.IsInf(spare, -1) {
			return false
		}
		interval := float64(2*x*j.rest(t)) / max(spare, x)
		return spare < x || j.dueOnly && j.s.Now.Sub(p.ReadySince).Hours() < paceShare*interval
	})
}

// paceShare is the fraction of the interval between two moves for which a job must stay where it
// is. The rest is for its work on Spot, and its waits for Spot, in between.
const paceShare = 0.25

// hazard returns the reclaims per node-hour against which a job keeps slack: the pool's own rate,
// as if it had observed one reclaim in usualLife hours before, or the forecast if that is higher.
// The pool's own rate falls with each hour on Spot without a loss.
func (j *jobs) hazard() float64 {
	return max(j.reclaims.hazard, (1+j.reclaims.met)/(usualLife+j.reclaims.hours))
}

// usualLife is the number of hours after which a node is lost in a market without data: the inverse
// of 0.37 per hour, the geometric mean of the minimum and the maximum, 0.10 and 1.39, of nine
// recorded zones of V100.
const usualLife = 2.7

// A gangIndex counts the pods and nodes of gangs.
type gangIndex struct {
	mates map[int64]int32 // pods by node and template

	// markets is, by template, the number of markets with pods of a gang, and nodes the number of
	// nodes with such pods. Both are nil if there are no gangs.
	markets, nodes []int32
}

// read counts the pods of s.
func (x *gangIndex) read(s *policy.Snapshot) {
	clear(x.mates)
	if x.markets, x.nodes = nil, nil; !slices.ContainsFunc(s.Templates,
		func(t policy.Template) bool { return t.Gang > 0 }) {
		return
	}
	if x.mates == nil {
		x.mates = map[int64]int32{}
	}
	x.markets, x.nodes = make([]int32, len(s.Templates)), make([]int32, len(s.Templates))
	seen := map[int64]bool{}
	for i := range s.Pods {
		p := &s.Pods[i]
		if p.Node < 0 || p.Phase == policy.PodGone || s.Templates[p.Template].Gang == 0 {
			continue
		}
		key := int64(p.Node)<<32 | int64(p.Template)
		if x.mates[key]++; x.mates[key] == 1 {
			x.nodes[p.Template]++
		}
		if at := int64(s.Nodes[p.Node].Market)<<32 | int64(p.Template); !seen[at] {
			seen[at] = true
			x.markets[p.Template]++
		}
	}
}
