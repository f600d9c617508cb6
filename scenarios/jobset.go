package scenarios

import (
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// A jobSet is the part of a JobSet of the API jobset.x-k8s.io/v1alpha2 that is read: other fields
// are refused.
type jobSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              jobSetSpec `json:"spec"`

	// Status is that of another cluster; FieldsV1 is what the decoder skips.
	Status metav1.FieldsV1 `json:"status"`
}

// A jobSetSpec is what a JobSet wants. StartupPolicy, Network, Coordinator,
// TTLSeconds and ManagedBy may be there and change nothing.
type jobSetSpec struct {
	ReplicatedJobs []replicatedJob    `json:"replicatedJobs"`
	SuccessPolicy  *jobSetSuccess     `json:"successPolicy"`
	FailurePolicy  *jobSetFailure     `json:"failurePolicy"`
	StartupPolicy  *jobSetStartup     `json:"startupPolicy"`
	Suspend        *bool              `json:"suspend"`
	Network        *jobSetNetwork     `json:"network"`
	Coordinator    *jobSetCoordinator `json:"coordinator"`
	TTLSeconds     *int32             `json:"ttlSecondsAfterFinished"`
	ManagedBy      *string            `json:"managedBy"`
}

// A replicatedJob is a number of equal jobs.
type replicatedJob struct {
	Name      string                  `json:"name"`
	GroupName string                  `json:"groupName"`
	Replicas  *int32                  `json:"replicas"` // none means 1
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

type jobSetStartup struct {
	StartupPolicyOrder string `json:"startupPolicyOrder"`
}

type jobSetNetwork struct {
	EnableDNSHostnames       *bool  `json:"enableDNSHostnames"`
	Subdomain                string `json:"subdomain"`
	PublishNotReadyAddresses *bool  `json:"publishNotReadyAddresses"`
}

type jobSetCoordinator struct {
	ReplicatedJob string `json:"replicatedJob"`
	JobIndex      int32  `json:"jobIndex"`
	PodIndex      int32  `json:"podIndex"`
}

// readJobSet reads a JobSet as a gang of all of its pods, with one workload for
// each of its replicated jobs.
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
	s := source{policy.KindJob, &meta, &r.Template.Spec.Template, append(template[:4:4], "spec", "template"), nil,
		r.Template.Annotations, template}
	t, l, a, errs := sc.readWorkload(doc, &s)
	if r.Name == "" {
		errs = append(errs, doc.problem(append(at[:3:3], "name"), "must be set"))
	}
	if slices.ContainsFunc(o.Spec.ReplicatedJobs[:i], func(x replicatedJob) bool { return x.Name == r.Name }) {
		errs = append(errs, doc.problem(append(at[:3:3], "name"), "%q is listed twice", r.Name))
	}
	errs = append(errs, sc.readJobSpec(doc, l, append(template[:4:4], "spec"), &r.Template.Spec, a)...)
	if why := outsideGang(l.Job); why != "" {
		errs = append(errs, doc.problem(append(template[:4:4], "spec", "completions"), "%s", why))
	}
	if r.Replicas != nil {
		if why := outside(*r.Replicas, 1, podsMax/max(l.Job.Pods, 1)); why != "" {
			errs = append(errs, doc.problem(append(at[:3:3], "replicas"), "%s", why))
		} else {
			l.Job.Pods *= *r.Replicas
			l.Job.Completions, l.Replicas = l.Job.Pods, l.Job.Pods
		}
	}
	t.Duration, t.Checkpoint = l.Job.Work, l.Job.Checkpoint
	l.listed = a.releases()
	queued := o.Labels[labelQueue] != ""
	l.suspended = (l.suspended || o.Spec.Suspend != nil && *o.Spec.Suspend) && !queued
	l.gang = &gangLoad{name: t.Namespace + "/" + o.Name, restartsMax: restarts, doc: doc}
	l.gang.queue(queued, a)
	sc.keep(t, l)
	return append(errs, a.errs...)
}

// check refuses what a gang that starts and ends as a whole does not do.
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
