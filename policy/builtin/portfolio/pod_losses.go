package portfolio

import (
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/scratch"
	"github.com/spotter-dev/spotter/policy/workload"
)

// A podLosses holds what the sudden loss of one pod of each template costs. Slices are by
// template, at the prices of the pool that was read last.
type podLosses struct {
	disturbance time.Duration

	// each is what the loss costs in dollars, values that of a pod for an hour, and
	// minutes for how long its workload is short of it. redo is what an hour of work costs
	// that a pod of a job does again: see jobs.
	each, values, minutes, redo []float64

	known []podValues // by pool
	sales []sale      // on demand of the pool in hand
}

// A podValues holds by what it asks for the value of a pod where these are the sales, which change
// seldom.
type podValues struct {
	sales []sale
	of    map[policy.Resources]float64
}

// A sale is a node on demand that a pod may be valued by.
type sale struct {
	price       policy.Money
	allocatable policy.Resources
}

// read finds what the sudden loss of one pod of each template costs in
// dollars. Its workload is short of it until it serves again elsewhere, which is
// taken to cost what a drain may cost for it; besides there is the value of the
// pod itself, twice as long as it is gone, the penalty of an outage where the
// workload can spare none, and the work of a job that has to be done again.
func (l *podLosses) read(s *policy.Snapshot, pool *policy.Pool) {
	l.each = scratch.Zeroed(l.each, len(s.Templates))
	l.values = scratch.Zeroed(l.values, len(s.Templates))
	l.minutes = scratch.Zeroed(l.minutes, len(s.Templates))
	values := l.valuesIn(s, pool)
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
}

// lossDelay is what passes besides a pod's start-up from the sudden loss of its
// node until it serves elsewhere: until the loss is noticed and a node has come.
// usualStartup is taken where a pod states none.
const (
	lossDelay    = 2 * time.Minute
	usualStartup = 30 * time.Second
)

// loss returns what the sudden loss of one pod of t costs in dollars, but for the
// work of a job, which depends on how long it has run.
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

// of returns what the sudden loss of p would cost in dollars.
func (l *podLosses) of(s *policy.Snapshot, p *policy.Pod) float64 {
	t := &s.Templates[p.Template]
	loss := l.each[p.Template]
	if t.Workload >= 0 && s.Workloads[t.Workload].Kind == policy.KindJob && p.Phase == policy.PodReady {
		redo := s.Now.Sub(p.ReadySince)
		if t.Checkpoint > 0 {
			redo = min(redo, t.Checkpoint/2)
		}
		loss += l.redo[p.Template] * (redo.Hours() + l.minutes[p.Template]/60)
	}
	return loss
}

// missed returns what it costs in dollars that a pod of this value an hour is missed for
// so long: twice its value, as eval counts what was not served, and what it costs besides,
// however long it takes. It depends on no other pod of the workload, so that the same
// capacity costs the same in few pods and in many.
func (l *podLosses) missed(value, minutes float64) float64 {
	return float64(value*minutes)/30 + float64(value*l.disturbance.Hours())
}

// valuesIn returns the values that are known of pods in the pool.
func (l *podLosses) valuesIn(s *policy.Snapshot, pool *policy.Pool) *podValues {
	for len(l.known) < len(s.Pools) {
		l.known = append(l.known, podValues{of: map[policy.Resources]float64{}})
	}
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
	x := &l.known[pool.ID]
	if !slices.Equal(x.sales, l.sales) || len(x.of) > 2*len(s.Templates) {
		clear(x.of)
		x.sales = append(x.sales[:0], l.sales...)
	}
	return x
}

// value returns the value of a pod that asks for r, in dollars an hour: its part of the
// cheapest node on demand, be its price one that serves for comparison only.
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
