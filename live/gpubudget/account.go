package gpubudget

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/gpubudget"
	"github.com/spotter-dev/spotter/policy/kube"
)

// Count counts the usage of the existing pods that b selects, including finished pods, in the same
// way as gpu-k8s-operator: from their start until their end or now. A pod that does not request the
// resource is tracked and uses nothing. held contains the devices of pods for which they are known;
// other pods use the devices that they request.
func Count(b *policy.Budget, resource string, pods []corev1.Pod, held map[types.UID]float64,
	now time.Time) gpubudget.Account {
	var objects []gpubudget.Object
	for i := range pods {
		p := &pods[i]
		if p.Namespace != b.Namespace || !b.Selector.Matches(kube.Labels(p.Labels)) {
			continue
		}
		o := object(p, resource, now)
		if n, known := held[p.UID]; known {
			o.Devices = n
		}
		objects = append(objects, o)
	}
	return gpubudget.CountObjects(b.Window, b.GPUHours, objects)
}

// object converts a pod for the account. A pod that has not started uses nothing yet.
func object(p *corev1.Pod, resource string, now time.Time) gpubudget.Object {
	start := p.Status.StartTime
	if start == nil {
		return gpubudget.Object{}
	}
	o := gpubudget.Object{Start: start.Sub(now), Devices: devices(&p.Spec, resource)}
	if end, ended := endOf(p); ended {
		o.End, o.Ended = end.Sub(now), true
	}
	return o
}

// endOf returns the time at which the last container of a finished pod ended, and whether the pod
// has finished. The pod must have started.
func endOf(p *corev1.Pod) (time.Time, bool) {
	if p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
		return time.Time{}, false
	}
	end := p.Status.StartTime.Time
	for i := range p.Status.ContainerStatuses {
		if t := p.Status.ContainerStatuses[i].State.Terminated; t != nil && t.FinishedAt.After(end) {
			end = t.FinishedAt.Time
		}
	}
	return end, true
}

// devices returns the number of devices of a resource that a pod requests, including its slices.
func devices(s *corev1.PodSpec, resource string) float64 {
	total := kube.Requests(s)
	n := total.Name(corev1.ResourceName(resource), "").AsApproximateFloat64()
	var d kube.Devices
	d.Request(total, nil)
	for _, x := range d.Uses() {
		if x.Resource == resource {
			n += float64(x.Amount) / 1000
		}
	}
	return n
}
