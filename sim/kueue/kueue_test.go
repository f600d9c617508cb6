package kueue

import (
	"fmt"
	"slices"
	"testing"

	"github.com/spotter-dev/spotter/policy"
)

// two returns two queues, and a cohort that may be set for them. Each has this quota of one resource in the
// flavor spot, and 10 of it in on-demand.
func two(q Quota) Setup {
	s := Setup{Resources: 1, Pods: None, Cohorts: []Cohort{{Name: "all", Parent: None}},
		Flavors: []Flavor{{Name: "spot", Taints: []policy.Taint{{Key: "spot", Effect: policy.NoSchedule}}},
			{Name: "on-demand", Labels: []policy.Label{{Key: "tier", Value: "b"}}}}}
	for i := range 2 {
		s.Queues = append(s.Queues, Queue{Name: fmt.Sprint(i), Cohort: None, Groups: []Group{{Resources: []int{0}, Flavors: []int{0, 1}}},
			Quotas: []Quota{q, {Flavor: 1, Nominal: 10, Borrowing: None, Lending: None}}})
	}
	return s
}

var tolerant = &policy.Template{Tolerations: []policy.Toleration{{Key: "spot", Exists: true}}}

// submit adds a workload of one pod.
func submit(s *System, queue int, v int64, priority int32, t *policy.Template) ID {
	n := len(s.workloads)
	return s.Submit(Workload{UID: fmt.Sprint(n), Queue: queue, Priority: priority, Created: policy.Time(n),
		Sets: []PodSet{{Count: 1, Requests: []int64{v}, Template: t}}})
}

// expect runs a cycle and compares its outcomes, of which an admission names the flavor.
func expect(t *testing.T, s *System, what string, want ...string) {
	t.Helper()
	var got []string
	for _, d := range s.Cycle(100) {
		text := fmt.Sprintf("%d %v", d.Workload, d.Outcome)
		if d.Outcome == Admitted {
			text += " " + s.Setup.Flavors[d.Flavors[0][0]].Name
		}
		for _, v := range d.Victims {
			text += fmt.Sprintf(" %d %v", v.Workload, v.Why)
		}
		got = append(got, text)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

// TestFlavors: workloads take the first flavor that they tolerate and that has quota.
func TestFlavors(t *testing.T) {
	s := New(two(Quota{Nominal: 4, Borrowing: None, Lending: None}))
	submit(s, 0, 4, 0, tolerant)
	submit(s, 0, 4, 0, tolerant)
	submit(s, 0, 4, 0, &policy.Template{})
	elsewhere := &policy.Template{NodeSelector: []policy.Label{{Key: "tier", Value: "a"}, {Key: "other", Value: "x"}}}
	submit(s, 0, 1, 0, elsewhere)
	expect(t, s, "spot is free", "0 admitted spot")
	expect(t, s, "spot is full", "1 admitted on-demand")
	expect(t, s, "spot is tainted", "2 admitted on-demand")
	expect(t, s, "no flavor has the label", "3 does not fit")
	expect(t, s, "nothing waits to be tried")
}

// TestBorrowing: a queue borrows up to its limit what the other lends.
func TestBorrowing(t *testing.T) {
	setup := two(Quota{Nominal: 4, Borrowing: 2, Lending: 1})
	for i := range setup.Queues {
		setup.Queues[i].Cohort = 0
		setup.Queues[i].Groups[0].Flavors = []int{0}
		setup.Queues[i].Quotas = setup.Queues[i].Quotas[:1]
	}
	s := New(setup)
	for _, c := range []struct {
		queue     int
		available int64
	}{{0, 5}, {1, 5}} {
		if got := s.available(c.queue, 0); got != c.available {
			t.Errorf("queue %d can use %d, want %d: 4 of its own, and 1 that the other lends", c.queue, got, c.available)
		}
	}
	submit(s, 0, 6, 0, tolerant)
	submit(s, 0, 5, 0, tolerant)
	expect(t, s, "more than there can be", "0 does not fit")
	expect(t, s, "borrows one", "1 admitted spot")
	if got := s.available(1, 0); got != 3 {
		t.Errorf("the lender can use %d, want the 3 that it does not lend", got)
	}
	submit(s, 1, 4, 9, tolerant)
	expect(t, s, "lent quota is not reclaimed", "2 finds no victims")
}

// TestPreemption: quota is reclaimed from who borrows it, and from lower priorities of the same
// queue. The preemptor waits until the victim has lost its quota, and is tried before others.
func TestPreemption(t *testing.T) {
	setup := two(Quota{Nominal: 4, Borrowing: None, Lending: None})
	for i := range setup.Queues {
		q := &setup.Queues[i]
		q.Cohort, q.Reclaim, q.Within = 0, Any, LowerPriority
		q.Groups[0].Flavors, q.Quotas = []int{0}, q.Quotas[:1]
	}
	s := New(setup)
	submit(s, 0, 4, 0, tolerant)
	submit(s, 0, 4, 5, tolerant)
	expect(t, s, "by priority", "1 admitted spot")
	expect(t, s, "borrows", "0 admitted spot")
	submit(s, 1, 2, 0, tolerant)
	expect(t, s, "the lowest priority of the borrower", "2 preempts 0 InCohortReclamation")
	submit(s, 1, 1, 9, tolerant)
	s.Requeue(0)
	s.Retry(0)
	expect(t, s, "the preemptor first, which borrows nothing", "2 admitted spot", "0 skipped")
	expect(t, s, "then its successor", "3 admitted spot", "0 finds no victims")
	submit(s, 0, 1, 9, tolerant)
	submit(s, 0, 4, 9, tolerant)
	expect(t, s, "what is left", "4 admitted spot")
	expect(t, s, "within the queue", "5 preempts 1 InClusterQueue")
}

// TestStrategies: with StrictFIFO a workload that does not fit holds up the others.
func TestStrategies(t *testing.T) {
	for _, strict := range []bool{false, true} {
		setup := two(Quota{Nominal: 4, Borrowing: None, Lending: None})
		setup.Queues = setup.Queues[:1]
		setup.Queues[0].Strict = strict
		setup.Queues[0].Groups[0].Flavors = []int{0}
		s := New(setup)
		submit(s, 0, 3, 0, tolerant)
		submit(s, 0, 3, 0, tolerant)
		submit(s, 0, 1, 0, tolerant)
		expect(t, s, "first", "0 admitted spot")
		expect(t, s, "second", "1 finds no victims")
		if strict {
			expect(t, s, "held up", "1 finds no victims")
			continue
		}
		expect(t, s, "passes", "2 admitted spot")
		s.Finish(0)
		expect(t, s, "parked until Retry")
		s.Retry(0)
		expect(t, s, "quota is free", "1 admitted spot")
	}
}

// TestShrinkAndHold: quota of pods that are done is free, and a held workload comes back as new.
func TestShrinkAndHold(t *testing.T) {
	setup := two(Quota{Nominal: 4, Borrowing: None, Lending: None})
	setup.Queues = setup.Queues[:1]
	setup.Queues[0].Groups[0].Flavors = []int{0}
	s := New(setup)
	s.Submit(Workload{UID: "0", Sets: []PodSet{{Count: 4, Requests: []int64{4}, Template: tolerant}}})
	expect(t, s, "all", "0 admitted spot")
	s.Shrink(0, 0, 1)
	submit(s, 0, 3, 0, tolerant)
	expect(t, s, "three are free", "1 admitted spot")
	s.Hold(1, 50)
	submit(s, 0, 2, 0, tolerant)
	expect(t, s, "held", "2 admitted spot")
	s.Resume(1)
	submit(s, 0, 1, 0, tolerant)
	expect(t, s, "older than the one that was held", "3 admitted spot")
	expect(t, s, "too large now", "1 finds no victims")
	if got := s.Usage(0, 0, 0); got != 4 {
		t.Errorf("4 are used in all, not %d", got)
	}
}

// one returns two queues of one cohort with this quota of one resource in one flavor.
func one(q Quota) Setup {
	s := two(q)
	for i := range s.Queues {
		s.Queues[i].Cohort = 0
		s.Queues[i].Groups[0].Flavors, s.Queues[i].Quotas = []int{0}, s.Queues[i].Quotas[:1]
	}
	return s
}

// four is a quota of 4 without limits.
var four = Quota{Nominal: 4, Borrowing: None, Lending: None}

// TestFungibility: whether a flavor that must be borrowed, or freed by preemption, ends the search for
// another, and which of the two is preferred.
func TestFungibility(t *testing.T) {
	for _, c := range []struct {
		what string
		set  func(q *Queue)
		want string
	}{
		{"borrows at once", func(*Queue) {}, "3 admitted spot"},
		{"preempts at once", func(q *Queue) { q.Cohort = None }, "3 preempts 0 InClusterQueue"},
		{"preempts in no later flavor", func(q *Queue) { q.Cohort, q.PreemptNext = None, true }, "3 preempts 0 InClusterQueue"},
		{"borrows rather than preempts", func(q *Queue) { q.BorrowNext, q.PreemptNext = true, true }, "3 admitted spot"},
		{"preempts rather than borrows", func(q *Queue) { q.BorrowNext, q.PreemptNext, q.PreferPreemption = true, true, true },
			"3 preempts 1 InClusterQueue"},
	} {
		setup := two(four)
		setup.Queues[0].Cohort, setup.Queues[1].Cohort, setup.Queues[0].Within = 0, 0, LowerPriority
		c.set(&setup.Queues[0])
		s := New(setup)
		for _, x := range []struct {
			queue, flavor int
			v             int64
		}{{0, 0, 4}, {0, 1, 10}, {1, 1, 10}} {
			s.Reserve(submit(s, x.queue, x.v, 0, tolerant), [][]int{{x.flavor}}, 0)
		}
		submit(s, 0, 4, 9, tolerant)
		expect(t, s, c.what, c.want)
	}
	for next, want := range map[bool]string{false: "1 admitted spot", true: "1 admitted on-demand"} {
		setup := two(four)
		setup.Queues[0].Cohort, setup.Queues[1].Cohort, setup.Queues[0].BorrowNext = 0, 0, next
		s := New(setup)
		s.Reserve(submit(s, 0, 4, 0, tolerant), [][]int{{0}}, 0)
		submit(s, 0, 4, 0, tolerant)
		expect(t, s, "spot is lent, and on-demand is its own", want)
	}
}

// TestBorrowWithinCohort: a queue preempts a borrower although it borrows itself, if the victim has a
// lower priority, at most the threshold.
func TestBorrowWithinCohort(t *testing.T) {
	for _, c := range []struct {
		borrow, limited bool
		most            int32
		want            string
	}{{false, false, 0, "2 does not fit"}, {true, false, 0, "2 preempts 1 InCohortReclaimWhileBorrowing"},
		{true, true, 0, "2 preempts 1 InCohortReclaimWhileBorrowing"}, {true, true, -1, "2 finds no victims"}} {
		setup := one(four)
		setup.Cohorts[0].Quotas = []Quota{four}
		q := &setup.Queues[0]
		q.Reclaim, q.Borrow, q.HasBorrowMost, q.BorrowMost = LowerPriority, c.borrow, c.limited, c.most
		s := New(setup)
		s.Reserve(submit(s, 1, 4, 0, tolerant), [][]int{{0}}, 1)
		s.Reserve(submit(s, 1, 4, 0, tolerant), [][]int{{0}}, 2)
		submit(s, 0, 6, 9, tolerant)
		expect(t, s, "wants 6 of 4 that are free, 2 of them borrowed", c.want)
	}
}

// TestNewerEqualPriority: LowerOrNewerEqualPriority preempts a workload of the same priority that was
// created later.
func TestNewerEqualPriority(t *testing.T) {
	for rule, want := range map[Preemption]string{LowerPriority: "0 finds no victims",
		LowerOrNewerEqualPriority: "0 preempts 1 InClusterQueue"} {
		setup := one(four)
		setup.Queues = setup.Queues[:1]
		setup.Queues[0].Within = rule
		s := New(setup)
		submit(s, 0, 4, 0, tolerant)
		s.Reserve(submit(s, 0, 4, 0, tolerant), [][]int{{0}}, 0)
		expect(t, s, "the older waits", want)
	}
}

// TestStopped: the workloads of a stopped queue are neither admitted nor preempted, and count.
func TestStopped(t *testing.T) {
	for stopped, want := range map[bool][]string{true: {"2 finds no victims"},
		false: {"2 preempts 0 InCohortReclamation", "1 finds no victims"}} {
		setup := one(four)
		setup.Queues[0].Reclaim, setup.Queues[1].Stopped = Any, stopped
		s := New(setup)
		s.Reserve(submit(s, 1, 8, 0, tolerant), [][]int{{0}}, 0)
		submit(s, 1, 1, 0, tolerant)
		submit(s, 0, 4, 0, tolerant)
		expect(t, s, fmt.Sprintf("stopped %v", stopped), want...)
	}
}

// TestTree: a queue borrows of its cohort's siblings, of which one lends 1 of its 4, and of the quota
// of the root: 4, 1 and 2.
func TestTree(t *testing.T) {
	setup := one(four)
	setup.Cohorts = []Cohort{{Name: "root", Parent: None, Quotas: []Quota{{Nominal: 2, Borrowing: None, Lending: None}}},
		{Name: "a", Parent: 0}, {Name: "b", Parent: 0, Quotas: []Quota{{Borrowing: None, Lending: 1}}}}
	setup.Queues[0].Cohort, setup.Queues[1].Cohort = 1, 2
	s := New(setup)
	submit(s, 0, 8, 0, tolerant)
	submit(s, 0, 7, 0, tolerant)
	submit(s, 1, 4, 0, tolerant)
	expect(t, s, "the second has its own 4", "0 does not fit", "2 admitted spot")
	expect(t, s, "7 of the 6 that are left", "1 does not fit")
	s.Finish(2)
	s.Retry(1)
	expect(t, s, "8 of 7", "0 does not fit")
	expect(t, s, "7 of 7", "1 admitted spot")
	if got := s.available(1, 0); got != 3 {
		t.Errorf("the second can use %d, want the 3 that it does not lend", got)
	}
}

// TestPodsAndSets: queues that cover "pods" count them, and the pod sets of a workload add up.
func TestPodsAndSets(t *testing.T) {
	setup := one(four)
	setup.Queues = setup.Queues[:1]
	setup.Resources, setup.Pods = 2, 1
	q := &setup.Queues[0]
	q.Groups[0].Resources, q.Quotas = []int{0, 1}, append(q.Quotas, Quota{Resource: 1, Nominal: 3, Borrowing: None, Lending: None})
	s := New(setup)
	for _, counts := range [][]int64{{4}, {2, 2}, {2, 1}} {
		w := Workload{UID: fmt.Sprint(counts), Created: policy.Time(len(s.workloads))}
		for _, n := range counts {
			w.Sets = append(w.Sets, PodSet{Count: n, Requests: []int64{n, 0}, Template: tolerant})
		}
		s.Submit(w)
	}
	expect(t, s, "4 pods of 3", "0 does not fit")
	expect(t, s, "2 and 2 of 3", "1 does not fit")
	expect(t, s, "2 and 1 of 3", "2 admitted spot")
	if cpu, pods := s.Usage(0, 0, 0), s.Usage(0, 0, 1); cpu != 3 || pods != 3 {
		t.Errorf("%d and %d pods are used, want 3 and 3", cpu, pods)
	}
}

// TestPreferredFit: of a resource that is lent and finds no victims and one that can be borrowed, the
// latter represents the flavor where preemption is preferred, since it borrows further. The workload
// then counts as one that fits, and is tried again at once instead of with free quota.
func TestPreferredFit(t *testing.T) {
	for prefers, want := range map[bool]string{false: "1 finds no victims", true: "1 skipped"} {
		setup := one(four)
		setup.Resources = 2
		for i, cpu := range []int64{0, 4} {
			q := &setup.Queues[i]
			q.Groups[0].Resources = []int{0, 1}
			q.Quotas = []Quota{{Nominal: cpu, Borrowing: None, Lending: None}, {Resource: 1, Nominal: 4, Borrowing: None, Lending: None}}
			q.PreferPreemption = prefers
		}
		s := New(setup)
		add := func(queue int, requests ...int64) ID {
			return s.Submit(Workload{UID: fmt.Sprint(queue), Queue: queue, Sets: []PodSet{{Count: 1, Requests: requests, Template: tolerant}}})
		}
		s.Reserve(add(1, 0, 8), [][]int{{None, 0}}, 0)
		add(0, 1, 4)
		expect(t, s, fmt.Sprintf("prefers preemption: %v", prefers), want)
	}
}
