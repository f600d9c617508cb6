package cluster

import (
	"maps"
	"reflect"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CacheOptions returns o with transforms that keep the cache of a manager small: they remove fields
// that are never read, such as the environment of containers, and pods of one owner share equal
// parts. An object of the cache must therefore be changed by a patch, never by an update and never
// in place.
func CacheOptions(o cache.Options) cache.Options {
	o.DefaultTransform = stripMeta
	if o.ByObject == nil {
		o.ByObject = map[client.Object]cache.ByObject{}
	}
	for like, strip := range map[client.Object]func(any) (any, error){
		&corev1.Node{}: stripNode, &corev1.Pod{}: (&podStripper{last: map[types.UID]*corev1.Pod{}}).strip,
		&appsv1.ReplicaSet{}: stripWorkload, &appsv1.Deployment{}: stripWorkload, &appsv1.StatefulSet{}: stripWorkload,
		&appsv1.DaemonSet{}: stripWorkload, &batchv1.Job{}: stripWorkload,
	} {
		o.ByObject[like] = cache.ByObject{Transform: strip}
	}
	return o
}

// applied is the annotation in which kubectl stores the last applied configuration.
const applied = corev1.LastAppliedConfigAnnotation

func stripMeta(x any) (any, error) {
	if o, ok := x.(client.Object); ok {
		o.SetManagedFields(nil)
		if a := o.GetAnnotations(); a[applied] != "" {
			delete(a, applied)
		}
	}
	return x, nil
}

func stripNode(x any) (any, error) {
	if n, ok := x.(*corev1.Node); ok {
		n.Status.Images, n.Status.VolumesInUse, n.Status.Config = nil, nil, nil
		n.Status.DaemonEndpoints = corev1.NodeDaemonEndpoints{}
		n.Status.RuntimeHandlers, n.Status.Features = nil, nil
	}
	return stripMeta(x)
}

// A podStripper strips the pods of one informer. Calls must not overlap.
type podStripper struct {
	last map[types.UID]*corev1.Pod // last pod, by UID of its owner
}

// ownersMax is the number of owners at which a podStripper forgets all of them. Owners that still
// have pods are added again.
const ownersMax = 5000

func (s *podStripper) strip(x any) (any, error) {
	p, ok := x.(*corev1.Pod)
	if !ok {
		return x, nil
	}
	if _, err := stripMeta(p); err != nil {
		return nil, err
	}
	stripSpec(&p.Spec)
	stripPodStatus(&p.Status)
	owner := metav1.GetControllerOfNoCopy(p)
	if owner == nil {
		return p, nil
	}
	if q := s.last[owner.UID]; q != nil && alike(p, q) {
		node := p.Spec.NodeName
		p.Spec = q.Spec
		p.Spec.NodeName = node
		if maps.Equal(p.Labels, q.Labels) {
			p.Labels = q.Labels
		}
		if reflect.DeepEqual(p.OwnerReferences, q.OwnerReferences) {
			p.OwnerReferences = q.OwnerReferences
		}
		if maps.Equal(p.Annotations, q.Annotations) {
			p.Annotations = q.Annotations
		}
	}
	if len(s.last) >= ownersMax {
		clear(s.last)
	}
	s.last[owner.UID] = p
	return p, nil
}

// podConditions are the conditions of pods that are read.
var podConditions = []corev1.PodConditionType{corev1.PodReady, corev1.PodScheduled, corev1.DisruptionTarget}

// stripPodStatus removes everything from s except the fields that show the phase of a pod and the
// end of its containers.
func stripPodStatus(s *corev1.PodStatus) {
	kept := corev1.PodStatus{Phase: s.Phase, StartTime: s.StartTime, NominatedNodeName: s.NominatedNodeName,
		Reason:                s.Reason,
		ResourceClaimStatuses: s.ResourceClaimStatuses}
	for i := range s.Conditions {
		if c := &s.Conditions[i]; slices.Contains(podConditions, c.Type) {
			kept.Conditions = append(kept.Conditions, corev1.PodCondition{
				Type: c.Type, Status: c.Status, Reason: c.Reason, LastTransitionTime: c.LastTransitionTime})
		}
	}
	for i := range s.ContainerStatuses {
		x := &s.ContainerStatuses[i]
		if t := x.State.Terminated; t != nil {
			kept.ContainerStatuses = append(kept.ContainerStatuses, corev1.ContainerStatus{Name: x.Name,
				State: corev1.ContainerState{
					Terminated: &corev1.ContainerStateTerminated{ExitCode: t.ExitCode, Reason: t.Reason, FinishedAt: t.FinishedAt}}})
		}
	}
	*s = kept
}

// stripSpec removes everything from s except the fields that determine where a pod may run and how
// it ends.
func stripSpec(s *corev1.PodSpec) {
	for _, list := range [...][]corev1.Container{s.Containers, s.InitContainers} {
		for i := range list {
			c := &list[i]
			ports := slices.DeleteFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.HostPort == 0 && !s.HostNetwork })
			if len(ports) == 0 {
				ports = nil
			}
			list[i] = corev1.Container{Name: c.Name, Image: c.Image, Resources: c.Resources, Ports: ports,
				RestartPolicy: c.RestartPolicy}
		}
	}
	s.EphemeralContainers, s.ImagePullSecrets, s.HostAliases, s.DNSConfig, s.SecurityContext, s.ReadinessGates = nil, nil, nil, nil, nil, nil
	s.Volumes = slices.DeleteFunc(s.Volumes, func(v corev1.Volume) bool {
		return v.PersistentVolumeClaim == nil && v.Ephemeral == nil && v.HostPath == nil && v.EmptyDir == nil
	})
	if len(s.Volumes) == 0 {
		s.Volumes = nil
	}
}

// stripWorkload removes everything from a workload except the fields that determine its pods and
// their number.
func stripWorkload(x any) (any, error) {
	pods := &corev1.PodTemplateSpec{}
	switch o := x.(type) {
	case *appsv1.ReplicaSet:
		if pods, o.Status.Conditions = &o.Spec.Template, nil; len(o.OwnerReferences) > 0 { // only a ReplicaSet without an owner needs its template
			o.Spec.Template, o.Annotations = corev1.PodTemplateSpec{}, nil
		}
	case *appsv1.Deployment:
		pods, o.Status.Conditions = &o.Spec.Template, nil
	case *appsv1.StatefulSet:
		pods, o.Status.Conditions = &o.Spec.Template, nil
	case *appsv1.DaemonSet:
		pods, o.Status.Conditions = &o.Spec.Template, nil
	case *batchv1.Job:
		pods, o.Status.UncountedTerminatedPods = &o.Spec.Template, nil
	}
	stripSpec(&pods.Spec)
	return stripMeta(x)
}
