package policy

import (
	"cmp"
	"slices"
	"time"
)

// A BudgetAction is what is done to pods whose budget is spent.
type BudgetAction uint8

// The actions. BudgetAlert only says so; BudgetPause suspends jobs and
// BudgetEvict evicts pods, both behind a closed gate.
const (
	BudgetAlert BudgetAction = iota
	BudgetPause
	BudgetEvict
)

// String returns the name that manifests use.
func (a BudgetAction) String() string {
	return [...]string{"AlertOnly", "Pause", "Evict"}[a]
}

// A Budget bounds what the pods that it selects may use of one resource within
// a sliding window (a GPUBudget), as seen at Snapshot.Now.
type Budget struct {
	Name      string // "namespace/name"
	Namespace string

	// UID distinguishes it from another budget of its name; empty where there is
	// no API server.
	UID string `json:",omitempty"`

	// Created is when its object was made, zero where there is no API server. It may be
	// after Snapshot.Now, since clocks differ.
	Created Time `json:",omitempty"`

	// Invalid says that its object exists and that its specification cannot be
	// read: it bounds nothing, and what is remembered of it is kept. The fields
	// below are zero.
	Invalid bool `json:",omitempty"`

	// Selector chooses pods of Namespace; of these only the ones that request
	// Resource count.
	Selector Selector
	Resource string

	// GPUHours is the quota in devices × hours and Dollars that of what the
	// devices cost; HasGPUHours and HasDollars say which are set. The budget is
	// spent when one of them is.
	GPUHours    float64
	Dollars     Money
	HasGPUHours bool
	HasDollars  bool

	// Window is the length of the sliding window.
	Window time.Duration

	// LiveObjects counts only the pods that are there, as long as they are:
	// what a deleted pod used is forgotten.
	LiveObjects bool

	Action BudgetAction

	// OverQuotaDelay is how long the budget must be spent before Action.
	OverQuotaDelay time.Duration

	// PodGrace is the grace of an evicted pod where HasPodGrace says so, else
	// it has its own.
	PodGrace    time.Duration
	HasPodGrace bool

	// Gate closes admission as soon as the budget is spent. Pause and Evict
	// close it anyway, when they begin.
	Gate bool

	// Closed says that admission is closed now.
	Closed bool
}

// Matches reports whether s selects what carries labels.
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

// Counts returns what one pod of t uses of the budget's resource while it holds
// a node, in thousandths of a device (of a core for "cpu"); 0 when the budget
// does not select it.
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

// Share returns n thousandths of a device of the budget's resource as a part of
// what node has of it, in [0, 1]. Of a node that shows fewer devices than its instance
// type has, since it offers them as slices or by resource claims, those of the type count.
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

// of returns how much r holds of the budget's resource, in thousandths.
func (b *Budget) of(r *Resources, gpuResource string) int64 {
	switch b.Resource {
	case "cpu":
		return r.CPU
	case gpuResource:
		return r.GPU * 1000
	}
	return 0
}

// A BudgetMemory is what is remembered of one budget: its ledger, and what was
// done about it.
type BudgetMemory struct {
	Name string

	// UID is that of the budget; a budget of another UID has a history of its own.
	UID string `json:",omitempty"`

	// Absent is since when no snapshot has had the budget, zero while they have it.
	// Its history is kept for some time, since what is missing from a cache may exist.
	Absent Time `json:",omitempty"`

	// Buckets are the ledger, ascending by Hour; hours without use are left out,
	// and those that have left the window.
	Buckets []BudgetBucket

	// Counted is up to when use was booked, zero before the first time.
	Counted Time

	// Used and Cost are what was used within the window as of the last
	// decision, in thousandths of a device × milliseconds and in dollars.
	Used int64
	Cost Money

	// DevicePrice is what a device cost per hour when the budget's pods were
	// last seen on nodes with a price; 0 if they never were.
	DevicePrice Money

	// Over is since when the budget has been spent; zero while it is not.
	Over Time

	// Closed says that its gate was ordered to close, and Ordered when the gate
	// was last ordered to change.
	Closed  bool
	Ordered Time

	// Enforced is when a pod was last evicted or a job last suspended for it.
	// Asked are the pods that were lately asked to go and the jobs that were lately
	// to be suspended, ascending by Pod.
	Enforced Time
	Asked    []AskedPod
}

// A BudgetBucket is what the pods of a budget used within one hour of UTC.
type BudgetBucket struct {
	Hour Time // the start of the hour

	// Used is in thousandths of a device × milliseconds, Cost in dollars.
	Used int64
	Cost Money
}

// An AskedPod is a pod whose deletion was requested, or a job whose suspension was, and when.
type AskedPod struct {
	Pod string // "namespace/name"
	At  Time
}

// Budget returns what is remembered of the budget called name, nil if nothing
// is. It is not to be changed.
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
