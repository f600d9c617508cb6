package history

import (
	"cmp"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// A History is what a cluster did from From to To.
type History struct {
	From, To policy.Time

	// Step is how often the source looked. What went on for less may be missing, and an
	// end that nothing states is known to half of it.
	Step time.Duration

	// Workloads are services, ascending by name and kind, Jobs what ran to an end,
	// ascending by name.
	Workloads []Workload
	Jobs      []Job

	// Nodes are those that were there at any time, ascending by their begin and name.
	Nodes []Node

	// Placed are the pods that ran on nodes at From, where known, without those of DaemonSets. A
	// node may have several of one workload.
	Placed []Placed

	// Reclaims are Spot nodes that the provider took, Evictions pods evicted.
	Reclaims, Evictions Count

	// Disruptions are the nodes that Karpenter gave up for other reasons, those with the most
	// nodes first.
	Disruptions []Disruption

	// Dollars is what the nodes cost by the source's account, where HasDollars. Bill says
	// which bill they are of and how much of it, empty where they are of none.
	Dollars    float64
	HasDollars bool
	Bill       string

	// Uncertain says what the source does not have, a sentence each.
	Uncertain []string
}

// A Placed is a number of pods of one workload on a node.
type Placed struct {
	Node, Workload string // "namespace/name"
	Kind           policy.WorkloadKind
	N              int32
}

// Compare orders what is placed by node, then workload.
func (p Placed) Compare(q Placed) int {
	return cmp.Or(cmp.Compare(p.Node, q.Node), cmp.Compare(p.Workload, q.Workload), cmp.Compare(p.Kind, q.Kind))
}

// A Count is how often something happened. Source names what counted it; it is empty
// where nothing did.
type Count struct {
	N      int64
	Source string

	// Hours are the Spot node-hours in which it was counted, 0 for all of the history.
	Hours float64
}

// A Disruption is how many nodes Karpenter gave up for one reason, such as underutilized.
type Disruption struct {
	Reason string
	N      int64
}

// Compare orders disruptions by their number, descending, and reason.
func (d Disruption) Compare(e Disruption) int {
	return cmp.Or(cmp.Compare(e.N, d.N), cmp.Compare(d.Reason, e.Reason))
}

// A Workload is a service: something that wants a number of pods at all times.
type Workload struct {
	Name string // "namespace/name"
	Kind policy.WorkloadKind

	// Replicas are the changes of how many were wanted, ascending; the first is at
	// From.
	Replicas []Change

	// Rollouts are when a new version of a Deployment was rolled out, ascending.
	Rollouts []policy.Time

	Pod
}

// A Change is the number that holds from an instant on.
type Change struct {
	At policy.Time
	N  int32
}

// A Pod is what is known of the pods of a workload. The zero value says that nothing is.
type Pod struct {
	// Requests are the mean over the time that pods were there, and Latest those at
	// its end. GPUResource is what GPU counts.
	Requests, Latest policy.Resources
	GPUResource      string

	// Start is the median time from being bound to being ready.
	Start time.Duration
}

// A Job is jobs of one owner, or of names that are alike, with about one running time.
type Job struct {
	Name string // "namespace/name"; several may have one

	// Runs are when one began, ascending. Took is the mean of how long a pod worked.
	Runs []policy.Time
	Took time.Duration

	// Parallelism and Completions are those of most runs.
	Parallelism, Completions int32

	Pod
}

// A Node is the life of one.
type Node struct {
	Name string

	// Instance is what its provider calls it, the last element of its provider ID; empty
	// where that is not known.
	Instance string

	From, To policy.Time // To is that of the history for one that went on

	// Kind is what it was; nil where that is not known.
	Kind *NodeKind
}

// A NodeKind is what nodes have in common: those of their labels that describe a node. Equal ones
// are one value.
type NodeKind struct{ Labels map[string]string }
