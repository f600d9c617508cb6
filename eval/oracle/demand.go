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

// A demand is how many pods of a service count as wanted: count[i] from at[i]
// on. Growth counts only after the ready grace, decline at once.
type demand struct {
	class int
	steps []scenarios.ReplicaStep
	at    []policy.Time
	count []int32
}

// readServices fills services.
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

// countAt returns the count at t, which is not before the window.
func (d *demand) countAt(t policy.Time) int32 {
	i, found := slices.BinarySearch(d.at, t)
	if !found {
		i--
	}
	return d.count[i]
}

// desired returns the replicas that count at t: the fewest wanted since the
// ready grace before it.
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

// replicasAt returns what steps want at t. The first holds before.
func replicasAt(steps []scenarios.ReplicaStep, t policy.Time) int32 {
	n := steps[0].Replicas
	for _, s := range steps {
		if s.At <= t {
			n = s.Replicas
		}
	}
	return n
}

// firstNodeMax is the least slack that a job must have to be counted: more than
// the first node ever takes to come. Counting a job of which a run is excused
// would make the bound wrong.
const firstNodeMax = 30 * time.Minute

// A batch is one instance of a job that no policy may leave undone for nothing.
type batch struct {
	class int
	span  billing.Span // in which its work is done, if it is
	work  int64        // pod-milliseconds, the start of a pod for each completion among them
	pods  int64        // that run at once, at most

	// from and to are the pieces that span covers; guess is the pods thought to
	// run in each of them.
	from, to int
	guess    []float64
}

// readJobs fills jobs: those released early enough to be finished even if the first node takes long
// to start. Of a job released before the window, all work that could be done before the window
// counts as done, at no cost.
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

// startMin returns the least time that a pod of workload i is on a node before it works: its
// container starts, and it becomes ready.
func (o *Oracle) startMin(i int) time.Duration {
	d, quickest := sim.DefaultDelays(), 1.0
	for k := range o.scenario.Faults {
		if f := &o.scenario.Faults[k]; f.Kind == scenarios.FaultSlowNodes {
			quickest = min(quickest, max(0, f.Factor))
		}
	}
	return time.Duration(float64(d.Start+d.ReadyAfter(o.scenario.Templates[i].Startup)) * quickest).Truncate(time.Millisecond)
}

// missing returns what a pod of workload i that is not there costs per hour, in
// micro-dollars: twice its value. Of a job it is what work left undone costs,
// spread over the time that doing it takes a pod, start included.
//
// A completion of which the part d of the work W is done, and d is not 0, keeps a
// pod for d and the start s at least. It pays 2·value·(W−d) for the rest, and one
// of which nothing is done pays 2·value·W. At a rate of 2·value·W/(W+s) for each
// hour of W+s that no pod was kept, neither pays less.
func (o *Oracle) missing(i int) float64 {
	value := 2 * float64(o.prepared.PodValue(policy.WorkloadID(i)))
	if job := o.scenario.Workloads[i].Job; job != nil && job.Work > 0 {
		value = below(value * below(float64(job.Work)/float64(job.Work+o.startMin(i))))
	}
	return max(0, value)
}

// spread starts with the work of b at an even pace over its span.
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

// settle adds to all what the work of b costs at least: in its cheapest pieces,
// done or left undone. They hold all of it, since b could be finished. It moves
// the share step of what was thought to run to where it is cheapest.
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
