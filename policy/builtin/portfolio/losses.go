package portfolio

import (
	"math"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/scratch"
	"github.com/spotter-dev/spotter/policy/workload"
)

// A podLosses contains the cost of suddenly losing one pod of each template. Slices are by
// template, at the prices of the pool.
type podLosses struct {
	progress    *progress
	disturbance time.Duration

	// each is the cost of the loss in dollars, values the value of a pod in dollars per hour, and
	// minutes how long its workload lacks the pod. redo is the cost of an hour of work that a pod
	// of a job does again, in dollars; see jobs.
	each, values, minutes, redo []float64

	known podValues
	sales []sale // on-demand offers
}

// A podValues caches the value of a pod, in dollars per hour, by its requests. The values hold for
// the prices in sales, which seldom change.
type podValues struct {
	sales []sale
	of    map[policy.Resources]float64
}

// A sale is an on-demand node by whose price a pod may be valued.
type sale struct {
	price       policy.Money
	allocatable policy.Resources
}

// readPodLosses computes the cost of suddenly losing one pod of each template, in dollars. The
// workload lacks the pod until it is ready elsewhere. The cost includes the disturbance, twice the
// value of the pod for the time that it is missing, the penalty of an outage if the workload can
// spare no pod, and the work that a job has to do again.
func readPodLosses(x *poolContext, p *progress) *podLosses {
	l, s := &x.kept.losses, x.s
	l.progress, l.disturbance = p, x.e.cfg.Disturbance
	l.each = scratch.Zeroed(l.each, len(s.Templates))
	l.values = scratch.Zeroed(l.values, len(s.Templates))
	l.minutes = scratch.Zeroed(l.minutes, len(s.Templates))
	values := l.valuesIn(s, x.pool)
	for i := range s.Templates {
		t := &s.Templates[i]
		l.minutes[i] = (t.Startup + lossDelay).Minutes()
		if t.Startup == 0 {
			l.minutes[i] += usualStartup.Minutes()
		}
		value, known := values.of[t.Requests]
		if !known {
			value = values.value(t.Requests)
			values.of[t.Requests] = value
		}
		l.values[i] = value
	}
	l.redo = append(l.redo[:0], l.values...)
	for i := range s.Templates {
		l.each[i] = l.loss(s, &s.Templates[i], l.values[i], l.minutes[i])
	}
	if p.dueOnly {
		l.readRedo(s, x.pool)
	}
	return l
}

// lossDelay is the time, in addition to a pod's start-up, from the sudden loss of its node until
// the pod is ready elsewhere: until the loss is noticed and a node has started. usualStartup is the
// start-up time of a pod that states none.
const (
	lossDelay    = 2 * time.Minute
	usualStartup = 30 * time.Second
)

// loss returns the cost in dollars of suddenly losing one pod of t, except for the work of a job,
// which depends on how long the pod has run.
func (l *podLosses) loss(s *policy.Snapshot, t *policy.Template, value, minutes float64) float64 {
	if t.DaemonSet || t.Workload < 0 {
		return 0
	}
	w := &s.Workloads[t.Workload]
	if w.Kind == policy.KindJob {
		return 0
	}
	loss := l.missed(value, minutes)
	if slack := w.Replicas - workload.Required(s, t, w.Replicas); slack <= 1 {
		loss += value * t.PenaltyHours() * float64(2-max(slack, 0)) / 2
	}
	return loss
}

// of returns the cost in dollars of suddenly losing p.
func (l *podLosses) of(s *policy.Snapshot, p *policy.Pod) float64 {
	return l.each[p.Template] + l.redone(s, p)
}

// redone returns the cost in dollars of repeating the work of p, a running pod of a job, since its
// last checkpoint; 0 for other pods.
func (l *podLosses) redone(s *policy.Snapshot, p *policy.Pod) float64 {
	t := &s.Templates[p.Template]
	if !ofJob(s, t) || p.Phase != policy.PodReady {
		return 0
	}
	redo := s.Now.Sub(p.ReadySince)
	if t.Checkpoint > 0 {
		redo = min(redo, t.Checkpoint/2)
	}
	return l.redo[p.Template] * (redo.Hours() + l.minutes[p.Template]/60)
}

// missed returns the cost in dollars if a pod with this value per hour is missing for the given
// minutes: twice its value, as eval counts unserved pods, plus the fixed cost of a disturbance. It
// does not depend on the other pods of the workload, so that the same capacity costs the same in
// few pods and in many.
func (l *podLosses) missed(value, minutes float64) float64 {
	return float64(value*minutes)/30 + float64(value*l.disturbance.Hours())
}

// valuesIn returns the cached values of pods in the pool.
func (l *podLosses) valuesIn(s *policy.Snapshot, pool *policy.Pool) *podValues {
	l.sales = l.sales[:0]
	for _, id := range pool.Markets {
		m := &s.Markets[id]
		if m.Capacity != policy.OnDemand || !m.Offered && !m.OnDemandModelled {
			continue
		}
		price := m.Charge()
		if !m.Offered {
			price = m.OnDemand
		}
		l.sales = append(l.sales, sale{price, s.Types[m.Type].Allocatable})
	}
	x := &l.known
	if x.of == nil || !slices.Equal(x.sales, l.sales) || len(x.of) > 2*len(s.Templates) {
		x.of, x.sales = map[policy.Resources]float64{}, append(x.sales[:0], l.sales...)
	}
	return x
}

// value returns the value of a pod that requests r, in dollars per hour: its share of the cheapest
// on-demand node, even if the price of that node is used only for comparison. It is 0 if no node
// fits.
func (x *podValues) value(r policy.Resources) float64 {
	best := 0.0
	for i := range x.sales {
		if part := r.LargestShare(x.sales[i].allocatable); part <= 1 {
			if v := part * x.sales[i].price.Float(); best == 0 || v < best {
				best = v
			}
		}
	}
	return best
}

// changeover returns the maximum number of hours by which one loss sets back a pod of t, or its
// gang: the work that is done again, and the time until it runs elsewhere.
func (l *podLosses) changeover(t *policy.Template) float64 {
	redo := t.Duration
	if t.Checkpoint > 0 {
		redo = min(redo, t.Checkpoint)
	}
	return redo.Hours() + l.minutes[t.ID]/60
}

// spare returns the hours that the job of t can lose before it must leave Spot: its slack minus a
// late decision, one loss on Spot and a change to an on-demand node. It is -Inf if the duration or
// the deadline of the job is not stated.
func (l *podLosses) spare(t *policy.Template) float64 {
	return l.progress.slack(t) - step - float64(2*l.changeover(t))
}

// readRedo sets the cost of repeating an hour of lost work: the price of the pod on Spot if its job
// has time to do the work there, else its price on-demand. It applies only to pools whose pods all
// belong to jobs: next to services, each hour of a job also keeps nodes from being emptied, and
// counts as an on-demand hour.
func (l *podLosses) readRedo(s *policy.Snapshot, pool *policy.Pool) {
	for i := range s.Templates {
		t := &s.Templates[i]
		if !ofJob(s, t) || l.spare(t) < 0 {
			continue
		}
		x := &l.redo[i]
		for _, id := range pool.Markets {
			if m := &s.Markets[id]; m.Capacity == policy.Spot && m.Offered {
				if part := t.Requests.LargestShare(s.Types[m.Type].Allocatable); part <= 1 {
					*x = min(*x, float64(part*m.Charge().Float()))
				}
			}
		}
	}
}

// A poolLosses contains the costs of losing nodes of the pool, one at a time and many at once.
// Every pod of a workload in the pool counts once: a pod of a job in jobs, other pods in the
// service of their template. Pods of a service that can spare none do not count if they run on a
// node that is not Spot.
type poolLosses struct {
	*poolContext
	demand *demand
	jobs   *jobs
	perPod *podLosses

	// services are the workloads with pods in the pool. serviceOf is, by template, the index of its
	// service, or None.
	services  []service
	serviceOf []int32

	// anchors reports, by template, whether it has pods in the pool and belongs to a service that
	// can spare none.
	anchors []bool

	// perNode is the cost of losing one node per requested core; see ofNode.
	perNode float64
}

// A service determines the cost of losing many pods of a workload of the pool at once.
type service struct {
	pods    float64 // number of pods in the pool
	slack   float64 // number of its pods that may be missing
	even    bool    // whether its pods request to be spread over the capacity types
	value   float64 // of a pod, dollars per hour
	minutes float64 // until a lost pod is ready again
	penalty float64 // dollars for each pod below the required number
	rate    float64 // dollars per hour of an outage; replaces penalty if positive
}

// loss returns the cost in dollars of losing k pods at once.
func (v *service) loss(k float64) float64 {
	cost := float64(float64(v.value*k)*v.minutes) / 30
	short := k - v.slack
	if short <= 0 {
		return cost
	}
	if v.rate > 0 {
		return cost + float64(v.rate*v.minutes)*min(1, short)/60
	}
	return cost + float64(v.penalty*short)
}

// readPoolLosses collects the possible losses of the pool.
func readPoolLosses(d *demand, j *jobs) *poolLosses {
	l := &poolLosses{poolContext: d.poolContext, demand: d, jobs: j, perPod: d.perPod}
	l.readServices()
	l.perNode = l.ofNode()
	return l
}

// readServices collects the services that have pods in the pool.
func (l *poolLosses) readServices() {
	s := l.s
	pods, some := slices.Clone(l.demand.pods), false
	l.anchors, l.serviceOf = make([]bool, len(s.Templates)), make([]int32, len(s.Templates))
	for i := range s.Templates {
		l.anchors[i] = pods[i] > 0 && l.needsAll(&s.Templates[i])
		some = some || l.anchors[i]
	}
	for i := 0; some && i < len(l.e.pods.hosts); i++ {
		if h := l.e.pods.hosts[i]; h.pool != l.pool.ID || !h.fixed {
			continue
		}
		for _, g := range l.e.pods.groups[i] {
			if l.anchors[g.template] {
				pods[g.template] -= g.n
			}
		}
	}
	for i := range s.Templates {
		t := &s.Templates[i]
		l.serviceOf[i] = policy.None
		if t.DaemonSet || t.Workload < 0 || pods[i] == 0 || s.Workloads[t.Workload].Kind == policy.KindJob {
			continue
		}
		w := &s.Workloads[t.Workload]
		wanted := max(w.Replicas, 1)
		l.serviceOf[i] = int32(len(l.services))
		l.services = append(l.services, service{
			pods: float64(pods[i]), slack: float64(wanted - workload.Required(s, t, wanted)),
			even:  capacityWish(t) > 0,
			value: l.perPod.values[i], minutes: l.perPod.minutes[i],
			penalty: float64(l.perPod.values[i] * t.PenaltyHours()), rate: t.OutageCost.Float(),
		})
	}
}

// needsAll reports whether t belongs to a service that can spare no pod.
func (l *poolLosses) needsAll(t *policy.Template) bool {
	if t.Workload < 0 {
		return false
	}
	w := &l.s.Workloads[t.Workload]
	return w.Kind != policy.KindJob && workload.Required(l.s, t, w.Replicas) >= w.Replicas
}

// shock returns the cost in dollars of losing the fraction depth of all Spot nodes at once at a
// Spot share of x. Pods that do not request to be spread may be concentrated there beyond the mean,
// by one standard deviation of a random draw; of those that do, half are on-demand.
func (l *poolLosses) shock(x, depth float64) float64 {
	q := x * depth
	sum := l.jobs.shock(q)
	for i := range l.services {
		v := &l.services[i]
		k := v.pods * q
		switch {
		case q <= 0:
		case v.even:
			k = float64(v.pods*min(x, 0.5)*depth) + 1 // plus the skew that the spread allows
		default:
			k += math.Sqrt(float64(k * (1 - q)))
		}
		sum += v.loss(min(k, v.pods))
	}
	return sum
}

// ofNode returns the cost of losing one node in dollars per core requested there, as a mean over
// the pool's nodes: all pods of a node are lost together. On Spot no node gets more pods of a
// service than the service can spare if other nodes have capacity, so a higher concentration on
// on-demand nodes does not count.
func (l *poolLosses) ofNode() float64 {
	if l.demand.total.CPU == 0 {
		return 0
	}
	losses := make([]nodeLoss, len(l.serviceOf))
	for t, v := range l.serviceOf {
		if v >= 0 {
			losses[t] = nodeLoss{l.services[v], true, l.anchors[t]}
			losses[t].pods = 0 // irrelevant to the loss of one node
		}
	}
	sum := overNodes(&l.e.pods, l.pool.ID, losses, l.jobs.all)
	return sum / (float64(l.demand.total.CPU) / 1000)
}

// A nodeLoss determines what pods of a template add to the cost of losing their nodes.
type nodeLoss struct {
	service
	counts, anchor bool
}

// overNodes returns start plus the costs of losing each node of a pool, one at a time. losses is by
// template.
func overNodes(pods *podIndex, p policy.PoolID, losses []nodeLoss, start float64) float64 {
	sum := start
	for at := range pods.hosts {
		h := &pods.hosts[at]
		if h.pool != p {
			continue
		}
		for _, g := range pods.groups[at] {
			v := &losses[g.template]
			switch {
			case !v.counts || h.fixed && v.anchor:
			case h.fixed && g.n > 1:
				sum += v.loss(min(float64(g.n), max(1, v.slack)))
			default:
				sum += v.loss(float64(g.n))
			}
		}
	}
	return sum
}
