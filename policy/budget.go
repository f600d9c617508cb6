package policy

import (
	"cmp"
	"slices"
	"time"
)

// A BudgetAction is the action taken on pods whose budget is spent.
type BudgetAction uint8

// The actions. BudgetAlert only reports that the budget is spent. BudgetPause suspends jobs and
// BudgetEvict evicts pods; both close the gate first.
const (
	BudgetAlert BudgetAction = iota
	BudgetPause
	BudgetEvict
)

// String returns the name that manifests use.
func (a BudgetAction) String() string {
	return [...]string{"AlertOnly", "Pause", "Evict"}[a]
}

// A Budget limits how much of one resource the pods that it selects may use within a sliding window
// (a GPUBudget), as of Snapshot.Now.
type Budget struct {
	Name      string // "namespace/name"
	Namespace string

	// UID distinguishes the budget from another one of the same name. It is empty without an API
	// server.
	UID string `json:",omitempty"`

	// Created is the creation time of the object; zero without an API server. It may be after
	// Snapshot.Now, since clocks differ.
	Created Time `json:",omitempty"`

	// Invalid reports that the object exists but its specification cannot be read. Such a budget
	// limits nothing, and its history is kept. The fields below are zero.
	Invalid bool `json:",omitempty"`

	// Selector selects pods of Namespace. Only the selected pods that request Resource count.
	Selector Selector
	Resource string

	// GPUHours is the quota in device-hours, and Dollars the quota of what the devices cost.
	// HasGPUHours and HasDollars report which quotas are set. The budget is spent when either quota
	// is.
	GPUHours    float64
	Dollars     Money
	HasGPUHours bool
	HasDollars  bool

	// Window is the length of the sliding window.
	Window time.Duration

	// LiveObjects counts a pod only while it exists: the usage of a deleted pod is forgotten.
	LiveObjects bool

	Action BudgetAction

	// OverQuotaDelay is how long the budget must be spent before Action is taken.
	OverQuotaDelay time.Duration

	// PodGrace is the grace period of an evicted pod if HasPodGrace is set; otherwise the pod's own
	// grace period applies.
	PodGrace    time.Duration
	HasPodGrace bool

	// Gate closes admission as soon as the budget is spent. Pause and Evict close it in any case
	// when they start.
	Gate bool

	// Closed reports whether admission is closed now.
	Closed bool
}

// Matches reports whether s selects an object with the given labels.
func (s *Selector) Matches(labels []Label) bool {
	if s.Everything {
		return true
	}
	for i := range s.Requirements {
		if !s.Requirements[i].MetByLabels(labels) {
			return false
		}
	}
	return len(s.Requirements) > 0
}

// Counts returns how much of the budget's resource one pod of t uses while it occupies a node, in
// thousandths of a device (of a core for "cpu"). It returns 0 if the budget does not select the
// pod.
func (b *Budget) Counts(t *Template) int64 {
	if t.Namespace != b.Namespace {
		return 0
	}
	n := b.of(&t.Requests, t.GPUResource)
	for _, d := range t.Devices {
		if d.Resource == b.Resource {
			n += d.Amount
		}
	}
	if n <= 0 || !b.Selector.Matches(t.Labels) {
		return 0
	}
	return n
}

// Share returns n, in thousandths of a device of the budget's resource, as a share of what node has
// of that resource, in [0, 1]. A node may show fewer devices than its instance type has, since it
// offers them as slices or by resource claims; the devices of the type count then.
func (b *Budget) Share(n int64, node *Node, of *InstanceType) float64 {
	all := b.of(&node.Allocatable, node.GPUResource)
	if b.Resource != "cpu" {
		all = max(all, b.of(&of.Allocatable, of.GPUResource))
	}
	if all <= 0 {
		return 0
	}
	return min(1, float64(n)/float64(all))
}

// of returns the amount of the budget's resource in r, in thousandths.
func (b *Budget) of(r *Resources, gpuResource string) int64 {
	switch b.Resource {
	case "cpu":
		return r.CPU
	case gpuResource:
		return r.GPU * 1000
	}
	return 0
}

// A BudgetMemory is the history of one budget: its ledger and the actions taken for it.
type BudgetMemory struct {
	Name string

	// UID is the UID of the budget. A budget of the same name with another UID has its own history.
	UID string `json:",omitempty"`

	// Absent is the time since which no snapshot has contained the budget; zero while snapshots
	// contain it. Its history is kept for some time, since an object missing from a cache may still
	// exist.
	Absent Time `json:",omitempty"`

	// Buckets is the ledger in ascending order of Hour. It has no buckets for hours without use or
	// for hours that have left the window.
	Buckets []BudgetBucket

	// Counted is the time up to which use has been booked; zero if none has been booked.
	Counted Time

	// Used is the use within the window as of the last decision, in thousandths of a device ×
	// milliseconds. Cost is the cost of that use.
	Used int64
	Cost Money

	// DevicePrice is the price of a device per hour when the budget's pods were last seen on nodes
	// with a price; 0 if they never were.
	DevicePrice Money

	// Over is the time since which the budget has been spent; zero while it is not spent.
	Over Time

	// Closed reports whether the last order to the gate was to close. Ordered is when the gate was
	// last ordered to change.
	Closed  bool
	Ordered Time

	// Enforced is when a pod was last evicted or a job last suspended for the budget. Asked are the
	// recent requests to evict pods and to suspend jobs, in ascending order of Pod.
	Enforced Time
	Asked    []AskedPod
}

// A BudgetBucket is the use of a budget by its pods within one hour of UTC.
type BudgetBucket struct {
	Hour Time // the start of the hour

	// Used is in thousandths of a device × milliseconds.
	Used int64
	Cost Money
}

// An AskedPod is a request to delete a pod or to suspend a job, with its time.
type AskedPod struct {
	Pod string // "namespace/name"
	At  Time
}

// Budget returns the history of the budget called name, or nil if it has no history. Callers must
// not change it.
func (m *Memory) Budget(name string) *BudgetMemory {
	i, found := slices.BinarySearchFunc(m.Budgets, name, func(b BudgetMemory,
		name string) int {
		return cmp.Compare(b.Name, name)
	})
	if !found {
		return nil
	}
	return &m.Budgets[i]
}
