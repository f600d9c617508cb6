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

// A Result is what became of the pods of a cluster.
type Result struct {
	// Nodes is the number of nodes, and EmptyNodes of those without a pod.
	Nodes      int `json:"nodes"`
	EmptyNodes int `json:"empty_nodes"`

	// Pods is the number of pods: Running had a node of the input, Scheduled found one, and Unscheduled
	// has none. The others are in Notes.
	Pods        int `json:"pods"`
	Running     int `json:"running"`
	Scheduled   int `json:"scheduled"`
	Unscheduled int `json:"unscheduled"`

	// Pending are the pods without a node, those that are alike together.
	Pending []Pending `json:"pending,omitempty"`

	// Preempted are the pods that ended for others, in order; those that a workload creates again are
	// scheduled or pending too.
	Preempted []string `json:"preempted,omitempty"`

	// Usage is by resource.
	Usage []Usage `json:"usage"`

	// Bindings are the nodes of the pods that found one, in the order of the input.
	Bindings []Binding `json:"bindings,omitempty"`

	// Notes say what was assumed or left out.
	Notes []string `json:"notes,omitempty"`
}

// Pending are pods that no node takes, for one reason.
type Pending struct {
	Pods     []string          `json:"pods"`
	Requests map[string]string `json:"requests"` // of each
	Reason   string            `json:"reason"`
}

// A Usage is how much of a resource is requested.
type Usage struct {
	Resource    string  `json:"resource"`
	Requested   string  `json:"requested"`
	Allocatable string  `json:"allocatable"`
	Share       float64 `json:"share"` // of all that is allocatable
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

// some names the first of many.
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

// usage sums up what the pods on nodes request, resources that every node has first.
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

// rank orders resources: those that every node has come first.
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

// quantity writes an amount as manifests do.
func quantity(name corev1.ResourceName, n int64) string {
	switch name {
	case corev1.ResourceCPU:
		return resource.NewMilliQuantity(n, resource.DecimalSI).String()
	case corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return resource.NewQuantity(n, resource.BinarySI).String()
	}
	return resource.NewQuantity(n, resource.DecimalSI).String()
}
