package scenarios

import (
	"cmp"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
)

// A rollout contains the supported fields of an Argo Rollout. It is simulated as a Deployment, and
// its strategy for new versions has no effect.
type rollout struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              rolloutSpec `json:"spec"`
}

type rolloutSpec struct {
	Replicas    *int32                 `json:"replicas"`
	Selector    *metav1.LabelSelector  `json:"selector"`
	Template    corev1.PodTemplateSpec `json:"template"`
	WorkloadRef *workloadRef           `json:"workloadRef"`
}

// A workloadRef refers to the Deployment whose pod template a Rollout uses.
type workloadRef struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	ScaleDown  string `json:"scaleDown"`
}

func (*rolloutSpec) unreadKeys() map[string]unreadKey { return rolloutKeys }

var rolloutKeys = unreadAll(meaningless, "paused", "strategy", "minReadySeconds", "revisionHistoryLimit",
	"progressDeadlineSeconds", "progressDeadlineAbort", "restartAt", "rollbackWindow", "analysis")

func (*rolloutSpec) openEnded() {}
func (*workloadRef) openEnded() {}

// readRollout reads a Rollout with its own pod template or with that of a Deployment, which it
// scales down unless scaleDown is never.
func (sc *Scenario) readRollout(doc *document, o *rollout, objects []object) []error {
	ref := o.Spec.WorkloadRef
	if ref == nil {
		s := templated(policy.KindDeployment, &o.ObjectMeta, &o.Spec.Template, o.Spec.Selector)
		return sc.readService(doc, s, o.Spec.Replicas, nil)
	}
	if kind := cmp.Or(ref.Kind, "Deployment"); kind != "Deployment" {
		return []error{doc.problem([]string{"spec", "workloadRef", "kind"}, "%q is not read; a Deployment is", kind)}
	}
	for i := range objects {
		d, is := objects[i].value.(*appsv1.Deployment)
		if !is || objects[i].doc.key() != "Deployment "+doc.qualified(ref.Name) {
			continue
		}
		if l := sc.loadOf("Deployment", doc.qualified(ref.Name)); l != nil && ref.ScaleDown != "" &&
			ref.ScaleDown != "never" {
			l.replicas, l.schedule = 0, nil
		}
		s := templated(policy.KindDeployment, &o.ObjectMeta, &d.Spec.Template, d.Spec.Selector)
		return sc.readService(doc, s, o.Spec.Replicas, nil)
	}
	return []error{doc.problem([]string{"spec", "workloadRef", "name"}, "there is no Deployment %q here", ref.Name)}
}

// readBarePod reads a standalone Pod: as a job if it is expected to finish, and otherwise as a
// Deployment with one replica, which is created again when it is lost.
func (sc *Scenario) readBarePod(doc *document, o *corev1.Pod) []error {
	meta := o.ObjectMeta
	pods := max(doc.pods, 1)
	owner, name, owned := doc.owner()
	if owned {
		meta.Name = name
	}
	pod := corev1.PodTemplateSpec{ObjectMeta: o.ObjectMeta, Spec: o.Spec}
	kind := policy.KindDeployment
	_, works := o.Annotations[kube.AnnotationDuration]
	if p := o.Spec.RestartPolicy; works || p == corev1.RestartPolicyNever || p == corev1.RestartPolicyOnFailure ||
		owner == "Job" {
		kind = policy.KindJob
	}
	s := &source{kind: kind, meta: &meta, pod: &pod}
	if kind == policy.KindJob {
		return sc.readWork(doc, s, []string{"spec"}, &batchv1.JobSpec{Parallelism: &pods}, nil)
	}
	if !owned {
		sc.note("pods without a controller are simulated as one replica each, which is recreated when it is lost",
			doc.qualified(meta.Name))
	}
	return sc.readService(doc, s, &pods, nil)
}
