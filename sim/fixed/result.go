package fixed

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
)

// A Result describes where the pods of a cluster were placed.
type Result struct {
	// Nodes is the number of nodes, EmptyNodes the number of nodes without a pod.
	Nodes      int `json:"nodes"`
	EmptyNodes int `json:"empty_nodes"`

	// Pods is the number of pods. Running pods were on a node of the input, Scheduled pods were
	// placed on one, and Unscheduled pods have none. Notes mention the other pods.
	Pods        int `json:"pods"`
	Running     int `json:"running"`
	Scheduled   int `json:"scheduled"`
	Unscheduled int `json:"unscheduled"`

	// Pending are the pods without a node, grouped by requests and reason.
	Pending []Pending `json:"pending,omitempty"`

	// Preempted are the names of the preempted pods, in order. Those that a workload creates again
	// are also scheduled or pending.
	Preempted []string `json:"preempted,omitempty"`

	// Usage has one entry for each resource.
	Usage []Usage `json:"usage"`

	// Bindings are the nodes of the scheduled pods, in the order of the input.
	Bindings []Binding `json:"bindings,omitempty"`

	// Notes describe assumptions and pods that were left out.
	Notes []string `json:"notes,omitempty"`
}

// Pending is a group of pods that no node accepts, for the same reason.
type Pending struct {
	Pods     []string          `json:"pods"`
	Requests map[string]string `json:"requests"` // of each pod
	Reason   string            `json:"reason"`
}

// A Usage is the requested amount of a resource.
type Usage struct {
	Resource    string  `json:"resource"`
	Requested   string  `json:"requested"`
	Allocatable string  `json:"allocatable"`
	Share       float64 `json:"share"` // fraction of Allocatable, usually in [0, 1]
}

// A Binding is the node of a pod.
type Binding struct {
	Pod  string `json:"pod"`
	Node string `json:"node"`
}

func (r *run) result() *Result {
	x := &Result{Nodes: len(r.nodes), Pods: len(r.pods), Preempted: r.preempted, Pending: r.reasons(), Usage: r.usage()}
	for n := range r.nodes {
		if len(r.space.Pods(policy.NodeID(n))) == 0 {
			x.EmptyNodes++
		}
	}
	for i := range r.pods {
		p := &r.pods[i]
		switch r.placed[i] {
		case running:
			x.Running++
		case waiting, daemon:
			if p.Node != policy.None {
				x.Scheduled++
				x.Bindings = append(x.Bindings, Binding{p.Name, r.nodes[p.Node].Name})
			}
		case elsewhere, others, gated, gone:
		}
	}
	for i := range x.Pending {
		x.Unscheduled += len(x.Pending[i].Pods)
	}
	for _, what := range slices.Sorted(maps.Keys(r.templates.notes)) {
		pods := r.templates.notes[what]
		x.Notes = append(x.Notes, fmt.Sprintf("%s: %s", what, some(pods)))
	}
	if r.finished > 0 {
		x.Notes = append(x.Notes, figures.Count(r.finished, "pod")+" finished, and not counted")
	}
	return x
}

// some lists the first names of many.
func some(names []string) string {
	const shown = 5
	text := names[0]
	for _, name := range names[1:min(shown, len(names))] {
		text += ", " + name
	}
	if more := len(names) - shown; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// usage returns the total requests of the pods on nodes, by resource. Resources that every node has
// come first.
func (r *run) usage() (out []Usage) {
	requested, allocatable := map[corev1.ResourceName]int64{}, map[corev1.ResourceName]int64{}
	for i := range r.nodes {
		n := policy.NodeID(i)
		all, used := r.space.Allocatable(n), r.space.Requested(n)
		for name, x := range map[corev1.ResourceName][2]int64{
			corev1.ResourceCPU: {used.CPU, all.CPU}, corev1.ResourceMemory: {used.Memory, all.Memory},
			corev1.ResourceEphemeralStorage: {used.Storage, all.Storage}, corev1.ResourcePods: {used.Pods, all.Pods},
		} {
			requested[name] += x[0]
			allocatable[name] += x[1]
		}
		for k, name := range r.templates.resources {
			q := r.nodes[i].extended[name]
			requested[name] += q.Value() - r.space.FreeExtended(n, k)
			allocatable[name] += q.Value()
		}
	}
	names := slices.SortedFunc(maps.Keys(allocatable), func(a, b corev1.ResourceName) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
	})
	for _, name := range names {
		if allocatable[name] == 0 && requested[name] == 0 {
			continue
		}
		u := Usage{Resource: string(name), Requested: quantity(name, requested[name]),
			Allocatable: quantity(name, allocatable[name])}
		if allocatable[name] > 0 {
			u.Share = float64(requested[name]) / float64(allocatable[name])
		}
		out = append(out, u)
	}
	return out
}

// rank returns the sort rank of a resource. Resources that every node has come first.
func rank(name corev1.ResourceName) int {
	switch name {
	case corev1.ResourceCPU:
		return 0
	case corev1.ResourceMemory:
		return 1
	case corev1.ResourceEphemeralStorage:
		return 2
	case corev1.ResourcePods:
		return 3
	}
	return 4
}

// quantity formats an amount as in manifests. CPU is in milli-CPU.
func quantity(name corev1.ResourceName, n int64) string {
	switch name {
	case corev1.ResourceCPU:
		return resource.NewMilliQuantity(n, resource.DecimalSI).String()
	case corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return resource.NewQuantity(n, resource.BinarySI).String()
	}
	return resource.NewQuantity(n, resource.DecimalSI).String()
}
