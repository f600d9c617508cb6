package scenarios

import (
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// A jobSet contains the supported fields of a JobSet of the API jobset.x-k8s.io/v1alpha2. Other
// fields are errors.
type jobSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              jobSetSpec `json:"spec"`
}

// A jobSetSpec is the specification of a JobSet. StartupPolicy, Network, Coordinator, TTLSeconds
// and ManagedBy are accepted and have no effect.
type jobSetSpec struct {
	ReplicatedJobs []replicatedJob `json:"replicatedJobs"`
	SuccessPolicy  *jobSetSuccess  `json:"successPolicy"`
	FailurePolicy  *jobSetFailure  `json:"failurePolicy"`
	StartupPolicy  anything        `json:"startupPolicy"`
	Suspend        *bool           `json:"suspend"`
	Network        anything        `json:"network"`
	Coordinator    anything        `json:"coordinator"`
	TTLSeconds     anything        `json:"ttlSecondsAfterFinished"`
	ManagedBy      anything        `json:"managedBy"`
}

// A replicatedJob is a template for a number of equal jobs.
type replicatedJob struct {
	Name      string                  `json:"name"`
	GroupName string                  `json:"groupName"`
	Replicas  *int32                  `json:"replicas"` // nil means 1
	Template  batchv1.JobTemplateSpec `json:"template"`
	DependsOn []jobSetDependency      `json:"dependsOn"`
}

type jobSetDependency struct {
	Name   string `json:"name"`
	Status string `json:"status"`
}

type jobSetSuccess struct {
	Operator             string   `json:"operator"`
	TargetReplicatedJobs []string `json:"targetReplicatedJobs"`
}

type jobSetFailure struct {
	MaxRestarts     int32        `json:"maxRestarts"`
	RestartStrategy string       `json:"restartStrategy"`
	Rules           []jobSetRule `json:"rules"`
}

type jobSetRule struct {
	Name                 string   `json:"name"`
	Action               string   `json:"action"`
	OnJobFailureReasons  []string `json:"onJobFailureReasons"`
	TargetReplicatedJobs []string `json:"targetReplicatedJobs"`
}

// readJobSet reads a JobSet as a gang of all its pods, with one workload per replicated job.
func (sc *Scenario) readJobSet(doc *document, o *jobSet) []error {
	errs := o.check(doc)
	if len(o.Spec.ReplicatedJobs) == 0 {
		return append(errs, doc.problem([]string{"spec", "replicatedJobs"}, "must not be empty"))
	}
	restarts := int32(-1)
	if f := o.Spec.FailurePolicy; f != nil {
		restarts = f.MaxRestarts
		for _, r := range f.Rules {
			if r.Action == "RestartJobSetAndIgnoreMaxRestarts" {
				restarts = -1
			}
		}
	}
	for i := range o.Spec.ReplicatedJobs {
		errs = append(errs, sc.readReplicatedJob(doc, o, i, restarts)...)
	}
	return errs
}

// readReplicatedJob reads the i-th replicated job of a JobSet.
func (sc *Scenario) readReplicatedJob(doc *document, o *jobSet, i int, restarts int32) []error {
	r := &o.Spec.ReplicatedJobs[i]
	at := []string{"spec", "replicatedJobs", Index(i)}
	template := slices.Concat(at[:3], []string{"template"})
	meta := metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name + "-" + r.Name, Annotations: o.Annotations}
	s := &source{kind: policy.KindJob, meta: &meta, pod: &r.Template.Spec.Template,
		podPath: append(template[:4:4], "spec", "template"), between: r.Template.Annotations, betweenPath: template}
	spec := slices.Concat(template, []string{"spec"})
	return sc.readWork(doc, s, spec, &r.Template.Spec, func(l *load, a *annotations) (errs []error) {
		fail := func(path []string, format string, args ...any) {
			errs = append(errs, doc.problem(path, format, args...))
		}
		if r.Name == "" {
			fail(append(at[:3:3], "name"), "must be set")
		}
		if slices.ContainsFunc(o.Spec.ReplicatedJobs[:i], func(x replicatedJob) bool { return x.Name == r.Name }) {
			fail(append(at[:3:3], "name"), "%q is listed twice", r.Name)
		}
		if l.Job.Pods != l.Job.Completions {
			fail(append(spec[:5:5], "completions"), "%d is not parallelism %d: a JobSet is read where all of its pods run at once",
				l.Job.Completions, l.Job.Pods)
		}
		if r.Replicas != nil {
			if why := outside(*r.Replicas, 1, podsMax/max(l.Job.Pods, 1)); why != "" {
				fail(append(at[:3:3], "replicas"), "%s", why)
			} else {
				l.Job.Pods *= *r.Replicas
				l.Job.Completions, l.Replicas = l.Job.Pods, l.Job.Pods
			}
		}
		queued := l.queueOf(doc, o.Labels, o.CreationTimestamp)
		l.suspended = (l.suspended || o.Spec.Suspend != nil && *o.Spec.Suspend) && !queued
		l.gang = &gangLoad{name: doc.qualified(o.Name), restartsMax: restarts, doc: doc}
		l.gang.queue(queued, a)
		return errs
	})
}

// check returns errors for policies that a gang, which starts and ends as a whole, cannot have.
func (o *jobSet) check(doc *document) []error {
	var errs []error
	s := &o.Spec
	if p := s.SuccessPolicy; p != nil && (p.Operator != "" && p.Operator != "All" || len(p.TargetReplicatedJobs) > 0) {
		errs = append(errs, doc.problem([]string{"spec", "successPolicy"}, "only operator All of all jobs is read"))
	}
	if f := s.FailurePolicy; f != nil {
		if why := outside(f.MaxRestarts, 0, podsMax); why != "" {
			errs = append(errs, doc.problem([]string{"spec", "failurePolicy", "maxRestarts"}, "%s", why))
		}
		for i, r := range f.Rules {
			if r.Action != "RestartJobSet" && r.Action != "RestartJobSetAndIgnoreMaxRestarts" {
				errs = append(errs, doc.problem([]string{"spec", "failurePolicy", "rules", Index(i), "action"},
					"%q is not read; known are RestartJobSet, RestartJobSetAndIgnoreMaxRestarts", r.Action))
			}
		}
	}
	for i := range s.ReplicatedJobs {
		for k, d := range s.ReplicatedJobs[i].DependsOn {
			if d.Status != "Ready" {
				errs = append(errs, doc.problem([]string{"spec", "replicatedJobs", Index(i), "dependsOn", Index(k), "status"},
					"%q is not read: all pods of a gang are there at once, want Ready", d.Status))
			}
		}
	}
	return errs
}
