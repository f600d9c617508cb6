package oracle

import (
	"cmp"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/sim"
)

// A demand is the number of required pods of a service over time: count[i] from at[i]. An increase
// counts after the ready grace, a decrease immediately.
type demand struct {
	class int
	steps []scenarios.ReplicaStep
	at    []policy.Time
	count []int32
}

// readServices sets services.
func (o *Oracle) readServices() {
	for i := range o.scenario.Workloads {
		w := &o.scenario.Workloads[i]
		if w.Kind == policy.KindJob || w.Kind == policy.KindDaemonSet || len(w.Schedule) == 0 {
			continue
		}
		d := demand{class: o.classOf[i], steps: w.Schedule}
		cuts := []policy.Time{o.window.From}
		for _, s := range w.Schedule {
			cuts = append(cuts, s.At, s.At.Add(o.scenario.ReadyGrace))
		}
		slices.Sort(cuts)
		for _, at := range slices.Compact(cuts) {
			if at < o.window.From || at >= o.window.To {
				continue
			}
			n := desired(w.Schedule, o.scenario.ReadyGrace, at)
			if last := len(d.count) - 1; last < 0 || d.count[last] != n {
				d.at, d.count = append(d.at, at), append(d.count, n)
			}
		}
		o.services = append(o.services, d)
	}
}

// countAt returns the number of pods at t, which must not be before the window.
func (d *demand) countAt(t policy.Time) int32 {
	i, found := slices.BinarySearch(d.at, t)
	if !found {
		i--
	}
	return d.count[i]
}

// desired returns the number of replicas that count at t: the minimum over the ready grace before
// t.
func desired(steps []scenarios.ReplicaStep, grace time.Duration, t policy.Time) int32 {
	since := t.Add(-grace)
	fewest := replicasAt(steps, since)
	for _, s := range steps {
		if s.At > since && s.At <= t {
			fewest = min(fewest, s.Replicas)
		}
	}
	return fewest
}

// replicasAt returns the number of replicas at t. The first step also applies to earlier times.
func replicasAt(steps []scenarios.ReplicaStep, t policy.Time) int32 {
	n := steps[0].Replicas
	for _, s := range steps {
		if s.At <= t {
			n = s.Replicas
		}
	}
	return n
}

// firstNodeMax is the minimum slack of a job that counts. It is longer than the launch of the first
// node ever takes. The bound would be wrong if it counted a job whose delay is excused.
const firstNodeMax = 30 * time.Minute

// A batch is one instance of a job whose unfinished work costs every policy money.
type batch struct {
	class int
	span  billing.Span // the interval in which its work is done, if it is done
	work  int64        // pod-milliseconds, including the start of a pod for each completion
	pods  int64        // maximum number of pods at once

	// from and to delimit the pieces that span covers, to excluded. guess is the assumed number of
	// pods that run in each of them.
	from, to int
	guess    []float64
}

// readJobs sets jobs: those that are released early enough to finish even if the first node takes
// long to start. For a job that is released before the window, all work that could be done before
// the window counts as done, at no cost.
func (o *Oracle) readJobs() {
	d := sim.DefaultDelays()
	for i := range o.scenario.Workloads {
		job := o.scenario.Workloads[i].Job
		if job == nil || job.Pods <= 0 || job.Completions <= 0 {
			continue
		}
		each := d.JobRound(o.scenario.Templates[i].Startup, job.Work)
		need := max(firstNodeMax, d.RegisterMax, d.RackspaceRegisterMax) + d.Initialize + d.Pull +
			each*time.Duration((job.Completions+job.Pods-1)/job.Pods)
		for _, released := range job.Releases {
			end := o.window.To
			if job.Deadline > 0 {
				end = min(end, released.Add(job.Deadline))
			}
			if released.Add(need) > end || end <= o.window.From {
				continue
			}
			work := int64(job.Completions) * (job.Work + o.startMin(i)).Milliseconds()
			if released < o.window.From {
				work = int64(job.Completions)*job.Work.Milliseconds() - int64(job.Pods)*int64(o.window.From-released)
			}
			if work > 0 {
				o.jobs = append(o.jobs, batch{class: o.classOf[i], span: billing.Span{From: max(released, o.window.From),
					To: end}, work: work, pods: int64(job.Pods)})
			}
		}
	}
}

// startMin returns the minimum time between the binding of a pod of workload i and the start of its
// work: the container starts and becomes ready.
func (o *Oracle) startMin(i int) time.Duration {
	d, quickest := sim.DefaultDelays(), 1.0
	for k := range o.scenario.Faults {
		if f := &o.scenario.Faults[k]; f.Kind == scenarios.FaultSlowNodes {
			quickest = min(quickest, max(0, f.Factor))
		}
	}
	return time.Duration(float64(d.Start+d.ReadyAfter(o.scenario.Templates[i].Startup)) * quickest).Truncate(time.Millisecond)
}

// missing returns the cost of a missing pod of workload i per hour, in micro-dollars: twice its
// value. For a job it is the cost of work that is not done, divided by the time that a pod needs
// for the work, including its start.
//
// Let W be the work of a completion, s the start of a pod, and d the part of the work that is done.
// If d > 0, the completion occupies a pod for at least d + s, and pays 2·value·(W−d) for the rest.
// If d = 0, it pays 2·value·W. At a rate of 2·value·W/(W+s) for each hour of W+s without a pod,
// neither pays less.
func (o *Oracle) missing(i int) float64 {
	value := 2 * float64(o.prepared.PodValue(policy.WorkloadID(i)))
	if job := o.scenario.Workloads[i].Job; job != nil && job.Work > 0 {
		value = below(value * below(float64(job.Work)/float64(job.Work+o.startMin(i))))
	}
	return max(0, value)
}

// spread initializes the guess of b with its work at a constant rate over its span.
func (b *batch) spread(pieces []piece) {
	b.from, _ = slices.BinarySearchFunc(pieces, b.span.From, func(p piece,
		t policy.Time) int {
		return cmp.Compare(p.span.From, t)
	})
	b.to, _ = slices.BinarySearchFunc(pieces, b.span.To, func(p piece,
		t policy.Time) int {
		return cmp.Compare(p.span.From, t)
	})
	pace := float64(b.work) / float64(b.span.To-b.span.From)
	b.guess = make([]float64, b.to-b.from)
	for i := range b.guess {
		b.guess[i] = pace
		pieces[b.from+i].guess[b.class] += pace
	}
}

// settle adds the minimum cost of the work of b to all: in its cheapest pieces, whether it is done
// there or not. They are long enough for all of it, because b could be finished. It moves the
// fraction step of the guess to these pieces.
func (b *batch) settle(pieces []piece, all *sum, step float64) {
	order := make([]int, b.to-b.from)
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(x, y int) int {
		return cmp.Or(cmp.Compare(pieces[b.from+x].rates[b.class], pieces[b.from+y].rates[b.class]), cmp.Compare(x, y))
	})
	left := b.work
	for _, i := range order {
		p := &pieces[b.from+i]
		ms := min(left, b.pods*p.milliseconds())
		left -= ms
		all.add(p.rates[b.class], ms)
		move := float64(step * (float64(ms)/float64(p.milliseconds()) - b.guess[i]))
		b.guess[i] += move
		p.guess[b.class] = max(0, p.guess[b.class]+move)
	}
}
