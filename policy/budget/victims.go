package budget

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
)

// A suspect is a pod, or a job with all its pods, by what it used within the
// window. Those that used most come first, then by name.
type suspect struct {
	pod      policy.PodID
	workload policy.WorkloadID
	name     string
	use      use
	now      rate
}

// worse orders suspects by what the spent quota counts: device-hours, or dollars
// where only these are spent.
func (t *tally) worse(a, b *suspect) int {
	used := cmp.Compare(b.use.used, a.use.used)
	if byDollars := t.budget.HasDollars && !(t.budget.HasGPUHours && t.use.hours() >= t.budget.GPUHours); byDollars {
		used = cmp.Compare(b.use.cost, a.use.cost)
	}
	return cmp.Or(used, cmp.Compare(a.name, b.name))
}

// suspects calls yield with every pod of t that runs and was not asked to go,
// and returns whether one of its pods was evicted for another budget by this
// plan already.
func (e *enforcement) suspects(t *tally, yield func(suspect)) (served bool) {
	for i := range e.s.Pods {
		p := &e.s.Pods[i]
		if !holds(p) || t.counts[p.Template] == 0 {
			continue
		}
		if slices.Contains(e.picked, p.ID) {
			served = true
		}
		if p.Phase == policy.PodTerminating || slices.Contains(e.picked, p.ID) {
			continue
		}
		n := t.counts[p.Template]
		r := rate{n, t.price(e.s, &e.s.Nodes[p.Node], n)}
		since := max(p.Bound, e.s.Now.Add(-t.budget.Window))
		yield(suspect{p.ID, e.s.Templates[p.Template].Workload, p.Name, r.during(int64(e.s.Now - since)), r})
	}
	return served
}

// evict asks the worst offender to go, unless one was asked a moment ago. A pod
// that stays, since a disruption budget protects it, is asked again only after
// all others were.
func (e *enforcement) evict(t *tally) {
	now := e.s.Now
	if next := t.next.Enforced.Add(e.cfg.Pace); t.next.Enforced != 0 && now < next {
		e.plan.Wake = min(e.plan.Wake, next)
		return
	}
	var worst, second suspect
	worst.pod, second.pod = policy.None, policy.None
	waiting, retry := 0, policy.Time(0)
	served := e.suspects(t, func(x suspect) {
		if at, asked := askedAt(t.next.Asked, x.name); asked && now < at.Add(e.cfg.Retry) {
			waiting++
			if again := at.Add(e.cfg.Retry); retry == 0 || again < retry {
				retry = again
			}
			return
		}
		switch {
		case worst.pod == policy.None || t.worse(&x, &worst) < 0:
			worst, second = x, worst
		case second.pod == policy.None || t.worse(&x, &second) < 0:
			second = x
		}
	})
	switch {
	case worst.pod == policy.None && waiting > 0:
		e.hold(t, fmt.Sprintf("waiting for %s to end after eviction", figures.Count(waiting, "pod")))
		e.plan.Wake = min(e.plan.Wake, retry)
	case worst.pod == policy.None || served:
	default:
		e.ask(t, &worst, &second)
	}
}

// ask adds the eviction of x to the plan.
func (e *enforcement) ask(t *tally, x, second *suspect) {
	why := policy.Why{Reason: policy.ReasonBudget, Before: x.now.cost, Text: fmt.Sprintf("%s: %s; this pod used the most, %.2f device-hours for %s",
		t.budget.Name, t.state(), x.use.hours(), x.use.cost.Short())}
	if second.pod != policy.None {
		why.RunnerUp = fmt.Sprintf("%s, %.2f device-hours for %s", second.name, second.use.hours(), second.use.cost.Short())
	}
	e.plan.Evicts = append(e.plan.Evicts, policy.Evict{
		Pod: x.pod, Budget: t.budget.Name, Grace: t.budget.PodGrace, HasGrace: t.budget.HasPodGrace, Why: why,
	})
	e.picked = append(e.picked, x.pod)
	t.next.Enforced = e.s.Now
	i, asked := slices.BinarySearchFunc(t.next.Asked, x.name, func(a policy.AskedPod, name string) int { return cmp.Compare(a.Pod, name) })
	t.next.Asked = slices.Clone(t.next.Asked)
	if asked {
		t.next.Asked[i].At = e.s.Now
	} else {
		t.next.Asked = slices.Insert(t.next.Asked, i, policy.AskedPod{Pod: x.name, At: e.s.Now})
	}
	e.plan.Wake = min(e.plan.Wake, e.s.Now.Add(max(e.cfg.Pace, e.cfg.Soonest)))
}

func askedAt(list []policy.AskedPod, pod string) (policy.Time, bool) {
	i, ok := slices.BinarySearchFunc(list, pod, func(a policy.AskedPod, name string) int { return cmp.Compare(a.Pod, name) })
	if !ok {
		return 0, false
	}
	return list[i].At, true
}

// pause suspends the job that used most, with all its pods. What is no job
// cannot be suspended and is named.
func (e *enforcement) pause(t *tally) {
	now := e.s.Now
	if next := t.next.Enforced.Add(e.cfg.Pace); t.next.Enforced != 0 && now < next {
		e.plan.Wake = min(e.plan.Wake, next)
		return
	}
	var jobs []suspect
	others := 0
	e.suspects(t, func(x suspect) {
		if x.workload == policy.None || e.s.Workloads[x.workload].Kind != policy.KindJob {
			others++
			return
		}
		w := &e.s.Workloads[x.workload]
		if w.Suspended || slices.Contains(t.next.Paused, w.Name) && now < t.next.Enforced.Add(e.cfg.Retry) {
			return
		}
		i := slices.IndexFunc(jobs, func(j suspect) bool { return j.workload == x.workload })
		if i < 0 {
			i = len(jobs)
			jobs = append(jobs, suspect{pod: policy.None, workload: x.workload, name: w.Name})
		}
		jobs[i].use.used += x.use.used
		jobs[i].use.cost += x.use.cost
		jobs[i].now = jobs[i].now.plus(x.now)
	})
	if others > 0 {
		e.hold(t, fmt.Sprintf("only Jobs can be suspended; left running: %s outside of Jobs", figures.Count(others, "pod")))
	}
	if len(jobs) == 0 {
		return
	}
	slices.SortFunc(jobs, func(a, b suspect) int { return t.worse(&a, &b) })
	e.suspend(t, jobs)
}

// suspend adds to the plan that the first of jobs be suspended.
func (e *enforcement) suspend(t *tally, jobs []suspect) {
	x := &jobs[0]
	why := policy.Why{Reason: policy.ReasonBudget, Before: x.now.cost, Text: fmt.Sprintf("%s: %s; the pods of this job used the most, %.2f device-hours for %s",
		t.budget.Name, t.state(), x.use.hours(), x.use.cost.Short())}
	if len(jobs) > 1 {
		why.RunnerUp = fmt.Sprintf("%s, %.2f device-hours for %s", jobs[1].name, jobs[1].use.hours(), jobs[1].use.cost.Short())
		e.plan.Wake = min(e.plan.Wake, e.s.Now.Add(max(e.cfg.Pace, e.cfg.Soonest)))
	}
	e.plan.Pauses = append(e.plan.Pauses, policy.Pause{Workload: x.workload, Budget: t.budget.Name, Paused: true, Why: why})
	t.next.Enforced = e.s.Now
	if i, found := slices.BinarySearch(t.next.Paused, x.name); !found {
		t.next.Paused = slices.Insert(slices.Clone(t.next.Paused), i, x.name)
	}
}

// resume lets the jobs go on that were suspended for a budget, but for those that
// another one holds. It returns those that are to be remembered until they are seen
// to go on.
func (e *enforcement) resume(budget string, jobs []string, state string) (still []string) {
	for _, name := range jobs {
		w := slices.IndexFunc(e.s.Workloads, func(w policy.Workload) bool { return w.Name == name })
		if w < 0 || !e.s.Workloads[w].Suspended || e.heldElsewhere(budget, name) {
			continue
		}
		still = append(still, name)
		if slices.ContainsFunc(e.plan.Pauses, func(x policy.Pause) bool { return x.Workload == policy.WorkloadID(w) }) {
			continue // another budget opened as well
		}
		e.plan.Pauses = append(e.plan.Pauses, policy.Pause{Workload: policy.WorkloadID(w), Budget: budget, Why: policy.Why{
			Reason: policy.ReasonBudget, Text: fmt.Sprintf("%s: %s, so the job resumes from its last checkpoint", budget, state),
		}})
	}
	return still
}

// release lets the jobs go on that were suspended for budgets which are no more,
// since nobody else would. It returns what is to be remembered of these.
func (e *enforcement) release() (left []policy.BudgetMemory) {
	for i := range e.before.Budgets {
		old := &e.before.Budgets[i]
		if slices.ContainsFunc(e.tallies, func(t tally) bool { return t.budget.Name == old.Name }) {
			continue
		}
		if still := e.resume(old.Name, old.Paused, "the budget was deleted"); len(still) > 0 {
			left = append(left, policy.BudgetMemory{Name: old.Name, Paused: still})
		}
	}
	return left
}

// heldElsewhere reports whether a job is suspended for another budget too, the
// gate of which stays closed.
func (e *enforcement) heldElsewhere(budget, job string) bool {
	for i := range e.tallies {
		if x := &e.tallies[i]; x.budget.Name != budget && x.closed && slices.Contains(x.next.Paused, job) {
			return true
		}
	}
	return false
}

// forget drops the pods from the memory of t that were asked to go and have.
func (e *enforcement) forget(t *tally) {
	if len(t.next.Asked) == 0 {
		return
	}
	var asked []policy.AskedPod
	for i := range e.s.Pods {
		p := &e.s.Pods[i]
		if !holds(p) || t.counts[p.Template] == 0 {
			continue
		}
		if at, ok := askedAt(t.next.Asked, p.Name); ok {
			asked = append(asked, policy.AskedPod{Pod: p.Name, At: at})
		}
	}
	slices.SortFunc(asked, func(a, b policy.AskedPod) int { return cmp.Compare(a.Pod, b.Pod) })
	t.next.Asked = asked
}
