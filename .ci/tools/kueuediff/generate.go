package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

const (
	labelCapacity = "karpenter.sh/capacity-type"
	labelZone     = "topology.kubernetes.io/zone"
	gpu           = corev1.ResourceName("nvidia.com/gpu")
)

// A generator draws queues and workloads. Few values of everything make conflicts frequent.
type generator struct {
	*rand.Rand
	st      *state
	created int // workloads so far, whose ages all differ
}

func generate(seed uint64) *state {
	g := &generator{rand.New(rand.NewPCG(seed, 0x6b75)), &state{Seed: seed}, 0}
	for i := range 1 + g.IntN(4) {
		g.flavor(i)
	}
	for i := range g.IntN(4) {
		g.cohort(i)
	}
	for i := range 1 + g.IntN(5) {
		g.queue(i)
	}
	for range 1 + g.IntN(8) {
		g.admitted()
	}
	for range 2 + g.IntN(12) {
		g.workload(true)
	}
	g.steps()
	return g.st
}

func (g *generator) one(in int) bool { return g.IntN(in) == 0 }

func pick[T any](g *generator, from ...T) T { return from[g.IntN(len(from))] }

func (g *generator) flavor(i int) {
	f := kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("flavor-%d", i)}}
	f.Spec.NodeLabels = map[string]string{labelCapacity: pick(g, "spot", "on-demand")}
	if g.one(2) {
		f.Spec.NodeLabels[labelZone] = pick(g, "a", "b")
	}
	if g.one(4) {
		f.Spec.NodeTaints = []corev1.Taint{{Key: "spot", Value: "true",
			Effect: pick(g, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute, corev1.TaintEffectPreferNoSchedule)}}
		if g.one(2) {
			f.Spec.Tolerations = []corev1.Toleration{{Key: "spot", Operator: corev1.TolerationOpExists}}
		}
	}
	g.st.Flavors = append(g.st.Flavors, f)
}

func (g *generator) cohort(i int) {
	c := kueue.Cohort{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("cohort-%d", i)}}
	if i > 0 && g.one(2) {
		c.Spec.ParentName = kueue.CohortReference(fmt.Sprintf("cohort-%d", g.IntN(i)))
	}
	if g.one(3) {
		c.Spec.ResourceGroups = g.groups(c.Spec.ParentName != "")
	}
	g.st.Cohorts = append(g.st.Cohorts, c)
}

// groups draws one or two resource groups that divide the flavors.
func (g *generator) groups(borrows bool) []kueue.ResourceGroup {
	order := g.Perm(len(g.st.Flavors))
	cut := len(order)
	if cut > 1 && g.one(2) {
		cut = 1 + g.IntN(cut-1)
	}
	covered := [][]corev1.ResourceName{{corev1.ResourceCPU, corev1.ResourceMemory}, {gpu}}
	if g.one(3) {
		covered[0] = []corev1.ResourceName{corev1.ResourceCPU}
	}
	if g.one(6) {
		covered[0] = append(covered[0], corev1.ResourcePods)
	}
	if cut == len(order) && g.one(2) {
		covered[0] = append(covered[0], gpu)
	}
	var all []kueue.ResourceGroup
	for k, of := range [][]int{order[:cut], order[cut:]} {
		if len(of) == 0 {
			continue
		}
		group := kueue.ResourceGroup{CoveredResources: covered[k]}
		for _, f := range of {
			quotas := kueue.FlavorQuotas{Name: kueue.ResourceFlavorReference(g.st.Flavors[f].Name)}
			for _, r := range covered[k] {
				quotas.Resources = append(quotas.Resources, g.quota(r, borrows))
			}
			group.Flavors = append(group.Flavors, quotas)
		}
		all = append(all, group)
	}
	return all
}

func (g *generator) quota(r corev1.ResourceName, borrows bool) kueue.ResourceQuota {
	q := kueue.ResourceQuota{Name: r, NominalQuota: quantity(r, g.IntN(9))}
	if borrows && g.one(3) {
		q.BorrowingLimit = ptr.To(quantity(r, g.IntN(6)))
	}
	if borrows && g.one(3) {
		q.LendingLimit = ptr.To(quantity(r, g.IntN(6)))
	}
	return q
}

func quantity(r corev1.ResourceName, n int) resource.Quantity {
	if r == corev1.ResourceMemory {
		return resource.MustParse(fmt.Sprintf("%dGi", n))
	}
	return resource.MustParse(fmt.Sprint(n))
}

func (g *generator) queue(i int) {
	q := kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("queue-%d", i)}}
	s := &q.Spec
	s.NamespaceSelector = &metav1.LabelSelector{}
	s.QueueingStrategy = pick(g, kueue.StrictFIFO, kueue.BestEffortFIFO, kueue.BestEffortFIFO)
	if n := len(g.st.Cohorts); n > 0 && !g.one(5) {
		s.CohortName = kueue.CohortReference(g.st.Cohorts[g.IntN(n)].Name)
	} else if g.one(3) {
		s.CohortName = "only-a-name"
	}
	s.ResourceGroups = g.groups(s.CohortName != "")
	s.Preemption = &kueue.ClusterQueuePreemption{
		WithinClusterQueue: pick(g, kueue.PreemptionPolicyNever, kueue.PreemptionPolicyLowerPriority,
			kueue.PreemptionPolicyLowerOrNewerEqualPriority),
		ReclaimWithinCohort: pick(g, kueue.PreemptionPolicyNever, kueue.PreemptionPolicyLowerPriority,
			kueue.PreemptionPolicyAny),
	}
	if s.Preemption.ReclaimWithinCohort != kueue.PreemptionPolicyNever && g.one(2) {
		b := &kueue.BorrowWithinCohort{Policy: kueue.BorrowWithinCohortPolicyLowerPriority}
		if g.one(2) {
			b.MaxPriorityThreshold = ptr.To(int32(pick(g, 0, 10, 100)))
		}
		s.Preemption.BorrowWithinCohort = b
	}
	if g.one(2) {
		s.FlavorFungibility = &kueue.FlavorFungibility{
			WhenCanBorrow:  pick(g, kueue.MayStopSearch, kueue.TryNextFlavor),
			WhenCanPreempt: pick(g, kueue.MayStopSearch, kueue.TryNextFlavor),
		}
		if g.one(2) {
			s.FlavorFungibility.Preference = ptr.To(pick(g, kueue.BorrowingOverPreemption, kueue.PreemptionOverBorrowing))
		}
	}
	if g.one(20) {
		s.StopPolicy = ptr.To(kueue.Hold)
	}
	g.st.Queues = append(g.st.Queues, q)
}

// workload draws a workload for a queue, which may request a resource that the queue does not cover.
func (g *generator) workload(mayWait bool) *kueue.Workload {
	q := &g.st.Queues[g.IntN(len(g.st.Queues))]
	g.created++
	name := fmt.Sprintf("work-%02d", g.created)
	w := kueue.Workload{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace,
		UID:               types.UID(fmt.Sprintf("%04x-%s", g.IntN(1<<16), name)),
		CreationTimestamp: metav1.NewTime(start.Add(-time.Duration(100*g.IntN(1000)+g.created) * time.Second))}}
	w.Spec.QueueName = kueue.LocalQueueName(q.Name)
	w.Spec.Priority = ptr.To(int32(pick(g, 0, 0, 10, 100)))
	w.Spec.Active = ptr.To(true)
	for i := range pick(g, 1, 1, 1, 2) {
		w.Spec.PodSets = append(w.Spec.PodSets, g.podSet(q, i))
	}
	g.st.Workloads = append(g.st.Workloads, w)
	if mayWait && g.one(4) {
		g.st.Steps = append(g.st.Steps, step{"submit", name})
	}
	return &g.st.Workloads[len(g.st.Workloads)-1]
}

func (g *generator) podSet(q *kueue.ClusterQueue, i int) kueue.PodSet {
	set := kueue.PodSet{Name: kueue.PodSetReference(fmt.Sprintf("set-%d", i)), Count: int32(1 + g.IntN(3))}
	requests := corev1.ResourceList{}
	for _, group := range q.Spec.ResourceGroups {
		for _, r := range group.CoveredResources {
			if r != corev1.ResourcePods && (r == corev1.ResourceCPU || !g.one(3)) {
				requests[r] = quantity(r, 1+g.IntN(3))
			}
		}
	}
	if len(requests) == 0 || g.one(20) {
		requests[pick(g, corev1.ResourceCPU, gpu)] = quantity(corev1.ResourceCPU, 1)
	}
	p := &set.Template.Spec
	p.Containers = []corev1.Container{{Name: "main", Image: "main", Resources: corev1.ResourceRequirements{
		Requests: requests}}}
	if g.one(6) {
		p.NodeSelector = map[string]string{pick(g, labelCapacity, labelZone, "other"): pick(g, "spot", "on-demand", "a")}
	}
	if g.one(8) {
		term := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{
			Key: pick(g, labelCapacity, labelZone, "other"), Operator: pick(g, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn),
			Values: []string{pick(g, "spot", "on-demand", "a", "b")}}}}
		p.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{term}}}}
	}
	if g.one(3) {
		p.Tolerations = []corev1.Toleration{{Key: "spot", Operator: corev1.TolerationOpEqual, Value: "true"}}
	}
	return set
}

// admitted draws a workload that has quota at the start, in any flavors of its queue: more than there
// is at times, as after quotas were lowered.
func (g *generator) admitted() {
	w := g.workload(false)
	var q *kueue.ClusterQueue
	for i := range g.st.Queues {
		if g.st.Queues[i].Name == string(w.Spec.QueueName) {
			q = &g.st.Queues[i]
		}
	}
	admission := &kueue.Admission{ClusterQueue: kueue.ClusterQueueReference(q.Name)}
	for i := range w.Spec.PodSets {
		set := &w.Spec.PodSets[i]
		a := kueue.PodSetAssignment{Name: set.Name, Count: ptr.To(set.Count), ResourceUsage: corev1.ResourceList{},
			Flavors: map[corev1.ResourceName]kueue.ResourceFlavorReference{}}
		for _, group := range q.Spec.ResourceGroups {
			flavor := group.Flavors[g.IntN(len(group.Flavors))].Name
			for _, r := range group.CoveredResources {
				each, asked := requestsOf(set)[r]
				if r == corev1.ResourcePods {
					each, asked = resource.MustParse("1"), true
				}
				if asked {
					a.Flavors[r] = flavor
					each.Mul(int64(set.Count))
					a.ResourceUsage[r] = each
				}
			}
		}
		for r := range requestsOf(set) {
			if _, given := a.Flavors[r]; !given {
				delete(requestsOf(set), r)
			}
		}
		admission.PodSetAssignments = append(admission.PodSetAssignments, a)
	}
	since := metav1.NewTime(start.Add(-time.Duration(1+g.IntN(500)) * time.Second))
	w.Status.Admission = admission
	for _, kind := range []string{kueue.WorkloadQuotaReserved, kueue.WorkloadAdmitted} {
		w.Status.Conditions = append(w.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue,
			Reason: "Start", LastTransitionTime: since})
	}
}

// steps draws what happens: cycles, and between them submissions, ends of workloads, and evictions
// that complete.
func (g *generator) steps() {
	submits := g.st.Steps
	g.st.Steps = nil
	for range 4 + g.IntN(8) {
		g.st.Steps = append(g.st.Steps, step{Do: "cycle"})
		if len(submits) > 0 && g.one(2) {
			g.st.Steps, submits = append(g.st.Steps, submits[0]), submits[1:]
		}
		if !g.one(3) {
			s := step{Do: "requeue"}
			if g.one(3) {
				s.On = g.st.Workloads[g.IntN(len(g.st.Workloads))].Name
			}
			g.st.Steps = append(g.st.Steps, s)
		}
		if g.one(3) {
			g.st.Steps = append(g.st.Steps, step{"finish", g.st.Workloads[g.IntN(len(g.st.Workloads))].Name})
		}
	}
	g.st.Steps = append(append(g.st.Steps, submits...), step{Do: "cycle"})
}
