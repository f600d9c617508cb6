package portfolio

import (
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/workload"
)

// moveCosts is what it costs in dollars that pods of a workload are moved. Slices are by
// workload, and as long as there are workloads.
type moveCosts struct {
	each    []float64 // what the move of a pod costs
	slack   []int32   // pods that may be missing
	penalty []float64 // for a pod that may not be missing and is
}

// moveCostsOf reads what it costs that pods are moved which are ready now. A pod is missed
// until it serves elsewhere, and where its workload can spare none that is an outage.
func moveCostsOf(s *policy.Snapshot, e *Policy) moveCosts {
	n := len(s.Workloads)
	c := moveCosts{each: make([]float64, n), slack: make([]int32, n), penalty: make([]float64, n)}
	minutes, ready, unstated := make([]float64, n), make([]int32, n), false
	for i, pods := range e.pods.ready {
		if t := &s.Templates[i]; t.Workload >= 0 {
			ready[t.Workload] += pods
			unstated = unstated || t.Startup == 0 && pods > 0
		}
	}
	for i := 0; unstated && i < len(e.pods.all); i++ {
		p := &e.pods.all[i]
		if !p.bound || p.daemon || p.phase != policy.PodReady {
			continue
		}
		if t := &s.Templates[p.template]; t.Workload >= 0 && t.Startup == 0 {
			minutes[t.Workload] = max(minutes[t.Workload], (s.Pods[i].ReadySince.Sub(s.Pods[i].Bound) + restartDelay).Minutes())
		}
	}
	for i := range s.Templates {
		t := &s.Templates[i]
		w := t.Workload
		if w < 0 {
			continue
		}
		value := e.losses.values[t.ID]
		if t.Startup > 0 {
			minutes[w] = (t.Startup + restartDelay).Minutes()
		}
		switch {
		case s.Workloads[w].Kind == policy.KindJob: // its work counts, see redone
		case t.OutageCost > 0:
			c.penalty[w] = float64(t.OutageCost.Float()*minutes[w]) / 60
		default:
			c.penalty[w] = float64(value * t.PenaltyHours())
		}
		c.slack[w] = ready[w] - workload.Required(s, t, s.Workloads[w].Replicas)
		c.each[w] = e.losses.missed(value, minutes[w])
		if s.Workloads[w].Kind == policy.KindJob {
			c.each[w] = float64(e.losses.redo[t.ID]*minutes[w]) / 60 // only its node is paid for while it starts
		}
		if c.slack[w] < 1 {
			c.each[w] += c.penalty[w]
		}
	}
	return c
}

// restartDelay is what passes besides its start-up until an evicted pod serves
// again elsewhere.
const restartDelay = 20 * time.Second
