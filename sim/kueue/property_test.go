package kueue

import (
	"fmt"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/policy"
)

// drawSetup draws two flavors, one resource, a tree of cohorts and queues.
func drawSetup(t *rapid.T) Setup {
	s := Setup{Resources: 1, Pods: None, Flavors: []Flavor{{Name: "spot"}, {Name: "on-demand"}}}
	limit := func(label string) int64 {
		if rapid.Bool().Draw(t, label+" limited") {
			return int64(rapid.IntRange(0, 4).Draw(t, label))
		}
		return None
	}
	quotas := func(top bool) (out []Quota) {
		for f := range s.Flavors {
			q := Quota{Flavor: f, Nominal: int64(rapid.IntRange(0, 6).Draw(t, "nominal")), Borrowing: None, Lending: None}
			if !top {
				q.Borrowing, q.Lending = limit("borrowing"), limit("lending")
			}
			out = append(out, q)
		}
		return out
	}
	for i := range rapid.IntRange(1, 3).Draw(t, "cohorts") {
		c := Cohort{Name: fmt.Sprint(i), Parent: rapid.IntRange(None, i-1).Draw(t, "parent")}
		if rapid.Bool().Draw(t, "quota of the cohort") {
			c.Quotas = quotas(c.Parent == None)
		}
		s.Cohorts = append(s.Cohorts, c)
	}
	for i := range rapid.IntRange(1, 4).Draw(t, "queues") {
		q := Queue{Name: fmt.Sprint(i), Cohort: rapid.IntRange(None, len(s.Cohorts)-1).Draw(t, "cohort"),
			Groups:  []Group{{Resources: []int{0}, Flavors: []int{0, 1}}},
			Strict:  rapid.Bool().Draw(t, "strict"),
			Within:  rapid.SampledFrom([]Preemption{Never, LowerPriority, LowerOrNewerEqualPriority}).Draw(t, "within"),
			Reclaim: rapid.SampledFrom([]Preemption{Never, LowerPriority, Any}).Draw(t, "reclaim"),
			Borrow:  rapid.Bool().Draw(t, "borrow"), BorrowNext: rapid.Bool().Draw(t, "borrow next"),
			PreemptNext: rapid.Bool().Draw(t, "preempt next"), PreferPreemption: rapid.Bool().Draw(t, "prefer preemption")}
		q.Quotas = quotas(q.Cohort == None)
		s.Queues = append(s.Queues, q)
	}
	return s
}

// check fails if usage is not the sum over admitted workloads, or exceeds what a queue may borrow, what
// a tree of cohorts has, or what a node lends of its own.
func check(t *rapid.T, s *System) {
	fresh := New(s.Setup)
	for _, x := range s.workloads {
		if x.phase == admitted || x.phase == evicting {
			fresh.put(x)
		}
	}
	for i := range s.nodes {
		n := &s.nodes[i]
		if !reflect.DeepEqual(n.usage, fresh.nodes[i].usage) {
			t.Fatalf("node %d uses %v, its workloads %v", i, n.usage, fresh.nodes[i].usage)
		}
		for p, used := range n.usage {
			if n.borrow[p] != None && used > n.quota[p]+n.borrow[p] {
				t.Fatalf("node %d uses %d of %d and %d that it may borrow", i, used, n.quota[p], n.borrow[p])
			}
			if n.parent == None && used > n.quota[p] {
				t.Fatalf("tree %d uses %d of %d", i, used, n.quota[p])
			}
			if left := s.available(i, p); left < n.free(p) {
				t.Fatalf("node %d can use %d, less than the %d that it does not lend", i, left, n.free(p))
			}
		}
	}
}

// TestQuotaHolds plays random workloads that come, finish and are preempted: quota holds after each
// cycle, the same workloads lead to the same decisions, and cycles end.
func TestQuotaHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		setup := drawSetup(t)
		s, twin := New(setup), New(setup)
		each := func(f func(*System)) { f(s); f(twin) }
		for step := range rapid.IntRange(1, 12).Draw(t, "steps") {
			for range rapid.IntRange(0, 3).Draw(t, "new") {
				queue, v := rapid.IntRange(0, len(setup.Queues)-1).Draw(t, "queue"), int64(rapid.IntRange(1, 6).Draw(t, "wants"))
				priority := int32(rapid.IntRange(0, 2).Draw(t, "priority"))
				each(func(s *System) {
					s.Submit(Workload{UID: fmt.Sprint(len(s.workloads)), Queue: queue, Priority: priority, Created: policy.Time(step),
						Sets: []PodSet{{Count: 1, Requests: []int64{v}, Template: tolerant}}})
				})
			}
			if n := len(s.workloads); n > 0 && rapid.Bool().Draw(t, "one finishes") {
				id := ID(rapid.IntRange(0, n-1).Draw(t, "which"))
				each(func(s *System) { s.Finish(id); s.Retry(s.workloads[id].Queue) })
			}
			for cycles := 0; ; cycles++ {
				now := policy.Time(step)
				decisions := s.Cycle(now)
				if again := twin.Cycle(now); !reflect.DeepEqual(decisions, again) {
					t.Fatalf("decisions %+v, and again %+v", decisions, again)
				}
				check(t, s)
				progress := false
				for _, d := range decisions {
					progress = progress || d.Outcome == Admitted || d.Parked
					for _, v := range d.Victims {
						if s.HasQuota(v.Workload) {
							t.Fatalf("workload %d is preempted and keeps its quota", v.Workload)
						}
						if s.workloads[v.Workload].phase == evicting {
							each(func(s *System) { s.Requeue(v.Workload); s.Retry(s.workloads[v.Workload].Queue) })
						}
					}
				}
				if !progress && cycles > 8 {
					break
				}
				if cycles > 200 {
					t.Fatal("the cycles do not end")
				}
			}
		}
	})
}
