package portfolio

import (
	"math"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/scratch"
	"github.com/spotter-dev/spotter/policy/workload"
)

// A poolLosses holds what the loss of nodes costs the pool, one at a time and many at once.
// Every pod of a workload in the pool counts once: one of a job in jobs, the others in the
// service of their template. Pods of a service that can spare none do not count on a node
// that is not spot.
type poolLosses struct {
	*poolContext
	demand *demand
	jobs   *jobs

	// services are the workloads with pods here, and serviceOf those of the templates,
	// or None.
	services  []service
	serviceOf []int32

	// anchors tells the templates with pods here of services that can spare none.
	anchors []bool

	// perNode is what the loss of one node costs; see ofNode.
	perNode float64
}

// A service is what the loss of many nodes at once does to a workload of the
// pool.
type service struct {
	pods    float64 // that stand in the pool
	slack   float64 // of them that may be missing
	even    bool    // its pods are spread over the capacity types by their own wish
	value   float64 // of a pod, dollars an hour
	minutes float64 // until a lost pod serves again
	penalty float64 // dollars for each pod below what is required
	rate    float64 // dollars an hour of an outage, instead
}

// loss returns what it costs in dollars when k pods go at once.
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

// read collects the services that have pods in the pool.
func (l *poolLosses) read() {
	s := l.s
	x := &l.e.sums[l.pool.ID]
	x.left = append(x.left[:0], l.demand.pods...)
	pods, some := x.left, false
	x.anchors, x.serviceOf = scratch.Zeroed(x.anchors, len(s.Templates)), scratch.Zeroed(x.serviceOf, len(s.Templates))
	l.anchors, l.serviceOf, l.services = x.anchors, x.serviceOf, x.services[:0]
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
			value: l.e.losses.values[i], minutes: l.e.losses.minutes[i],
			penalty: float64(l.e.losses.values[i] * t.PenaltyHours()), rate: t.OutageCost.Float(),
		})
	}
	x.services = l.services
}

// needsAll reports whether t is of a service that can spare no pod.
func (l *poolLosses) needsAll(t *policy.Template) bool {
	if t.Workload < 0 {
		return false
	}
	w := &l.s.Workloads[t.Workload]
	return w.Kind != policy.KindJob && workload.Required(l.s, t, w.Replicas) >= w.Replicas
}

// shock returns what it costs in dollars when the part depth of all spot nodes goes at once
// at a spot share of x. Pods that do not wish to be spread may stand there more than evenly,
// by one standard deviation of a random draw; of those that wish it half are on demand.
func (l *poolLosses) shock(x, depth float64) float64 {
	q := x * depth
	sum := l.jobs.shock(q)
	for i := range l.services {
		v := &l.services[i]
		k := v.pods * q
		switch {
		case q <= 0:
		case v.even:
			k = float64(v.pods*min(x, 0.5)*depth) + 1 // the skew that a spread is allowed
		default:
			k += math.Sqrt(float64(k * (1 - q)))
		}
		sum += v.loss(min(k, v.pods))
	}
	return sum
}

// ofNode returns what the loss of one node costs in dollars for each core that
// is asked for there, in the mean over the pool's nodes: all pods of a node go
// together. On spot no node is given more of a service than it can spare if others
// have capacity, so that what stands together on demand is no measure.
func (l *poolLosses) ofNode() float64 {
	if l.demand.total.CPU == 0 {
		return 0
	}
	x := &l.e.sums[l.pool.ID]
	losses := scratch.Zeroed(x.losses, len(l.serviceOf))
	x.losses = losses
	for t, v := range l.serviceOf {
		if v >= 0 {
			losses[t] = nodeLoss{l.services[v], true, l.anchors[t]}
			losses[t].pods = 0 // it says nothing of one node
		}
	}
	sum := x.overNodes(&l.e.pods, l.pool.ID, losses, l.jobs.all)
	return sum / (float64(l.demand.total.CPU) / 1000)
}
