package main

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kueueapi "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
	"github.com/spotter-dev/spotter/sim/kueue"
)

// resources are those of all states, in the order of sim/kueue.
var resources = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, gpu, corev1.ResourcePods}

// ours is sim/kueue on the objects of a state.
type ours struct {
	*kueue.System
	st   *state
	ids  map[string]kueue.ID
	why  map[string]kueue.Why // of workloads that are being evicted
	gone map[string]bool
	now  policy.Time

	// did describes the decisions of the last cycle.
	did []string
}

func newOurs(st *state) (*ours, error) {
	setup, err := setupOf(st)
	if err != nil {
		return nil, err
	}
	o := &ours{System: kueue.New(setup), st: st, ids: map[string]kueue.ID{}, why: map[string]kueue.Why{},
		gone: map[string]bool{}, now: policy.TimeOf(start)}
	for i := range st.Workloads {
		w := &st.Workloads[i]
		if st.later(w.Name) {
			continue
		}
		if err := o.submit(w); err != nil {
			return nil, err
		}
		if w.Status.Admission != nil {
			o.Reserve(o.ids[w.Name], o.flavorsOf(w), policy.TimeOf(w.Status.Conditions[0].LastTransitionTime.Time))
		}
	}
	return o, nil
}

func setupOf(st *state) (kueue.Setup, error) {
	setup := kueue.Setup{Resources: len(resources), Pods: slices.Index(resources, corev1.ResourcePods)}
	for i := range st.Flavors {
		f := &st.Flavors[i]
		t, err := template(&corev1.PodSpec{Tolerations: f.Spec.Tolerations})
		if err != nil {
			return setup, err
		}
		flavor := kueue.Flavor{Name: f.Name, Labels: kube.Labels(f.Spec.NodeLabels), Tolerations: t.Tolerations}
		for _, taint := range f.Spec.NodeTaints {
			effects := map[corev1.TaintEffect]policy.TaintEffect{corev1.TaintEffectNoSchedule: policy.NoSchedule,
				corev1.TaintEffectNoExecute: policy.NoExecute, corev1.TaintEffectPreferNoSchedule: policy.PreferNoSchedule}
			flavor.Taints = append(flavor.Taints, policy.Taint{Key: taint.Key, Value: taint.Value, Effect: effects[taint.Effect]})
		}
		setup.Flavors = append(setup.Flavors, flavor)
	}
	c := cohorts{st: st, setup: &setup}
	for i := range st.Cohorts {
		c.index(kueueapi.CohortReference(st.Cohorts[i].Name))
	}
	for i := range st.Queues {
		setup.Queues = append(setup.Queues, c.queue(&st.Queues[i]))
	}
	return setup, nil
}

// cohorts numbers the cohorts by name, also those that are only a name.
type cohorts struct {
	st    *state
	setup *kueue.Setup
}

func (c *cohorts) index(name kueueapi.CohortReference) int {
	if name == "" {
		return kueue.None
	}
	at := slices.IndexFunc(c.setup.Cohorts, func(x kueue.Cohort) bool { return x.Name == string(name) })
	if at >= 0 {
		return at
	}
	at = len(c.setup.Cohorts)
	c.setup.Cohorts = append(c.setup.Cohorts, kueue.Cohort{Name: string(name), Parent: kueue.None})
	for i := range c.st.Cohorts {
		if x := &c.st.Cohorts[i]; x.Name == string(name) {
			_, quotas := c.groups(x.Spec.ResourceGroups)
			parent := c.index(x.Spec.ParentName)
			c.setup.Cohorts[at].Parent, c.setup.Cohorts[at].Quotas = parent, quotas
		}
	}
	return at
}

func (c *cohorts) groups(in []kueueapi.ResourceGroup) (groups []kueue.Group, quotas []kueue.Quota) {
	for _, x := range in {
		var g kueue.Group
		for _, r := range x.CoveredResources {
			g.Resources = append(g.Resources, slices.Index(resources, r))
		}
		for _, f := range x.Flavors {
			id := slices.IndexFunc(c.setup.Flavors, func(k kueue.Flavor) bool { return k.Name == string(f.Name) })
			g.Flavors = append(g.Flavors, id)
			for _, r := range f.Resources {
				quotas = append(quotas, kueue.Quota{Flavor: id, Resource: slices.Index(resources, r.Name),
					Nominal: amount(r.Name, r.NominalQuota), Borrowing: limit(r.Name, r.BorrowingLimit),
					Lending: limit(r.Name, r.LendingLimit)})
			}
		}
		groups = append(groups, g)
	}
	return groups, quotas
}

func limit(r corev1.ResourceName, q *resource.Quantity) int64 {
	if q == nil {
		return kueue.None
	}
	return amount(r, *q)
}

// amount is in the units of policy.Resources.
func amount(r corev1.ResourceName, q resource.Quantity) int64 {
	if r == corev1.ResourceCPU {
		return q.MilliValue()
	}
	return q.Value()
}

var rules = map[kueueapi.PreemptionPolicy]kueue.Preemption{
	kueueapi.PreemptionPolicyNever: kueue.Never, kueueapi.PreemptionPolicyLowerPriority: kueue.LowerPriority,
	kueueapi.PreemptionPolicyLowerOrNewerEqualPriority: kueue.LowerOrNewerEqualPriority,
	kueueapi.PreemptionPolicyAny:                       kueue.Any,
}

func (c *cohorts) queue(in *kueueapi.ClusterQueue) kueue.Queue {
	s := &in.Spec
	q := kueue.Queue{Name: in.Name, Cohort: c.index(s.CohortName), Strict: s.QueueingStrategy == kueueapi.StrictFIFO,
		Stopped: s.StopPolicy != nil && *s.StopPolicy != kueueapi.None,
		Within:  rules[s.Preemption.WithinClusterQueue], Reclaim: rules[s.Preemption.ReclaimWithinCohort],
		PreemptNext: true}
	q.Groups, q.Quotas = c.groups(s.ResourceGroups)
	if b := s.Preemption.BorrowWithinCohort; b != nil {
		q.Borrow = b.Policy == kueueapi.BorrowWithinCohortPolicyLowerPriority
		if q.HasBorrowMost = b.MaxPriorityThreshold != nil; q.HasBorrowMost {
			q.BorrowMost = *b.MaxPriorityThreshold
		}
	}
	if f := s.FlavorFungibility; f != nil {
		q.BorrowNext, q.PreemptNext = f.WhenCanBorrow == kueueapi.TryNextFlavor, f.WhenCanPreempt == kueueapi.TryNextFlavor
		q.PreferPreemption = f.Preference != nil && *f.Preference == kueueapi.PreemptionOverBorrowing
	}
	return q
}

func template(s *corev1.PodSpec) (*policy.Template, error) {
	t, failed := &policy.Template{}, error(nil)
	reader := kube.Reader{Fail: func(at []string, format string, args ...any) {
		failed = fmt.Errorf("%v: %s", at, fmt.Sprintf(format, args...))
	}}
	reader.Template(t, nil, s)
	return t, failed
}

func (o *ours) submit(w *kueueapi.Workload) error {
	x := kueue.Workload{UID: string(w.UID), Priority: *w.Spec.Priority, Created: policy.TimeOf(w.CreationTimestamp.Time),
		Queue: slices.IndexFunc(o.Queues, func(q kueue.Queue) bool { return q.Name == string(w.Spec.QueueName) })}
	for i := range w.Spec.PodSets {
		set := &w.Spec.PodSets[i]
		t, err := template(&set.Template.Spec)
		if err != nil {
			return err
		}
		p := kueue.PodSet{Count: int64(set.Count), Requests: make([]int64, len(resources)), Template: t}
		for r, q := range requestsOf(set) {
			p.Requests[slices.Index(resources, r)] = amount(r, q) * int64(set.Count)
		}
		x.Sets = append(x.Sets, p)
	}
	o.ids[w.Name] = o.Submit(x)
	return nil
}

// flavorsOf returns the flavors of a workload that is admitted at the start.
func (o *ours) flavorsOf(w *kueueapi.Workload) (all [][]int) {
	for _, set := range w.Status.Admission.PodSetAssignments {
		flavors := slices.Repeat([]int{kueue.None}, len(resources))
		for r, name := range set.Flavors {
			flavors[slices.Index(resources, r)] = slices.IndexFunc(o.Setup.Flavors,
				func(f kueue.Flavor) bool { return f.Name == string(name) })
		}
		all = append(all, flavors)
	}
	return all
}

func (o *ours) cycle() {
	o.now += 1000
	names := map[kueue.ID]string{}
	for name, id := range o.ids {
		names[id] = name
	}
	o.did = nil
	for _, d := range o.Cycle(o.now) {
		o.did = append(o.did, fmt.Sprintf("%s %v %v", names[d.Workload], d.Outcome, d.Victims))
		for _, v := range d.Victims {
			if _, already := o.why[names[v.Workload]]; !already {
				o.why[names[v.Workload]] = v.Why
			}
		}
	}
}

func (o *ours) finish(name string) {
	id, known := o.ids[name]
	if !known || o.gone[name] {
		return
	}
	o.gone[name] = true
	o.Finish(id)
	o.Retry(o.queueOf(name))
}

func (o *ours) queueOf(name string) int {
	queue := string(o.st.workload(name).Spec.QueueName)
	return slices.IndexFunc(o.Queues, func(q kueue.Queue) bool { return q.Name == queue })
}

func (o *ours) requeue(name string) {
	if _, is := o.why[name]; !is || o.gone[name] {
		return
	}
	delete(o.why, name)
	o.Requeue(o.ids[name])
	o.Retry(o.queueOf(name))
}

// report describes every workload, by name.
func (o *ours) report() map[string]string {
	out := map[string]string{}
	for name, id := range o.ids {
		why, evicted := o.why[name]
		switch {
		case o.gone[name]:
		case evicted:
			out[name] = "evicted: " + why.String()
		case o.HasQuota(id):
			out[name] = "admitted:" + o.flavorText(o.FlavorsOf(id))
		case o.Parked(id):
			out[name] = "parked"
		default:
			out[name] = "waits"
		}
	}
	return out
}

func (o *ours) flavorText(all [][]int) (text string) {
	for _, flavors := range all {
		var parts []string
		for r, f := range flavors {
			if f != kueue.None {
				parts = append(parts, fmt.Sprintf("%s=%s", resources[r], o.Setup.Flavors[f].Name))
			}
		}
		slices.Sort(parts)
		text += fmt.Sprintf(" %v", parts)
	}
	return text
}
