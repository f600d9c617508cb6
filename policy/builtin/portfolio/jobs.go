package portfolio

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/portable"
)

// readJobs sums what the loss of each pod of a job costs in dollars: the work that
// has to be done again, and where that makes its job late the penalty of that. With
// a pod of a gang all of the gang is lost.
func (d *planState) readJobs() {
	d.readMates()
	d.jobsAll, d.jobs = 0, d.jobs[:0]
	if !slices.ContainsFunc(d.s.Templates, func(t policy.Template) bool { return d.ofJob(&t) }) {
		return
	}
	for i := range d.s.Pods {
		p := &d.s.Pods[i]
		if d.ofJob(&d.s.Templates[p.Template]) && d.holds(p) {
			work, late := d.jobLoss(p)
			gang := d.s.Templates[p.Template].Gang
			if gang == 0 {
				work, late = work+late, 0
			} else {
				d.addJob(0, late)
			}
			d.jobsAll += float64(work*d.lostWith(p)) + late
			d.addJob(gang, work)
		}
	}
}

// A gangLosses is what the loss of the pods in gangs of one size costs, each
// counted once; a size of 0 stands for pods that work on their own.
type gangLosses struct {
	size int32
	loss float64 // dollars
}

func (d *planState) addJob(gang int32, loss float64) {
	k := slices.IndexFunc(d.jobs, func(g gangLosses) bool { return g.size == gang })
	if k < 0 {
		k = len(d.jobs)
		d.jobs = append(d.jobs, gangLosses{size: gang})
	}
	d.jobs[k].loss += loss
}

// shockOfJobs returns what it costs in dollars when the part q of all pods goes at
// once: of pods on their own that part, and of a gang all if it is likely to be met.
func (d *planState) shockOfJobs(q float64) float64 {
	sum := 0.0
	for _, g := range d.jobs {
		sum += float64(g.loss * min(1, float64(q*float64(max(g.size, 1)))))
	}
	return sum
}

// readMates counts the pods of gangs by node and template.
func (d *planState) readMates() {
	clear(d.e.mates)
	if !slices.ContainsFunc(d.s.Templates, func(t policy.Template) bool { return t.Gang > 0 }) {
		return
	}
	for i := range d.s.Pods {
		if p := &d.s.Pods[i]; p.Node >= 0 && p.Phase != policy.PodGone && d.s.Templates[p.Template].Gang > 0 {
			d.e.mates[int64(p.Node)<<32|int64(p.Template)]++
		}
	}
}

// lostWith returns how many pods are lost with p, p counted, of which those that
// share its node are shared out: so a node with pods of a gang loses the gang once.
func (d *planState) lostWith(p *policy.Pod) float64 {
	gang := d.s.Templates[p.Template].Gang
	if gang == 0 {
		return 1
	}
	mates := int32(1)
	if n := d.s.Pods[p.ID].Node; n >= 0 {
		mates = max(d.e.mates[int64(n)<<32|int64(p.Template)], 1)
	}
	return float64(max(gang, mates)) / float64(mates)
}

// ofJob reports whether pods of t belong to a job.
func (d *planState) ofJob(t *policy.Template) bool {
	w := t.Workload
	return w >= 0 && d.s.Workloads[w].Kind == policy.KindJob
}

// jobLoss returns what a loss of p, a pod of a job, at an instant of its whole run
// that nobody knows costs in dollars: its own work, and that its job is late. Work that is not made safe has to be done
// again; lost again and again that takes (exp(hI)-1)/h for an interval I at a
// hazard h.
func (d *planState) jobLoss(p *policy.Pod) (work, delay float64) {
	t := &d.s.Templates[p.Template]
	w, value := &d.s.Workloads[t.Workload], d.e.values[p.Template]
	run, age := d.run(p)
	safe := run
	if t.Checkpoint > 0 {
		safe = min(run, t.Checkpoint.Hours())
	}
	h := max(d.hazard, 1e-9)
	redo := safe / 2
	// The loss of any node of a gang is a loss to all of it.
	if x := min(float64(h*d.lostWith(p))*safe, 5); x > 1e-3 {
		redo = float64((portable.Expm1(x)/x - 1) * safe / x)
	}
	work = float64(value * redo)
	if w.Deadline == 0 || t.Checkpoint > 0 {
		return work, 0
	}
	left := w.Deadline.Sub(d.s.Now).Hours() - (run - age)
	late := min(max((run-left)/run, 0), 1)
	n := float64(max(w.Replicas, 1))
	// One lost pod makes the job late, so that those after it add nothing.
	y := max(float64(float64(h*run)*n), 1e-9)
	once := -portable.Expm1(-y) / y
	return work, float64(float64(float64(value*n)*float64(penaltyHours(t)+run)) * float64(late*once))
}

// run returns how long a pod of a job works in all, and has worked, in hours. What
// nobody stated is taken to be as long again as it has been.
func (d *planState) run(p *policy.Pod) (all, age float64) {
	if p.Phase == policy.PodReady {
		age = d.s.Now.Sub(p.ReadySince).Hours()
	}
	all = d.s.Templates[p.Template].Duration.Hours()
	if all == 0 {
		all = max(float64(2*age), 1)
	}
	return max(all, age, 0.01), age
}

// redone returns what it costs in dollars to move pods that are at work: what is
// not made safe is done again, and may then be late.
func (d *planState) redone(pods []policy.Pod) float64 {
	sum := 0.0
	for i := range pods {
		if d.ofJob(&d.s.Templates[pods[i].Template]) {
			sum += d.leaving(&pods[i])
		}
	}
	return sum
}

// leaving returns what it costs in dollars to evict p, a pod of a job, now.
func (d *planState) leaving(p *policy.Pod) float64 {
	t := &d.s.Templates[p.Template]
	w, value := &d.s.Workloads[t.Workload], d.e.values[p.Template]
	run, lost := d.run(p)
	left := w.Deadline.Sub(d.s.Now).Hours() - (run - lost)
	if t.Checkpoint > 0 {
		lost = min(lost, t.Checkpoint.Hours()/2)
	}
	cost := float64(float64(value*lost) * d.lostWith(p))
	if w.Deadline != 0 && left >= 0 && left < lost+restartDelay.Hours() {
		cost += float64(value*float64(max(w.Replicas, 1))) * penaltyHours(t)
	}
	return cost
}

// resting returns the names of the nodes that are not emptied for the sake of the
// share: those whose jobs would lose more than they are expected to lose, or to
// cost, where they are, and those that were paid for in advance.
func (d *planState) resting() []string {
	s := d.s
	leave, stay := make([]float64, len(s.Nodes)), make([]float64, len(s.Nodes))
	for i := range s.Pods {
		p := &s.Pods[i]
		if p.Node < 0 || !d.ofJob(&d.s.Templates[p.Template]) || !d.holds(p) {
			continue
		}
		run, age := d.run(p)
		cost := d.leaving(p)
		leave[p.Node] += cost
		if n := &s.Nodes[p.Node]; n.Market >= 0 && s.Markets[n.Market].Capacity == policy.Spot {
			hazard := max(d.hazard, s.Markets[n.Market].Forecast.Hazard)
			stay[p.Node] -= float64(portable.Expm1(-float64(hazard*(run-age))) * cost)
		}
	}
	var names []string
	for i := range s.Nodes {
		if n := &s.Nodes[i]; leave[i] > 0 && n.Market >= 0 && s.Markets[n.Market].Capacity != policy.Spot {
			stay[i] = float64(d.keeping(n)*d.saving) * d.e.cfg.Holding.Hours()
		}
		if leave[i] > stay[i] || d.paid(&s.Nodes[i]) {
			names = append(names, s.Nodes[i].Name)
		}
	}
	return names
}

// paid reports whether nothing is saved by giving n back.
func (d *planState) paid(n *policy.Node) bool {
	return n.Market >= 0 && d.s.Markets[n.Market].Capacity != policy.Spot && d.e.cover.Covers(n.Market) && d.e.cover.Saving(n.Market) == 0
}
