package scenarios

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/sim/kueue"
)

// A QueueSetup is the configuration of Kueue: its quotas, and which workloads wait in which queue.
type QueueSetup struct {
	kueue.Setup

	// Of, indexed by workload, says how the instances of a job are queued.
	Of []Queued
}

// A Queued is how the instances of a job are queued. They have no pods until they are admitted with
// a flavor for each resource, and then the pods of the workload of these flavors.
type Queued struct {
	Queue    int // index into Queues; kueue.None for workloads that are not queued
	Priority int32
	Requests []int64 // of one pod, by resource
	Variants []Variant

	// Created is when the object of a job was created that is released once, as a cluster reports it;
	// 0 without it. It decides which of the jobs that wait at the start is first.
	Created policy.Time
}

// A Variant is a workload whose pods are those of another one on nodes of certain flavors.
type Variant struct {
	Flavors  []int // by resource; kueue.None for what is not requested
	Workload policy.WorkloadID
}

// Variant returns the workload of a job's pods with these flavors by resource.
func (q *Queued) Variant(flavors []int) (policy.WorkloadID, bool) {
	for _, v := range q.Variants {
		if slices.Equal(v.Flavors, flavors) {
			return v.Workload, true
		}
	}
	return 0, false
}

// labelQueuePriority is the label of a job with its WorkloadPriorityClass.
const labelQueuePriority = "kueue.x-k8s.io/priority-class"

// defaultLocalQueue is the name of the LocalQueue of jobs that name none (LocalQueueDefaulting, on by
// default since Kueue 0.17).
const defaultLocalQueue = "default"

// variantsMost is the largest number of combinations of flavors of one job.
const variantsMost = 64

// A queueRef is what a job says about its queue.
type queueRef struct {
	doc      *document
	named    string // the label, empty without one
	priority string
	created  policy.Time // 0 without it
}

// queues are the objects of Kueue, as read.
type queues struct {
	setup     QueueSetup
	resources []string
	locals    map[string]*localQueue // by "namespace/name"
	docs      map[string]*document   // of ClusterQueues
	selectors map[string]policy.Selector
	classes   map[string]int32

	// of says, by name of a workload, how its instances are queued. The workloads of its Variants
	// have the names in variants.
	of       map[string]*Queued
	variants map[string][]string
}

// queueOf records what the labels of a job say about its queue, and when the job was created; it may
// be zero. Kueue suspends the job, and resumes it when it is admitted.
func (l *load) queueOf(doc *document, labels map[string]string, created metav1.Time) (queued bool) {
	l.queue = &queueRef{doc: doc, named: labels[labelQueue], priority: labels[labelQueuePriority]}
	if !created.IsZero() {
		l.queue.created = policy.TimeOf(created.Time)
	}
	return l.queue.named != ""
}

// readQueues reads the objects of Kueue, and makes a workload for each job and combination of flavors
// with which the job may be admitted.
func (sc *Scenario) readQueues(objects []object) (errs []error) {
	q := &queues{locals: map[string]*localQueue{}, docs: map[string]*document{}, selectors: map[string]policy.Selector{},
		classes: map[string]int32{}, of: map[string]*Queued{}, variants: map[string][]string{}}
	for i := range objects {
		doc := objects[i].doc
		switch v := objects[i].value.(type) {
		case *resourceFlavor:
			errs = append(errs, q.readFlavor(doc, v)...)
		case *localQueue:
			q.locals[doc.qualified(v.Name)] = v
		case *workloadPriorityClass:
			q.classes[v.Name] = v.Value
		}
	}
	for i := range objects {
		switch v := objects[i].value.(type) {
		case *queueCohort:
			at := q.cohort(v.Name)
			q.setup.Cohorts[at].Parent = q.cohort(cmp.Or(v.Spec.ParentName, v.Spec.Parent))
		}
	}
	for i := range objects {
		r := quotaReader{queues: q, doc: objects[i].doc}
		switch v := objects[i].value.(type) {
		case *queueCohort:
			at := q.cohort(v.Name)
			_, q.setup.Cohorts[at].Quotas = r.groups(v.Spec.ResourceGroups, q.setup.Cohorts[at].Parent != kueue.None)
		case *clusterQueue:
			q.setup.Queues = append(q.setup.Queues, r.queue(sc, v))
			q.docs[v.Name] = objects[i].doc
		}
		errs = append(errs, r.errs...)
	}
	if len(q.setup.Queues) == 0 {
		return errs
	}
	if name := q.cycle(); name != "" {
		return append(errs, fmt.Errorf("%s: the cohort %s is a parent of itself", sc.file, name))
	}
	for i := range sc.loads {
		for _, u := range podRequests(&sc.templates[i]) {
			q.resource(u.Resource)
		}
	}
	q.setup.Resources, q.setup.Pods = len(q.resources), slices.Index(q.resources, string(corev1.ResourcePods))
	slices.SortFunc(q.setup.Queues, func(a, b kueue.Queue) int { return cmp.Compare(a.Name, b.Name) })
	sc.queues = q
	for i := range len(sc.loads) {
		errs = append(errs, sc.enqueue(i)...)
	}
	return errs
}

// cohort returns the index of a cohort, which need not be an object; kueue.None without a name.
func (q *queues) cohort(name string) int {
	if name == "" {
		return kueue.None
	}
	if i := slices.IndexFunc(q.setup.Cohorts, func(c kueue.Cohort) bool { return c.Name == name }); i >= 0 {
		return i
	}
	q.setup.Cohorts = append(q.setup.Cohorts, kueue.Cohort{Name: name, Parent: kueue.None})
	return len(q.setup.Cohorts) - 1
}

// cycle returns the name of a cohort above itself, or "".
func (q *queues) cycle() string {
	for i := range q.setup.Cohorts {
		steps := 0
		for at := i; at != kueue.None; at = q.setup.Cohorts[at].Parent {
			if steps++; steps > len(q.setup.Cohorts) {
				return q.setup.Cohorts[i].Name
			}
		}
	}
	return ""
}

// resource returns the number of a resource.
func (q *queues) resource(name string) int {
	if i := slices.Index(q.resources, name); i >= 0 {
		return i
	}
	q.resources = append(q.resources, name)
	return len(q.resources) - 1
}

func (q *queues) flavor(name string) int {
	return slices.IndexFunc(q.setup.Flavors, func(f kueue.Flavor) bool { return f.Name == name })
}

func (q *queues) readFlavor(doc *document, o *resourceFlavor) (errs []error) {
	t := policy.Template{NodeSelector: kube.Labels(o.Spec.NodeLabels)}
	readNodeLabels(&t, func(_ []string, format string, args ...any) {
		errs = append(errs, doc.problem([]string{"spec", "nodeLabels"}, format, args...))
	})
	f := kueue.Flavor{Name: o.Name, Labels: t.NodeSelector}
	for _, x := range o.Spec.NodeTaints {
		f.Taints = append(f.Taints, policy.Taint{Key: x.Key, Value: x.Value, Effect: v1alpha1.Effect(x.Effect)})
	}
	for _, x := range o.Spec.Tolerations {
		f.Tolerations = append(f.Tolerations, policy.Toleration{Key: x.Key,
			Exists: x.Operator == corev1.TolerationOpExists, Value: x.Value, Effect: v1alpha1.Effect(x.Effect)})
	}
	q.setup.Flavors = append(q.setup.Flavors, f)
	return errs
}

// A quotaReader reads an object with quotas.
type quotaReader struct {
	*queues
	doc  *document
	errs []error
}

func (r *quotaReader) fail(path []string, format string, args ...any) {
	r.errs = append(r.errs, r.doc.problem(path, format, args...))
}

// groups reads resource groups. Borrows reports whether a cohort is there to borrow from.
func (r *quotaReader) groups(in []quotaGroup, borrows bool) (groups []kueue.Group, quotas []kueue.Quota) {
	covered, used := map[string]bool{}, map[string]bool{}
	for i, x := range in {
		at := []string{"spec", "resourceGroups", Index(i)}
		var g kueue.Group
		for _, name := range x.CoveredResources {
			if covered[name] {
				r.fail(append(at, "coveredResources"), "%q is covered twice", name)
			}
			covered[name] = true
			g.Resources = append(g.Resources, r.resource(name))
		}
		for k, f := range x.Flavors {
			at := append(at, "flavors", Index(k))
			id := r.flavor(f.Name)
			switch {
			case used[f.Name]:
				r.fail(append(at, "name"), "%q is listed twice", f.Name)
			case id < 0:
				r.fail(append(at, "name"), "there is no ResourceFlavor %q", f.Name)
			}
			used[f.Name] = true
			g.Flavors = append(g.Flavors, id)
			for n, y := range f.Resources {
				at := append(at, "resources", Index(n))
				if n >= len(x.CoveredResources) || x.CoveredResources[n] != y.Name {
					r.fail(append(at, "name"), "%q is not in the order of coveredResources", y.Name)
				}
				quotas = append(quotas, r.quota(id, &y, at, borrows))
			}
			if len(f.Resources) < len(x.CoveredResources) {
				r.fail(append(at, "resources"), "must list all of coveredResources")
			}
		}
		groups = append(groups, g)
	}
	return groups, quotas
}

func (r *quotaReader) quota(flavor int, in *resourceQuota, at []string, borrows bool) kueue.Quota {
	q := kueue.Quota{Flavor: flavor, Resource: r.resource(in.Name), Borrowing: kueue.None, Lending: kueue.None}
	for _, x := range []struct {
		name  string
		from  *resource.Quantity
		to    *int64
		limit bool
	}{{"nominalQuota", in.NominalQuota, &q.Nominal, false}, {"borrowingLimit", in.BorrowingLimit, &q.Borrowing, true},
		{"lendingLimit", in.LendingLimit, &q.Lending, true}} {
		switch {
		case x.from == nil && !x.limit:
			r.fail(append(at, x.name), "must be set")
		case x.from == nil:
		case x.from.Sign() < 0:
			r.fail(append(at, x.name), "%s is negative", x.from)
		case x.limit && !borrows:
			r.fail(append(at, x.name), "must not be set without a cohort")
		case in.Name == string(corev1.ResourceCPU):
			*x.to = x.from.MilliValue()
		default:
			*x.to = x.from.Value()
		}
	}
	return q
}

// oneOf returns the value of a field with fixed values, of which the first is the default.
func oneOf[T any](r *quotaReader, text string, names []string, values []T, path ...string) T {
	if text == "" {
		return values[0]
	}
	if i := slices.Index(names, text); i >= 0 {
		return values[i]
	}
	r.fail(append([]string{"spec"}, path...), "%q is not one of %s", text, strings.Join(names, ", "))
	return values[0]
}

// queue reads a ClusterQueue.
func (r *quotaReader) queue(sc *Scenario, o *clusterQueue) kueue.Queue {
	s := &o.Spec
	q := kueue.Queue{Name: o.Name, Cohort: r.cohort(cmp.Or(s.CohortName, s.Cohort))}
	q.Groups, q.Quotas = r.groups(s.ResourceGroups, q.Cohort != kueue.None)
	no := []bool{false, true}
	q.Strict = oneOf(r, s.QueueingStrategy, []string{"BestEffortFIFO", "StrictFIFO"}, no, "queueingStrategy")
	q.Stopped = oneOf(r, s.StopPolicy, []string{"None", "Hold", "HoldAndDrain"}, []bool{false, true, true}, "stopPolicy")
	if p := s.Preemption; p != nil {
		q.Within = oneOf(r, p.WithinClusterQueue, []string{"Never", "LowerPriority", "LowerOrNewerEqualPriority"},
			[]kueue.Preemption{kueue.Never, kueue.LowerPriority, kueue.LowerOrNewerEqualPriority}, "preemption",
			"withinClusterQueue")
		q.Reclaim = oneOf(r, p.ReclaimWithinCohort, []string{"Never", "LowerPriority", "Any"},
			[]kueue.Preemption{kueue.Never, kueue.LowerPriority, kueue.Any}, "preemption", "reclaimWithinCohort")
		if b := p.BorrowWithinCohort; b != nil {
			q.Borrow = oneOf(r, b.Policy, []string{"Never", "LowerPriority"}, no, "preemption", "borrowWithinCohort", "policy")
			if q.HasBorrowMost = b.MaxPriorityThreshold != nil; q.HasBorrowMost {
				q.BorrowMost = *b.MaxPriorityThreshold
			}
		}
		if q.Borrow && q.Reclaim == kueue.Never {
			r.fail([]string{"spec", "preemption", "borrowWithinCohort"}, "means nothing while reclaimWithinCohort is Never")
		}
	}
	q.PreemptNext = true
	if f := s.FlavorFungibility; f != nil { // v1beta1 has Borrow and Preempt in place of MayStopSearch
		q.BorrowNext = oneOf(r, f.WhenCanBorrow, []string{"MayStopSearch", "Borrow", "TryNextFlavor"},
			[]bool{false, false, true}, "flavorFungibility", "whenCanBorrow")
		q.PreemptNext = oneOf(r, f.WhenCanPreempt, []string{"TryNextFlavor", "MayStopSearch", "Preempt"},
			[]bool{true, false, false}, "flavorFungibility", "whenCanPreempt")
		q.PreferPreemption = oneOf(r, f.Preference, []string{"BorrowingOverPreemption", "PreemptionOverBorrowing"}, no,
			"flavorFungibility", "preference")
	}
	r.namespaces(sc, o)
	return q
}

// namespaces reads which namespaces may use a queue: none if the selector is not set. Only their names
// are known, so that other labels are taken to be there.
func (r *quotaReader) namespaces(sc *Scenario, o *clusterQueue) {
	if o.Spec.NamespaceSelector == nil {
		sc.warn("ClusterQueue %s admits nothing: it has no namespaceSelector", o.Name)
		return
	}
	s, err := kube.Selector(o.Spec.NamespaceSelector)
	if err != nil {
		r.fail([]string{"spec", "namespaceSelector"}, "%v", err)
	}
	all := len(s.Requirements)
	s.Requirements = slices.DeleteFunc(s.Requirements, func(q policy.Requirement) bool {
		return q.Key != corev1.LabelMetadataName
	})
	if len(s.Requirements) < all {
		sc.warn("ClusterQueue %s: the namespaces of its jobs are taken to have the labels that its namespaceSelector wants",
			o.Name)
	}
	s.Everything = len(s.Requirements) == 0
	r.selectors[o.Name] = s
}
