package cluster

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// CacheOptions returns o with what keeps the cache of a manager small: objects are
// held without what nothing here reads, such as the environment of containers. An
// object of the cache must therefore be changed by a patch and never by an update.
func CacheOptions(o cache.Options) cache.Options {
	if o.ByObject == nil {
		o.ByObject = map[client.Object]cache.ByObject{}
	}
	for like, strip := range map[client.Object]func(any) (any, error){
		&corev1.Node{}: stripNode, &corev1.Pod{}: stripPod,
		&appsv1.ReplicaSet{}: stripReplicaSet, &appsv1.Deployment{}: stripDeployment,
		&appsv1.StatefulSet{}: stripStatefulSet, &appsv1.DaemonSet{}: stripDaemonSet, &batchv1.Job{}: stripJob,
		&corev1.PersistentVolume{}: stripMeta, &corev1.PersistentVolumeClaim{}: stripMeta, &corev1.Namespace{}: stripMeta,
		&storagev1.CSINode{}: stripMeta, &v1alpha1.CapacityPool{}: stripMeta, &v1alpha1.GPUBudget{}: stripMeta,
	} {
		o.ByObject[like] = cache.ByObject{Transform: strip}
	}
	return o
}

// applied is the annotation in which kubectl keeps a copy of what it applied.
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

func stripPod(x any) (any, error) {
	if p, ok := x.(*corev1.Pod); ok {
		stripSpec(&p.Spec)
		p.Status.InitContainerStatuses, p.Status.EphemeralContainerStatuses = nil, nil
		p.Status.PodIPs, p.Status.HostIPs = nil, nil
		for i := range p.Status.ContainerStatuses {
			s := &p.Status.ContainerStatuses[i]
			*s = corev1.ContainerStatus{Name: s.Name, Ready: s.Ready, RestartCount: s.RestartCount, State: stripState(s.State)}
		}
	}
	return stripMeta(x)
}

// stripState keeps when a container ended.
func stripState(s corev1.ContainerState) corev1.ContainerState {
	if t := s.Terminated; t != nil {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: t.ExitCode, Reason: t.Reason, FinishedAt: t.FinishedAt}}
	}
	return corev1.ContainerState{}
}

// stripSpec keeps of a pod what decides where it may run and how it ends.
func stripSpec(s *corev1.PodSpec) {
	for _, list := range [...][]corev1.Container{s.Containers, s.InitContainers} {
		for i := range list {
			c := &list[i]
			ports := slices.DeleteFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.HostPort == 0 && !s.HostNetwork })
			if len(ports) == 0 {
				ports = nil
			}
			list[i] = corev1.Container{Name: c.Name, Image: c.Image, Resources: c.Resources, Ports: ports, RestartPolicy: c.RestartPolicy}
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

func stripReplicaSet(x any) (any, error) {
	if r, ok := x.(*appsv1.ReplicaSet); ok {
		stripSpec(&r.Spec.Template.Spec)
		if len(r.OwnerReferences) > 0 { // only a bare one is read further
			r.Spec.Template = corev1.PodTemplateSpec{}
			r.Annotations = nil
		}
		r.Status.Conditions = nil
	}
	return stripMeta(x)
}

func stripDeployment(x any) (any, error) {
	if d, ok := x.(*appsv1.Deployment); ok {
		stripSpec(&d.Spec.Template.Spec)
		d.Status.Conditions = nil
	}
	return stripMeta(x)
}

func stripStatefulSet(x any) (any, error) {
	if d, ok := x.(*appsv1.StatefulSet); ok {
		stripSpec(&d.Spec.Template.Spec)
		d.Status.Conditions = nil
	}
	return stripMeta(x)
}

func stripDaemonSet(x any) (any, error) {
	if d, ok := x.(*appsv1.DaemonSet); ok {
		stripSpec(&d.Spec.Template.Spec)
		d.Status.Conditions = nil
	}
	return stripMeta(x)
}

func stripJob(x any) (any, error) {
	if j, ok := x.(*batchv1.Job); ok {
		stripSpec(&j.Spec.Template.Spec)
		j.Status.UncountedTerminatedPods = nil
	}
	return stripMeta(x)
}
