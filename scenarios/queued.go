package scenarios

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/karpenter"
	"github.com/spotter-dev/spotter/sim/kueue"
)

// enqueue puts a job that names a queue into it. Jobs that cannot be admitted are never released.
func (sc *Scenario) enqueue(i int) []error {
	l, q := &sc.loads[i], sc.queues
	if l.queue == nil {
		return nil
	}
	namespace, _, _ := strings.Cut(l.Name, "/")
	name := l.queue.named
	if name == "" {
		name = defaultLocalQueue
		if q.locals[namespace+"/"+name] == nil {
			return nil
		}
	}
	never := func(format string, args ...any) []error {
		sc.note("never admitted, since "+fmt.Sprintf(format, args...), l.Name)
		l.suspended = true
		return nil
	}
	local := q.locals[namespace+"/"+name]
	if local == nil {
		return never("there is no LocalQueue %s in %s", name, namespace)
	}
	if s := local.Spec.StopPolicy; s != "" && s != "None" {
		return never("the LocalQueue %s/%s is stopped", namespace, name)
	}
	at := slices.IndexFunc(q.setup.Queues, func(x kueue.Queue) bool { return x.Name == local.Spec.ClusterQueue })
	if at < 0 {
		return never("there is no ClusterQueue %s", local.Spec.ClusterQueue)
	}
	selector := q.selectors[local.Spec.ClusterQueue]
	if !selector.Matches([]policy.Label{{Key: corev1.LabelMetadataName, Value: namespace}}) {
		return never("the ClusterQueue %s is not for the namespace %s", local.Spec.ClusterQueue, namespace)
	}
	x := &Queued{Queue: at, Priority: sc.templates[i].Priority}
	if l.listed == nil && l.releases == nil {
		x.Created = l.queue.created
	}
	if class := l.queue.priority; class != "" {
		value, known := q.classes[class]
		if !known {
			return []error{l.queue.doc.problem([]string{"metadata", "labels", labelQueuePriority},
				"there is no WorkloadPriorityClass %q", class)}
		}
		x.Priority = value
	}
	x.Requests = make([]int64, len(q.resources))
	for _, u := range podRequests(&sc.templates[i]) {
		x.Requests[q.resource(u.Resource)] = u.Amount
	}
	q.of[l.Name] = x
	if missing := q.uncovered(x); missing != "" {
		return never("the ClusterQueue %s does not cover %s", local.Spec.ClusterQueue, missing)
	}
	return sc.addVariants(i, x)
}

// podRequests returns what a pod requests of each resource, in the units of policy.Resources.
func podRequests(t *policy.Template) (all []policy.DeviceUse) {
	for _, x := range []policy.DeviceUse{{Resource: string(corev1.ResourceCPU), Amount: t.Requests.CPU},
		{Resource: string(corev1.ResourceMemory), Amount: t.Requests.Memory},
		{Resource: string(corev1.ResourceEphemeralStorage), Amount: t.Requests.Storage},
		{Resource: t.GPUResource, Amount: t.Requests.GPU}} {
		if x.Resource != "" && x.Amount > 0 {
			all = append(all, x)
		}
	}
	return all
}

// uncovered returns a resource that a job requests and its queue does not cover, or "".
func (q *queues) uncovered(x *Queued) string {
	groups := q.setup.Queues[x.Queue].Groups
	for r, v := range x.Requests {
		if v > 0 && !slices.ContainsFunc(groups, func(g kueue.Group) bool { return slices.Contains(g.Resources, r) }) {
			return q.resources[r]
		}
	}
	return ""
}

// addVariants adds a workload for each combination of flavors with which job i may be admitted.
func (sc *Scenario) addVariants(i int, x *Queued) []error {
	q := sc.queues
	base, flavors := sc.loads[i].Name, [][]int{slices.Repeat([]int{kueue.None}, len(q.resources))}
	groups := q.setup.Queues[x.Queue].Groups
	for g := range groups {
		wanted := slices.ContainsFunc(groups[g].Resources, func(r int) bool { return x.Requests[r] > 0 || r == q.setup.Pods })
		if !wanted {
			continue
		}
		var more [][]int
		for _, f := range groups[g].Flavors {
			if !q.setup.Compatible(&groups[g], f, &sc.templates[i]) {
				continue
			}
			for _, before := range flavors {
				next := slices.Clone(before)
				for _, r := range groups[g].Resources {
					if x.Requests[r] > 0 || r == q.setup.Pods {
						next[r] = f
					}
				}
				more = append(more, next)
			}
		}
		if flavors = more; len(flavors) > variantsMost {
			return []error{sc.loads[i].queue.doc.problem([]string{"metadata", "labels", labelQueue},
				"%d combinations of flavors are more than %d", len(flavors), variantsMost)}
		}
	}
	for _, of := range flavors {
		sc.addVariant(i, x, base, of)
	}
	return nil
}

// addVariant adds the workload of job i on nodes of certain flavors: its pods select their labels, and
// have their tolerations.
func (sc *Scenario) addVariant(i int, x *Queued, base string, of []int) {
	q := sc.queues
	t, l := sc.templates[i], sc.loads[i]
	var names []string
	t.NodeSelector, t.Tolerations = slices.Clone(t.NodeSelector), slices.Clone(t.Tolerations)
	for r, id := range of {
		if id == kueue.None || slices.Contains(of[:r], id) {
			continue
		}
		f := &q.setup.Flavors[id]
		names = append(names, f.Name)
		for _, label := range f.Labels {
			if _, has := policy.FindLabel(t.NodeSelector, label.Key); !has {
				t.NodeSelector = append(t.NodeSelector, label)
			}
		}
		t.Tolerations = append(t.Tolerations, f.Tolerations...)
	}
	slices.SortFunc(t.NodeSelector, func(a, b policy.Label) int { return cmp.Compare(a.Key, b.Key) })
	t.Name = sc.uniqueName(base+"@"+strings.Join(names, "+"), "Flavors")
	l.Name, l.object, l.queue, l.gang, l.suspended = t.Name, "", nil, nil, true
	x.Variants = append(x.Variants, Variant{Flavors: of})
	q.variants[base] = append(q.variants[base], t.Name)
	sc.keep(&t, &l)
}

// OnDemandFlavors returns the scenario for a run without Spot nodes: the pods of a job that is admitted
// with a flavor of Spot nodes select the other labels of the flavor only. It returns w itself if no
// flavor has Spot nodes. What a job selects itself stays.
func (w *BoundScenario) OnDemandFlavors() *BoundScenario {
	if w.Queues == nil {
		return w
	}
	spot := policy.Label{Key: karpenter.LabelCapacityType, Value: policy.Spot.String()}
	templates := slices.Clone(w.Templates)
	changed := false
	for i := range w.Queues.Of {
		for _, v := range w.Queues.Of[i].Variants {
			t := &templates[v.Workload]
			if slices.Contains(t.NodeSelector, spot) && !slices.Contains(templates[i].NodeSelector, spot) {
				t.NodeSelector = slices.DeleteFunc(slices.Clone(t.NodeSelector), func(l policy.Label) bool { return l == spot })
				changed = true
			}
		}
	}
	if !changed {
		return w
	}
	out := *w
	out.Templates = templates
	return &out
}

// queueSetup returns the configuration of Kueue with the workloads by number, or nil.
func (sc *Scenario) queueSetup() *QueueSetup {
	if sc.queues == nil {
		return nil
	}
	q := sc.queues
	out := &QueueSetup{Setup: q.setup.Setup, Of: make([]Queued, len(sc.loads))}
	for i := range sc.loads {
		x := q.of[sc.loads[i].Name]
		if x == nil {
			out.Of[i].Queue = kueue.None
			continue
		}
		out.Of[i] = *x
		out.Of[i].Variants = slices.Clone(x.Variants)
		for k, name := range q.variants[sc.loads[i].Name] {
			at, _ := slices.BinarySearchFunc(sc.loads, name, func(l load, name string) int { return cmp.Compare(l.Name, name) })
			out.Of[i].Variants[k].Workload = policy.WorkloadID(at)
		}
	}
	return out
}
