package fixed

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
)

// filterReasons are the messages of kube-scheduler's filters about a node
// (pkg/scheduler/framework/plugins, Kubernetes 1.35).
var filterReasons = map[placement.Result]string{
	placement.Tainted:       "node(s) had untolerated taint(s)",
	placement.Unselected:    "node(s) didn't match Pod's node affinity/selector",
	placement.PortTaken:     "node(s) didn't have free ports for the requested pod ports",
	placement.ClaimTaken:    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod",
	placement.VolumesFull:   "node(s) exceed max volume count",
	placement.OtherZone:     "node(s) didn't match PersistentVolume's node affinity",
	placement.Skewed:        "node(s) didn't match pod topology spread constraints",
	placement.Lonely:        "node(s) didn't match pod affinity rules",
	placement.Repelled:      "node(s) didn't match pod anti-affinity rules",
	placement.RepelledByPod: "node(s) didn't satisfy existing pods anti-affinity rules",
}

const (
	cordonedReason = "node(s) were unschedulable"
	unpinnedReason = "node(s) didn't satisfy plugin(s) [NodeAffinity]"
	helplessReason = "Preemption is not helpful for scheduling"
	noVictims      = "No preemption victims found for incoming pod"
	afterFilters   = " no new claims to deallocate, preemption: "
)

// why returns the reason why a pod is pending, as in the message of kube-scheduler's PodScheduled
// condition.
func (r *run) why(id policy.PodID) string {
	if r.placed[id] == gated {
		return "Scheduling is blocked due to non-empty scheduling gates"
	}
	if n := r.Nominated(id); n != policy.None {
		return "nominated to " + r.nodes[n].Name
	}
	pinned, isPinned := r.pinnedTo(id)
	filters, preemption := map[string]int{}, map[string]int{}
	for i := range r.nodes {
		n := policy.NodeID(i)
		if isPinned && !slices.Contains(pinned, n) {
			filters[unpinnedReason]++
			preemption[helplessReason]++
			continue
		}
		reasons, resolvable := r.refusal(&r.pods[id], n)
		for _, reason := range reasons {
			filters[reason]++
		}
		for _, reason := range r.preemption(id, n, resolvable) {
			preemption[reason]++
		}
	}
	helps := available(len(r.nodes), preemption)
	if r.templateOf(id).PreemptionNever {
		helps = "not eligible due to preemptionPolicy=Never."
	}
	return available(len(r.nodes), filters) + afterFilters + helps
}

// available returns a message with the number of nodes for each reason, in the order of
// kube-scheduler.
func available(nodes int, reasons map[string]int) string {
	var parts []string
	for reason, n := range reasons {
		parts = append(parts, fmt.Sprintf("%d %s", n, reason))
	}
	slices.Sort(parts)
	return fmt.Sprintf("0/%d nodes are available: %s.", nodes, strings.Join(parts, ", "))
}

// pinnedTo returns the nodes that a pod's required node affinity names, if each term names nodes.
// kube-scheduler considers no other nodes.
func (r *run) pinnedTo(id policy.PodID) (nodes []policy.NodeID, pinned bool) {
	if n, ok := r.pinned[id]; ok {
		return []policy.NodeID{n}, true
	}
	terms := r.templateOf(id).Affinity
	for i := range terms {
		at := slices.IndexFunc(terms[i].Fields, func(f policy.Requirement) bool { return f.Op == policy.OpIn })
		if at < 0 {
			return nil, false
		}
		for n := range r.nodes {
			if slices.Contains(terms[i].Fields[at].Values, r.nodes[n].Name) {
				nodes = append(nodes, policy.NodeID(n))
			}
		}
	}
	return nodes, len(terms) > 0
}

// refusal returns the messages of the first filter that rejects n for a pod, and whether the
// removal of pods from n can change the result.
func (r *run) refusal(p *policy.Pod, n policy.NodeID) (reasons []string, resolvable bool) {
	t := r.templateOf(p.ID)
	switch v := r.space.Check(p, n); v {
	case placement.OK:
		return nil, true
	case placement.TooManyPods, placement.NoCPU, placement.NoMemory, placement.NoStorage, placement.NoExtended:
		return r.insufficient(t, n)
	case placement.Tainted:
		if r.nodes[n].cordoned && !policy.Tolerates(t.Tolerations, &policy.Taint{Key: corev1.TaintNodeUnschedulable,
			Effect: policy.NoSchedule}) {
			return []string{cordonedReason}, false
		}
		return []string{filterReasons[v]}, false
	case placement.Skewed:
		for i := range t.Spread {
			if _, has := r.nodes[n].Label(t.Spread[i].TopologyKey); !has && !t.Spread[i].Soft {
				return []string{filterReasons[v] + " (missing required label)"}, false
			}
		}
		return []string{filterReasons[v]}, true
	case placement.Unselected, placement.OtherZone, placement.Lonely:
		return []string{filterReasons[v]}, false
	default:
		return []string{filterReasons[v]}, true
	}
}

// insufficient returns messages for the resources of which n has too little free for pods of t, and
// reports whether n would have enough without any pods.
func (r *run) insufficient(t *policy.Template, n policy.NodeID) (reasons []string, resolvable bool) {
	free, all := r.space.Free(n), r.space.Allocatable(n)
	resolvable = true
	if free.Pods < 1 {
		reasons = append(reasons, "Too many pods")
	}
	lacks := func(name string, asked, free, all int64) {
		if asked > 0 && asked > free {
			reasons = append(reasons, "Insufficient "+name)
			resolvable = resolvable && asked <= all
		}
	}
	lacks("cpu", t.Requests.CPU, free.CPU, all.CPU)
	lacks("memory", t.Requests.Memory, free.Memory, all.Memory)
	lacks("ephemeral-storage", t.Requests.Storage, free.Storage, all.Storage)
	for _, a := range r.templates.extended[t.ID] {
		name := r.templates.resources[a.Resource]
		offered := r.nodes[n].extended[name]
		lacks(string(name), a.Quantity, r.space.FreeExtended(n, a.Resource), offered.Value())
	}
	return reasons, resolvable
}

// preemption returns the reasons why preemption on n does not help a pod.
func (r *run) preemption(id policy.PodID, n policy.NodeID, resolvable bool) []string {
	if !resolvable {
		return []string{helplessReason}
	}
	priority := r.templateOf(id).Priority
	var lower []policy.PodID
	for _, v := range r.space.Pods(n) {
		if r.templateOf(v).Priority < priority {
			lower = append(lower, v)
		}
	}
	if len(lower) == 0 {
		return []string{noVictims}
	}
	for _, v := range lower {
		r.space.Unbind(&r.pods[v], n)
	}
	reasons, _ := r.refusal(&r.pods[id], n)
	for _, v := range lower {
		r.space.Bind(&r.pods[v], n)
	}
	return reasons
}

// reasons groups pending pods that are interchangeable and have the same reason.
func (r *run) reasons() (out []Pending) {
	known, at := map[policy.TemplateID]string{}, map[string]int{}
	for i := range r.pods {
		id, p := policy.PodID(i), &r.pods[i]
		switch r.placed[i] {
		case running, elsewhere, others, gone:
			continue
		case waiting, gated, daemon:
		}
		if p.Node != policy.None {
			continue
		}
		_, isPinned := r.pinned[id]
		alike := !isPinned && p.VolumeZone == policy.None && r.Nominated(id) == policy.None && r.placed[i] == waiting
		reason, have := known[p.Template]
		if !have || !alike {
			reason = r.why(id)
		}
		if alike {
			known[p.Template] = reason
		}
		t := r.templateOf(id)
		key := fmt.Sprint(t.ID, " ", reason)
		k, seen := at[key]
		if !seen {
			k = len(out)
			at[key] = k
			out = append(out, Pending{Requests: r.requests(t), Reason: reason})
		}
		out[k].Pods = append(out[k].Pods, p.Name)
	}
	return out
}

// requests returns the requests of a pod of t, formatted as in manifests.
func (r *run) requests(t *policy.Template) map[string]string {
	out := map[string]string{}
	for name, n := range r.amounts(t) {
		out[string(name)] = quantity(name, n)
	}
	return out
}

// amounts returns the non-zero requests of a pod of t, CPU in milli-CPU.
func (r *run) amounts(t *policy.Template) map[corev1.ResourceName]int64 {
	out := map[corev1.ResourceName]int64{
		corev1.ResourceCPU: t.Requests.CPU, corev1.ResourceMemory: t.Requests.Memory, corev1.ResourceEphemeralStorage: t.Requests.Storage,
	}
	for _, a := range r.templates.extended[t.ID] {
		out[r.templates.resources[a.Resource]] = a.Quantity
	}
	maps.DeleteFunc(out, func(_ corev1.ResourceName, n int64) bool { return n == 0 })
	return out
}
