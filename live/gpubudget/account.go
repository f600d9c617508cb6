package gpubudget

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/gpubudget"
	"github.com/spotter-dev/spotter/policy/kube"
)

// Count accounts for the pods that there are, finished ones too, as gpu-k8s-operator
// does: those that b selects, from when they started until they ended or now. A pod
// that requests none of the resource is tracked and uses nothing. The devices of the pods in
// held are known; the others hold the devices that they request.
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

// object returns a pod as the account sees it. One that has not started uses
// nothing yet.
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

// endOf returns when the last container of a finished pod ended.
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

// devices returns what a pod requests of a resource, its slices included.
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
