package qnet

import (
	"math"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/workload"
	"github.com/spotter-dev/spotter/scenarios"
)

// A ledger keeps, for each pool, what it saved from one snapshot to the next: what
// the wanted pods are worth on demand, less what the nodes cost and what missing
// pods and outages cost, as the README defines these. It is read off snapshots
// alone, so what came and went between two of them is not seen.
type ledger struct {
	at     policy.Time
	values []float64 // by workload: dollars an hour for a pod
	poolOf []policy.PoolID
	state  []workloadState // by workload

	// By pool: dollars an hour since at, dollars so far, and what a pool is about
	// worth an hour, by which dollars are divided.
	rate, sum, scale []float64
}

// A workloadState is what is known of one workload between snapshots.
type workloadState struct {
	replicas int32       // wanted, an increase counted after a while
	raised   policy.Time // since when more are wanted
	greatest int32       // shortfall of the incident under way
	well     policy.Time // since when there is no shortfall, 0 while there is
	deadline policy.Time // of the job that runs
}

const (
	readyGrace = policy.Time(scenarios.DefaultReadyGrace / time.Millisecond)
	joinGap    = policy.Time(5 * time.Minute / time.Millisecond)
	hourMS     = float64(time.Hour / time.Millisecond)
)

// read takes the snapshot in hand into account.
func (l *ledger) read(s *policy.Snapshot) {
	if l.state == nil {
		l.begin(s)
	}
	hours := float64(s.Now-l.at) / hourMS
	for p := range l.sum {
		l.sum[p] += float64(l.rate[p] * hours)
		l.rate[p] = 0
	}
	l.at = s.Now
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Pool >= 0 && n.Market >= 0 && n.Live() && n.Launched != 0 {
			l.rate[n.Pool] -= s.Markets[n.Market].Charge().Float()
		}
	}
	for i := range s.Templates {
		t := &s.Templates[i]
		if t.Workload < 0 || l.poolOf[t.Workload] < 0 {
			continue
		}
		if s.Workloads[t.Workload].Kind == policy.KindJob {
			l.job(s, t)
		} else {
			l.service(s, t)
		}
	}
	for i := range s.Pods {
		p := &s.Pods[i]
		if p.Phase != policy.PodReady {
			continue
		}
		if w := s.Templates[p.Template].Workload; w >= 0 && l.poolOf[w] >= 0 && s.Workloads[w].Kind == policy.KindJob {
			l.rate[l.poolOf[w]] += l.values[w]
		}
	}
}

// begin reads what does not change.
func (l *ledger) begin(s *policy.Snapshot) {
	l.at = s.Now
	l.values, l.poolOf = make([]float64, len(s.Workloads)), make([]policy.PoolID, len(s.Workloads))
	l.state = make([]workloadState, len(s.Workloads))
	l.rate, l.sum, l.scale = make([]float64, len(s.Pools)), make([]float64, len(s.Pools)), make([]float64, len(s.Pools))
	for w := range l.poolOf {
		l.poolOf[w] = policy.None
	}
	for i := range s.Templates {
		t := &s.Templates[i]
		if t.Workload < 0 || t.DaemonSet {
			continue
		}
		p := poolOf(s, t)
		if p < 0 {
			continue
		}
		w := &s.Workloads[t.Workload]
		l.poolOf[w.ID], l.values[w.ID] = p, podValue(s, p, t)
		l.state[w.ID].replicas = w.Replicas
		if w.Kind != policy.KindJob {
			l.scale[p] += l.values[w.ID] * float64(w.Replicas)
		}
	}
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.Pool >= 0 && n.Market >= 0 && n.Live() {
			l.scale[n.Pool] += s.Markets[n.Market].Charge().Float() / 2
		}
	}
}

// poolOf returns the last pool whose labels match the node selector of t; pods without a
// selector only run in pools without taints.
func poolOf(s *policy.Snapshot, t *policy.Template) policy.PoolID {
	best := policy.PoolID(policy.None)
	for i := range s.Pools {
		p := &s.Pools[i]
		ok := true
		for _, l := range t.NodeSelector {
			v, has := policy.FindLabel(p.Labels, l.Key)
			ok = ok && has && v == l.Value
		}
		if ok && (len(t.NodeSelector) > 0 || len(p.Taints) == 0) {
			best = p.ID
		}
	}
	return best
}

// podValue returns the least that the share of a pod in a node on demand costs an
// hour.
func podValue(s *policy.Snapshot, p policy.PoolID, t *policy.Template) float64 {
	best := math.Inf(1)
	for _, id := range s.Pools[p].Markets {
		m := &s.Markets[id]
		if m.Capacity != policy.OnDemand || !m.Offered {
			continue
		}
		if x := t.Requests.LargestShare(s.Types[m.Type].Allocatable); x <= 1 {
			best = min(best, float64(x*m.Charge().Float()))
		}
	}
	if math.IsInf(best, 1) {
		return 0
	}
	return best
}

// service counts what the wanted pods of t are worth, and what missing ones cost.
func (l *ledger) service(s *policy.Snapshot, t *policy.Template) {
	w, x := &s.Workloads[t.Workload], &l.state[t.Workload]
	p, value := l.poolOf[w.ID], l.values[w.ID]
	switch {
	case w.Replicas <= x.replicas:
		x.replicas, x.raised = w.Replicas, 0
	case x.raised == 0:
		x.raised = s.Now
	case s.Now-x.raised >= readyGrace:
		x.replicas, x.raised = w.Replicas, 0
	}
	l.rate[p] += float64(value * float64(w.Replicas))
	l.rate[p] -= 2 * float64(value*float64(max(0, x.replicas-w.Ready)))
	short := workload.Required(s, t, x.replicas) - w.Ready
	if short <= 0 {
		if x.well == 0 {
			x.well = s.Now
		}
		return
	}
	if x.well != 0 && s.Now-x.well >= joinGap {
		x.greatest = 0
	}
	x.well = 0
	if short > x.greatest {
		l.sum[p] -= float64(float64(value*t.PenaltyHours()) * float64(short-x.greatest))
		x.greatest = short
	}
}

// job counts what a job that was not done in time costs.
func (l *ledger) job(s *policy.Snapshot, t *policy.Template) {
	w, x := &s.Workloads[t.Workload], &l.state[t.Workload]
	if x.deadline != 0 && x.deadline <= s.Now && w.Deadline == x.deadline && w.Work > 0 {
		l.sum[l.poolOf[w.ID]] -= float64(l.values[w.ID] * (2*w.Work.Hours() + t.PenaltyHours()))
		x.deadline = 0
		return
	}
	if w.Deadline > s.Now {
		x.deadline = w.Deadline
	}
}

// take returns what pool p saved since it was asked last, as a part of what the
// pool is worth in that time, cut off where an outage would count for more than
// a network can learn.
func (l *ledger) take(p policy.PoolID, hours float64) float32 {
	saved := l.sum[p] / max(float64(l.scale[p]*hours), 1e-9)
	l.sum[p] = 0
	return float32(max(-rewardMost, min(rewardMost, saved)))
}

// rewardMost bounds what one step counts.
const rewardMost = 8
