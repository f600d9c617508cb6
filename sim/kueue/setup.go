package kueue

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// None is an index or limit that is not set.
const None = -1

// A Setup is what an administrator configures: flavors, cohorts and ClusterQueues. Resources are
// numbers below Resources.
type Setup struct {
	Resources int

	// Pods is the resource "pods", or None. A workload requests its number of pods of it in queues
	// that cover it.
	Pods int

	Flavors []Flavor
	Cohorts []Cohort
	Queues  []Queue
}

// A Flavor is a ResourceFlavor: a kind of nodes.
type Flavor struct {
	Name        string
	Labels      []policy.Label
	Taints      []policy.Taint
	Tolerations []policy.Toleration
}

// A Cohort lets queues and other cohorts borrow from each other.
type Cohort struct {
	Name   string
	Parent int // None at the root of a tree
	Quotas []Quota
}

// A Queue is a ClusterQueue.
type Queue struct {
	Name   string
	Cohort int // or None
	Groups []Group
	Quotas []Quota

	// Strict means StrictFIFO: a workload that cannot be admitted holds up those behind it.
	Strict bool

	// Stopped means that its stopPolicy admits nothing. Its quota and usage count, but its workloads
	// are not preempted: Kueue decides without its inactive queues.
	Stopped bool

	// Within and Reclaim are preemption.withinClusterQueue and preemption.reclaimWithinCohort.
	Within, Reclaim Preemption

	// Borrow means preemption.borrowWithinCohort LowerPriority, limited to victims of at most the
	// priority BorrowMost if HasBorrowMost is set.
	Borrow, HasBorrowMost bool
	BorrowMost            int32

	// BorrowNext and PreemptNext mean that flavorFungibility.whenCanBorrow and whenCanPreempt are
	// TryNextFlavor.
	BorrowNext, PreemptNext bool

	// PreferPreemption means that flavorFungibility.preference is PreemptionOverBorrowing.
	PreferPreemption bool
}

// A Group is a resource group: each of its flavors has a quota of each of its resources.
type Group struct {
	Resources []int
	Flavors   []int
}

// A Quota is a nominal quota of a resource in a flavor, with the most that may be borrowed beyond
// it and the most of it that may be lent; None if they are not limited.
type Quota struct {
	Flavor, Resource   int
	Nominal            int64
	Borrowing, Lending int64
}

// Preemption is a rule for which workloads may be preempted.
type Preemption uint8

// The rules of preemption.
const (
	Never Preemption = iota
	LowerPriority
	LowerOrNewerEqualPriority
	Any
)

// A Workload is what waits in a queue: the pods of a job that are admitted together.
type Workload struct {
	UID      string // breaks ties
	Queue    int
	Priority int32
	Created  policy.Time
	Sets     []PodSet
}

// A PodSet is a number of equal pods.
type PodSet struct {
	Count    int64
	Requests []int64 // of all pods together, by resource; 0 if it is not requested
	Template *policy.Template
}

// A pair numbers a resource in a flavor.
type pair = int

func (s *System) pairOf(flavor, resource int) pair { return flavor*s.Resources + resource }

// Compatible reports whether the pods of a template may run on nodes of a flavor, which is one of
// group g: they tolerate its taints, and of their node selector and required node affinity those
// requirements are met that concern labels of the group's flavors.
func (s *Setup) Compatible(g *Group, flavor int, t *policy.Template) bool {
	f := &s.Flavors[flavor]
	for i := range f.Taints {
		taint := &f.Taints[i]
		if taint.Effect != policy.PreferNoSchedule && !policy.Tolerates(t.Tolerations, taint) &&
			!policy.Tolerates(f.Tolerations, taint) {
			return false
		}
	}
	known := func(key string) bool {
		return slices.ContainsFunc(g.Flavors, func(other int) bool {
			_, has := policy.FindLabel(s.Flavors[other].Labels, key)
			return has
		})
	}
	for _, l := range t.NodeSelector {
		if value, has := policy.FindLabel(f.Labels, l.Key); known(l.Key) && (!has || value != l.Value) {
			return false
		}
	}
	met := len(t.Affinity) == 0
	for i := range t.Affinity {
		met = met || termMet(&t.Affinity[i], f, known)
	}
	return met
}

// termMet reports whether the requirements of a term that concern known labels are met.
func termMet(term *policy.NodeTerm, f *Flavor, known func(string) bool) bool {
	for i := range term.Labels {
		if r := &term.Labels[i]; known(r.Key) && !r.MetByLabels(f.Labels) {
			return false
		}
	}
	return true
}
