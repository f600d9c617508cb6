package history

import (
	"cmp"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// A History is what a cluster did from From to To.
type History struct {
	From, To policy.Time

	// Step is the interval of observations. Something shorter may be missing, and an end that no
	// source states is known to within half of it.
	Step time.Duration

	// Workloads are services, ascending by name and kind. Jobs are workloads that run to
	// completion, ascending by name.
	Workloads []Workload
	Jobs      []Job

	// Nodes are the nodes that existed at any time, ascending by their start and name.
	Nodes []Node

	// Placed are the pods that ran on nodes at From, where known, without those of DaemonSets. A
	// node may have several of one workload.
	Placed []Placed

	// Reclaims counts the Spot nodes that the provider reclaimed, and Evictions the evicted pods.
	Reclaims, Evictions Count

	// Disruptions are the nodes that Karpenter disrupted for other reasons, those with the most
	// nodes first.
	Disruptions []Disruption

	// Dollars is the cost of the nodes as reported by the source. It is valid if HasDollars is
	// true. Bill describes the bill that it comes from and what the bill covers; it is empty if
	// there was no bill.
	Dollars    float64
	HasDollars bool
	Bill       string

	// Uncertain describes what the source does not contain, one sentence each.
	Uncertain []string
}

// A Placed is a number of pods of one workload on a node.
type Placed struct {
	Node, Workload string // Workload is "namespace/name"
	Kind           policy.WorkloadKind
	N              int32
}

// Compare orders by node, then by workload.
func (p Placed) Compare(q Placed) int {
	return cmp.Or(cmp.Compare(p.Node, q.Node), cmp.Compare(p.Workload, q.Workload), cmp.Compare(p.Kind, q.Kind))
}

// A Count is the number of occurrences of an event. Source names what counted them; it is empty if
// nothing did.
type Count struct {
	N      int64
	Source string

	// Hours are the Spot node-hours over which it was counted; 0 means the whole history.
	Hours float64
}

// A Disruption is the number of nodes that Karpenter disrupted for a reason such as underutilized.
type Disruption struct {
	Reason string
	N      int64
}

// Compare orders disruptions by their number, descending, and reason.
func (d Disruption) Compare(e Disruption) int {
	return cmp.Or(cmp.Compare(e.N, d.N), cmp.Compare(d.Reason, e.Reason))
}

// A Workload is a service: it requires a number of pods at all times.
type Workload struct {
	Name string // "namespace/name"
	Kind policy.WorkloadKind

	// Replicas are the changes of the desired number of pods, ascending by time. The first is at
	// From.
	Replicas []Change

	// Rollouts are the times at which a new version of a Deployment was rolled out, ascending.
	Rollouts []policy.Time

	Pod
}

// A Change is a number from an instant on.
type Change struct {
	At policy.Time
	N  int32
}

// A Pod is what is known about the pods of a workload. The zero value means that nothing is known.
type Pod struct {
	// Requests are the mean over the time in which pods existed, and Latest the last ones.
	// GPUResource is the name of the resource that GPU counts.
	Requests, Latest policy.Resources
	GPUResource      string

	// Start is the median time from being bound to being ready.
	Start time.Duration
}

// A Job is the jobs of one owner, or of similar names, with similar running times.
type Job struct {
	Name string // "namespace/name"; not unique

	// Runs are the start times of jobs, ascending. Took is the mean running time of a pod.
	Runs []policy.Time
	Took time.Duration

	// Parallelism and Completions are those of each run.
	Parallelism, Completions int32

	Pod
}

// A Node is the lifetime of a node.
type Node struct {
	Name string

	// Instance is the ID of its instance at the provider, the last element of its provider ID. It
	// is empty if unknown.
	Instance string

	From, To policy.Time // To is the end of the history for a node that still ran

	// Kind is nil if unknown.
	Kind *NodeKind
}

// A NodeKind is the labels that describe a node. Nodes with equal labels share one value.
type NodeKind struct{ Labels map[string]string }
