package portfolio

import (
	"math"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/portable"
)

// A jobs holds what the loss of pods of jobs costs: the work that is done again, and the
// penalty of a job that is late. all counts with each pod those of its gang that are lost
// with it, gangs each pod once.
type jobs struct {
	*progress
	perPod   *podLosses
	reclaims *reclaims

	// all is what the loss of every pod of a job would cost, in dollars, one node at a
	// time; gangs is the same of each pod once, by the size of its gang.
	all   float64
	gangs []gangLosses
}

// readJobs sums what the loss of each pod of a job costs in dollars: the work that
// has to be done again, and where that makes its job late the penalty of that. With
// a pod of a gang all of the gang is lost.
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

// A gangLosses is what the loss of the pods in gangs of one size costs, each counted once; a size
// of 0 means pods that work on their own.
type gangLosses struct {
	size int32
	loss float64 // dollars
}

// add counts the loss of a pod in a gang of the given size.
func (j *jobs) add(gang int32, loss float64) {
	k := slices.IndexFunc(j.gangs, func(g gangLosses) bool { return g.size == gang })
	if k < 0 {
		k = len(j.gangs)
		j.gangs = append(j.gangs, gangLosses{size: gang})
	}
	j.gangs[k].loss += loss
}

// shock returns what it costs in dollars when the part q of all pods goes at
// once: of pods on their own that part, and of a gang all if it is likely to be met.
func (j *jobs) shock(q float64) float64 {
	sum := 0.0
	for _, g := range j.gangs {
		sum += float64(g.loss * min(1, float64(q*float64(max(g.size, 1)))))
	}
	return sum
}

// losses returns how many times as often as one node the gang of t is lost: the number of its
// nodes, divided by how many of them are lost at once. Before any was lost, a shortage is assumed
// to take all nodes of Spotter in a market, which counts as one observed shortage.
func (j *jobs) losses(t *policy.Template) float64 {
	if t.Gang == 0 || j.e.gangs.nodes == nil {
		return 1
	}
	x, nodes := &j.memory.Shocks, float64(max(j.e.gangs.nodes[t.ID], 1))
	most := nodes / float64(max(j.e.gangs.markets[t.ID], 1))
	return nodes / min(max((most+x.Taken)/(1+x.Spans), 1), most)
}

// lostWith returns how many pods are lost with p, p counted, of which those that
// share its node are shared out: so a node with pods of a gang loses the gang once.
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

// loss returns what a loss of p, a pod of a job, at an unknown instant of its whole run costs in
// dollars: its own work, and the delay of its job. Work since the last checkpoint has to be done
// again; if it is lost again and again, that takes (exp(hI)-1)/h for an interval I at a hazard h.
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
	// The loss of any node of a gang is a loss to all of it.
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
	// One lost pod makes the job late, so that those after it add nothing.
	y := max(float64(float64(h*run)*n), 1e-9)
	once := -portable.Expm1(-y) / y
	return work, float64(float64(float64(value*n)*float64(t.PenaltyHours()+run)) * float64(late*once))
}

// run returns how long a pod of a job works in all, and has worked, in hours. A time that is not
// stated is assumed to be as long again as it has been.
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

// redone returns what it costs in dollars to move pods that are at work: what is
// not made safe is done again, and may then be late.
func (j *jobs) redone(pods []policy.Pod) float64 {
	sum := 0.0
	for i := range pods {
		if ofJob(j.s, &j.s.Templates[pods[i].Template]) {
			sum += j.leaving(&pods[i])
		}
	}
	return sum
}

// leaving returns what it costs in dollars to evict p, a pod of a job, now.
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

// within returns how much of a saving, saved dollars in all and hourly dollars an hour, a move of
// pods brings: if all are of jobs, the part until their work is done or their node is lost.
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
		spare, x := j.perPod.spare(t), j.perPod.changeover(t)
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

// A gangIndex holds where the pods of gangs stand.
type gangIndex struct {
	mates map[int64]int32 // pods by node and template

	// markets is by template in how many markets nodes with pods of a gang stand, and nodes
	// how many these are. They are nil where there are no gangs.
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
