package budget

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/spotter-dev/spotter/policy"
	policybudget "github.com/spotter-dev/spotter/policy/budget"
	"github.com/spotter-dev/spotter/policy/kube"
)

// Count accounts for the pods that there are, finished ones too, as gpu-k8s-operator
// does: those that b selects, from when they started until they ended or now. A pod
// that requests none of the resource is tracked and uses nothing.
func Count(b *policy.Budget, resource string, pods []corev1.Pod, now time.Time) policybudget.Account {
	var objects []policybudget.Object
	for i := range pods {
		p := &pods[i]
		if p.Namespace != b.Namespace || !b.Selector.Matches(kube.Labels(p.Labels)) {
			continue
		}
		objects = append(objects, object(p, resource, now))
	}
	return policybudget.CountObjects(b.Window, b.GPUHours, objects)
}

// object returns a pod as the account sees it. One that has not started uses
// nothing yet.
func object(p *corev1.Pod, resource string, now time.Time) policybudget.Object {
	start := p.Status.StartTime
	if start == nil {
		return policybudget.Object{}
	}
	o := policybudget.Object{Start: start.Sub(now), Devices: devices(&p.Spec, corev1.ResourceName(resource))}
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

// devices returns what a pod requests of a resource: what its containers do
// together, or the most that one of those before them does.
func devices(s *corev1.PodSpec, name corev1.ResourceName) float64 {
	var together, before, sidecars float64
	for i := range s.InitContainers {
		c := &s.InitContainers[i]
		x := quantity(c.Resources.Requests, name)
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			sidecars += x
			before = max(before, sidecars)
			continue
		}
		before = max(before, sidecars+x)
	}
	together = sidecars
	for i := range s.Containers {
		together += quantity(s.Containers[i].Resources.Requests, name)
	}
	return max(together, before) + quantity(s.Overhead, name)
}

func quantity(l corev1.ResourceList, name corev1.ResourceName) float64 {
	q, ok := l[name]
	if !ok {
		return 0
	}
	return q.AsApproximateFloat64()
}
