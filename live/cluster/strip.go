package cluster

import (
	"maps"
	"reflect"
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CacheOptions returns options with transforms that keep the cache of a manager small: they remove
// fields that are never read, such as the environment of containers. An object of the cache must
// therefore be changed by a patch, never by an update and never in place.
func CacheOptions() cache.Options {
	pods := &podStripper{last: map[types.UID]*corev1.Pod{}}
	return cache.Options{DefaultTransform: stripMeta, ByObject: map[client.Object]cache.ByObject{
		&corev1.Node{}:        {Transform: stripNode},
		&corev1.Pod{}:         {Transform: pods.strip},
		&appsv1.ReplicaSet{}:  {Transform: stripWorkload},
		&appsv1.Deployment{}:  {Transform: stripWorkload},
		&appsv1.StatefulSet{}: {Transform: stripWorkload},
		&appsv1.DaemonSet{}:   {Transform: stripWorkload},
		&batchv1.Job{}:        {Transform: stripWorkload},
	}}
}

func stripMeta(x any) (any, error) {
	if o, ok := x.(client.Object); ok {
		o.SetManagedFields(nil)
		delete(o.GetAnnotations(), corev1.LastAppliedConfigAnnotation)
	}
	return x, nil
}

func stripNode(x any) (any, error) {
	if n, ok := x.(*corev1.Node); ok {
		n.Status.Images = nil
		n.Status.VolumesInUse = nil
		n.Status.Config = nil
		n.Status.DaemonEndpoints = corev1.NodeDaemonEndpoints{}
		n.Status.RuntimeHandlers = nil
		n.Status.Features = nil
	}
	return stripMeta(x)
}

// A podStripper strips pods, and lets a pod share memory with the previous pod of its owner where
// they are equal.
type podStripper struct {
	mu   sync.Mutex
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
	s.mu.Lock()
	defer s.mu.Unlock()
	if previous := s.last[owner.UID]; previous != nil && alike(p, previous) {
		node := p.Spec.NodeName
		p.Spec = previous.Spec
		p.Spec.NodeName = node
		if maps.Equal(p.Labels, previous.Labels) {
			p.Labels = previous.Labels
		}
		if reflect.DeepEqual(p.OwnerReferences, previous.OwnerReferences) {
			p.OwnerReferences = previous.OwnerReferences
		}
		if maps.Equal(p.Annotations, previous.Annotations) {
			p.Annotations = previous.Annotations
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

// stripPodStatus keeps the fields of a status that are read: phase, reason, start, nominated node,
// resource claims, podConditions, and how containers terminated.
func stripPodStatus(s *corev1.PodStatus) {
	kept := corev1.PodStatus{
		Phase:                 s.Phase,
		Reason:                s.Reason,
		StartTime:             s.StartTime,
		NominatedNodeName:     s.NominatedNodeName,
		ResourceClaimStatuses: s.ResourceClaimStatuses,
	}
	for i := range s.Conditions {
		if c := &s.Conditions[i]; slices.Contains(podConditions, c.Type) {
			kept.Conditions = append(kept.Conditions, corev1.PodCondition{
				Type: c.Type, Status: c.Status, Reason: c.Reason, LastTransitionTime: c.LastTransitionTime})
		}
	}
	for i := range s.ContainerStatuses {
		if t := s.ContainerStatuses[i].State.Terminated; t != nil {
			end := &corev1.ContainerStateTerminated{ExitCode: t.ExitCode, Reason: t.Reason, FinishedAt: t.FinishedAt}
			kept.ContainerStatuses = append(kept.ContainerStatuses, corev1.ContainerStatus{
				Name: s.ContainerStatuses[i].Name, State: corev1.ContainerState{Terminated: end}})
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
	s.EphemeralContainers = nil
	s.ImagePullSecrets = nil
	s.HostAliases = nil
	s.DNSConfig = nil
	s.SecurityContext = nil
	s.ReadinessGates = nil
	s.Volumes = slices.DeleteFunc(s.Volumes, func(v corev1.Volume) bool {
		return v.PersistentVolumeClaim == nil && v.Ephemeral == nil && v.HostPath == nil && v.EmptyDir == nil
	})
	if len(s.Volumes) == 0 {
		s.Volumes = nil
	}
}

// stripWorkload strips the pod template of a workload, and removes conditions of its status.
func stripWorkload(x any) (any, error) {
	pods := &corev1.PodTemplateSpec{}
	switch o := x.(type) {
	case *appsv1.ReplicaSet:
		pods, o.Status.Conditions = &o.Spec.Template, nil
		if len(o.OwnerReferences) > 0 { // only a ReplicaSet without an owner needs its template
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
