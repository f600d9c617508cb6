package gpubudget

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
)

// A suspect is a pod, or a job with all its pods, with its use within the window.
type suspect struct {
	pod      policy.PodID
	workload policy.WorkloadID
	name     string
	use      use
	now      rate
}

// worse compares suspects by the spent quota, in descending order of use: by device-hours, or by
// dollars if only these are spent; ties are broken by name.
func (t *tally) worse(a, b *suspect) int {
	used := cmp.Compare(b.use.used, a.use.used)
	if byDollars := t.budget.HasDollars && !(t.budget.HasGPUHours && t.use.hours() >= t.budget.GPUHours); byDollars {
		used = cmp.Compare(b.use.cost, a.use.cost)
	}
	return cmp.Or(used, cmp.Compare(a.name, b.name))
}

// suspects calls yield with every running pod of t that this plan does not evict, and reports
// whether this plan already evicts a pod of t for another budget.
func (e *enforcement) suspects(t *tally, yield func(suspect)) (served bool) {
	for _, c := range t.templates {
		for _, i := range e.running[c.at] {
			p := &e.s.Pods[i]
			if e.picked[i] {
				served = true
				continue
			}
			if p.Phase == policy.PodTerminating {
				continue
			}
			r := rate{c.n, t.price(e.s, &e.s.Nodes[p.Node], c.n)}
			since := max(p.Bound, e.s.Now.Add(-t.budget.Window))
			yield(suspect{p.ID, e.s.Templates[p.Template].Workload, p.Name, r.during(int64(e.s.Now - since)), r})
		}
	}
	return served
}

// evict plans the eviction of the pod that used most, unless one was evicted less than Pace ago. A
// pod that stays, because a disruption budget protects it, is evicted again only after all others.
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
		if i, asked := findAsked(t.next.Asked, x.name); asked {
			waiting++
			if again := t.next.Asked[i].At.Add(e.cfg.Retry); retry == 0 || again < retry {
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
	why := policy.Why{Reason: policy.ReasonBudget, Before: x.now.cost,
		Text: fmt.Sprintf("%s: %s; this pod used the most, %.2f device-hours for %s",
			t.budget.Name, t.state(), x.use.hours(), x.use.cost.Short())}
	if second.pod != policy.None {
		why.RunnerUp = fmt.Sprintf("%s, %.2f device-hours for %s", second.name, second.use.hours(), second.use.cost.Short())
	}
	e.plan.Evicts = append(e.plan.Evicts, policy.Evict{
		Pod: x.pod, Budget: t.budget.Name, Grace: t.budget.PodGrace, HasGrace: t.budget.HasPodGrace, Why: why,
	})
	e.picked[x.pod] = true
	e.noteAsked(t, x.name)
	e.plan.Wake = min(e.plan.Wake, e.s.Now.Add(max(e.cfg.Pace, e.cfg.Soonest)))
}

// noteAsked records that the eviction of a pod, or the suspension of a job, with the given name was
// requested for t.
func (e *enforcement) noteAsked(t *tally, name string) {
	t.next.Enforced = e.s.Now
	i, asked := findAsked(t.next.Asked, name)
	t.next.Asked = slices.Clone(t.next.Asked)
	if asked {
		t.next.Asked[i].At = e.s.Now
	} else {
		t.next.Asked = slices.Insert(t.next.Asked, i, policy.AskedPod{Pod: name, At: e.s.Now})
	}
}

func findAsked(list []policy.AskedPod, name string) (int, bool) {
	return slices.BinarySearchFunc(list, name, func(a policy.AskedPod,
		name string) int {
		return cmp.Compare(a.Pod, name)
	})
}

// pause plans to suspend the job that used most, with all its pods. Pods outside of jobs cannot be
// suspended and are reported.
func (e *enforcement) pause(t *tally) {
	now := e.s.Now
	if next := t.next.Enforced.Add(e.cfg.Pace); t.next.Enforced != 0 && now < next {
		e.plan.Wake = min(e.plan.Wake, next)
		return
	}
	var jobs []suspect
	at := map[policy.WorkloadID]int{} // by workload, index in jobs
	others := 0
	e.suspects(t, func(x suspect) {
		if x.workload == policy.None || e.s.Workloads[x.workload].Kind != policy.KindJob {
			others++
			return
		}
		w := &e.s.Workloads[x.workload]
		if _, asked := findAsked(t.next.Asked, w.Name); asked || w.Suspended {
			return
		}
		i, known := at[x.workload]
		if !known {
			i, at[x.workload] = len(jobs), len(jobs)
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

// suspend adds the suspension of the first of jobs to the plan.
func (e *enforcement) suspend(t *tally, jobs []suspect) {
	x := &jobs[0]
	why := policy.Why{Reason: policy.ReasonBudget, Before: x.now.cost,
		Text: fmt.Sprintf("%s: %s; the pods of this job used the most, %.2f device-hours for %s",
			t.budget.Name, t.state(), x.use.hours(), x.use.cost.Short())}
	if len(jobs) > 1 {
		why.RunnerUp = fmt.Sprintf("%s, %.2f device-hours for %s", jobs[1].name, jobs[1].use.hours(),
			jobs[1].use.cost.Short())
		e.plan.Wake = min(e.plan.Wake, e.s.Now.Add(max(e.cfg.Pace, e.cfg.Soonest)))
	}
	e.plan.Pauses = append(e.plan.Pauses, policy.Pause{Workload: x.workload, Budget: t.budget.Name, Paused: true,
		Why: why})
	e.noteAsked(t, x.name)
}

// resume resumes all jobs that were suspended for a budget, except those that a closed budget that
// suspends jobs counts. The jobs themselves record that they were suspended, so that no job is
// forgotten even if its budget is gone.
func (e *enforcement) resume() {
	var jobs []bool // by workload, whether a budget keeps it suspended
	for t, list := range e.index.of {
		w := e.s.Templates[t].Workload
		if w == policy.None || !slices.ContainsFunc(list, func(c match) bool { return e.tallies[c.at].suspends() }) {
			continue
		}
		if jobs == nil {
			jobs = make([]bool, len(e.s.Workloads))
		}
		jobs[w] = true
	}
	for i := range e.s.Workloads {
		w := &e.s.Workloads[i]
		if !paused(*w) || jobs != nil && jobs[i] {
			continue
		}
		state := "the budget was deleted"
		if k, found := e.find(w.PausedBy); found {
			state = e.tallies[k].resumes()
		}
		e.plan.Pauses = append(e.plan.Pauses, policy.Pause{Workload: policy.WorkloadID(i), Budget: w.PausedBy,
			Why: policy.Why{
				Reason: policy.ReasonBudget, Text: fmt.Sprintf("%s: %s, so the job resumes from its last checkpoint",
					w.PausedBy, state),
			}})
	}
}

// suspends reports whether t keeps suspended jobs suspended.
func (t *tally) suspends() bool { return (t.over || t.closed) && t.budget.Action == policy.BudgetPause }

// resumes returns a text about why t keeps no jobs suspended.
func (t *tally) resumes() string {
	switch {
	case t.budget.Invalid:
		return "the budget is not valid"
	case t.budget.Action != policy.BudgetPause:
		return fmt.Sprintf("its action is %v", t.budget.Action)
	case t.suspends():
		return "it does not count the job"
	}
	return t.state()
}

// find returns the index of a budget in the tallies, and whether it was found.
func (e *enforcement) find(budget string) (int, bool) {
	return slices.BinarySearchFunc(e.tallies, budget, func(t tally, name string) int {
		return cmp.Compare(t.budget.Name,
			name)
	})
}

// forget removes from the memory of t the requests that may be repeated.
func (e *enforcement) forget(t *tally) {
	again := func(a policy.AskedPod) bool { return e.s.Now >= a.At.Add(e.cfg.Retry) }
	if !slices.ContainsFunc(t.next.Asked, again) {
		return
	}
	if t.next.Asked = slices.DeleteFunc(slices.Clone(t.next.Asked), again); len(t.next.Asked) == 0 {
		t.next.Asked = nil
	}
}
