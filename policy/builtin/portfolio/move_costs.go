package portfolio

import (
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/workload"
)

// moveCosts is what it costs in dollars that pods of a workload are moved. Slices are by
// workload, and as long as there are workloads.
type moveCosts struct {
	short   float64   // a minute in which a workload has fewer ready pods than it wants
	minutes []float64 // how long it is short of a pod that moves
	value   []float64 // what a pod is worth an hour
	slack   []int32   // pods that may be missing
	penalty []float64 // for a pod that may not be missing and is

	waved [][]float64 // by number of pods too: what of found, 0 unknown
}

// newMoveCosts returns the costs of so many workloads, of which nothing is known.
func newMoveCosts(short float64, workloads int) moveCosts {
	return moveCosts{
		short: short, minutes: make([]float64, workloads), value: make([]float64, workloads),
		slack: make([]int32, workloads), penalty: make([]float64, workloads), waved: make([][]float64, workloads),
	}
}

// moveCosts reads what it costs that pods are moved which are ready now.
func (d *planState) moveCosts() moveCosts {
	s := d.s
	c, ready := newMoveCosts(d.short(), len(s.Workloads)), make([]int32, len(s.Workloads))
	for i := range d.e.pods.all {
		p := &d.e.pods.all[i]
		if !p.bound || p.daemon || p.phase != policy.PodReady {
			continue
		}
		if t := &s.Templates[p.template]; t.Workload >= 0 {
			ready[t.Workload]++
			if t.Startup == 0 {
				c.minutes[t.Workload] = max(c.minutes[t.Workload], (s.Pods[i].ReadySince.Sub(s.Pods[i].Bound) + restartDelay).Minutes())
			}
		}
	}
	for i := range s.Templates {
		t := &s.Templates[i]
		if t.Workload < 0 {
			continue
		}
		c.value[t.Workload] = d.e.values[t.ID]
		if t.Startup > 0 {
			c.minutes[t.Workload] = (t.Startup + restartDelay).Minutes()
		}
		switch {
		case s.Workloads[t.Workload].Kind == policy.KindJob: // its work counts, see redone
		case t.OutageCost > 0:
			c.penalty[t.Workload] = float64(t.OutageCost.Float()*c.minutes[t.Workload]) / 60
		default:
			c.penalty[t.Workload] = float64(c.value[t.Workload] * penaltyHours(t))
		}
		c.slack[t.Workload] = ready[t.Workload] - workload.Required(s, t, s.Workloads[t.Workload].Replicas)
	}
	return c
}

// of returns what it costs in dollars that k pods of w are moved. It is asked
// of few numbers again and again, so that what was found is kept.
func (c *moveCosts) of(w policy.WorkloadID, k int32) float64 {
	if k == 0 {
		return 0
	}
	if int(k) >= len(c.waved[w]) {
		c.waved[w] = append(c.waved[w], make([]float64, int(k)+1-len(c.waved[w]))...)
	}
	cost := &c.waved[w][k]
	if *cost == 0 {
		*cost = c.find(w, k)
	}
	return *cost
}

// find computes what of returns.
func (c *moveCosts) find(w policy.WorkloadID, k int32) float64 {
	at := max(1, c.slack[w])
	waves := (k + at - 1) / at
	cost := float64(float64(waves)*c.minutes[w])*c.short + float64(c.value[w]*c.minutes[w])*float64(k)/30
	if c.slack[w] < 1 {
		cost += float64(c.penalty[w] * float64(k))
	}
	return cost
}
