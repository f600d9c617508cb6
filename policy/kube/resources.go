package kube

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/spotter-dev/spotter/policy"
)

// accelerators are the extended resources that instance types can offer.
var accelerators = []string{"amd.com/gpu", "aws.amazon.com/neuron", "habana.ai/gaudi", "nvidia.com/gpu"}

// Counted reports whether decisions, and therefore budgets, take requests for the resource into
// account.
func Counted(resource string) bool {
	return resource == "cpu" || slices.Contains(accelerators, resource)
}

// requestMax returns the largest quantity of a resource that a pod may request. Larger requests
// could overflow the sums over a cluster, so that a pod that fits nowhere would seem to fit
// everywhere.
func requestMax(k corev1.ResourceName) resource.Quantity {
	if k == corev1.ResourceMemory || k == corev1.ResourceEphemeralStorage {
		return resource.MustParse("1Pi")
	}
	return resource.MustParse("1M")
}

// offered reports whether an instance type can offer the resource.
func offered(k corev1.ResourceName) bool {
	switch k {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return true
	}
	return slices.Contains(accelerators, string(k))
}

// NodeResources returns the resources that a node offers and the name of its accelerator. If there
// are several accelerators, the first by name is used. The name is empty without an
// accelerator.
func NodeResources(l corev1.ResourceList) (policy.Resources, string) {
	r := policy.Resources{
		CPU: l.Cpu().MilliValue(), Memory: l.Memory().Value(), Storage: l.StorageEphemeral().Value(), Pods: l.Pods().Value(),
	}
	for _, k := range accelerators {
		if q, ok := l[corev1.ResourceName(k)]; ok && q.Sign() > 0 {
			r.GPU = q.Value()
			return r, k
		}
	}
	return r, ""
}

// assumed contains the requests that the scheduler assumes for containers that state none, when it
// scores nodes (pkg/scheduler/util/pod_resources.go).
var assumed = corev1.ResourceList{
	corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("200Mi"),
}

// assume returns the milli-CPU and bytes of memory that scoring adds to the requests of a pod.
func assume(s *corev1.PodSpec) (cpu, memory int64) {
	stated, scored := podRequests(s, nil), podRequests(s, assumed)
	return scored.Cpu().MilliValue() - stated.Cpu().MilliValue(), scored.Memory().Value() - stated.Memory().Value()
}

// Requests returns the effective requests of one pod as the scheduler counts them: the larger of
// the sum over its containers and sidecars, and the requests of any init container with the
// sidecars that start before it; plus the overhead.
func Requests(s *corev1.PodSpec) corev1.ResourceList { return podRequests(s, nil) }

// podRequests returns the effective requests of one pod. Containers that do not state a request
// have the one in missing.
func podRequests(s *corev1.PodSpec, missing corev1.ResourceList) corev1.ResourceList {
	total := corev1.ResourceList{}
	for i := range s.Containers {
		add(total, containerRequests(s.Containers[i].Resources, missing))
	}
	sidecars, starting := corev1.ResourceList{}, corev1.ResourceList{}
	for i := range s.InitContainers {
		c := &s.InitContainers[i]
		need := containerRequests(c.Resources, missing)
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			add(total, need)
			add(sidecars, need)
			atLeast(starting, sidecars)
			continue
		}
		add(need, sidecars)
		atLeast(starting, need)
	}
	atLeast(total, starting)
	if s.Resources != nil { // requests of the pod replace the sum over its containers
		maps.Copy(total, containerRequests(corev1.ResourceRequirements{Requests: s.Resources.Requests,
			Limits: s.Resources.Limits}, nil))
	}
	add(total, s.Overhead)
	return total
}

// containerRequests returns the requests of a container. Requests that are not set default to the
// limits, as in the API server, and then to missing.
func containerRequests(c corev1.ResourceRequirements, missing corev1.ResourceList) corev1.ResourceList {
	all := maps.Clone(missing)
	if all == nil {
		all = corev1.ResourceList{}
	}
	maps.Copy(all, c.Limits)
	maps.Copy(all, c.Requests)
	return all
}

func add(to, x corev1.ResourceList) {
	for k, q := range x {
		sum := to[k].DeepCopy()
		sum.Add(q)
		to[k] = sum
	}
}

func atLeast(to, x corev1.ResourceList) {
	for k, q := range x {
		if have, ok := to[k]; !ok || have.Cmp(q) < 0 {
			to[k] = q
		}
	}
}

func (r *Reader) resources(name string, total corev1.ResourceList) (policy.Resources, string) {
	out, gpu := policy.Resources{Pods: 1}, ""
	for _, k := range slices.Sorted(maps.Keys(total)) {
		q := total[k]
		if q.Sign() < 0 {
			r.Fail.tell([]string{"spec", "containers"}, "%s of %s is negative", k, q.String())
			continue
		}
		if !offered(k) {
			_, counted := unitsOf(string(k))
			switch {
			case q.Sign() <= 0:
			case counted:
				r.warn("%s: its request for %s counts in budgets and does not decide where it runs: no instance type in the catalog offers it", name, k)
			default:
				r.warn("%s: its request for %s is ignored: no instance type in the catalog offers it", name, k)
			}
			continue
		}
		if most := requestMax(k); q.Cmp(most) > 0 {
			r.Fail.tell([]string{"spec", "containers"}, "%s of %s is more than %s", k, q.String(), most.String())
			q = most
		}
		switch {
		case q.Sign() == 0:
		case k == corev1.ResourceCPU:
			out.CPU = q.MilliValue()
		case k == corev1.ResourceMemory:
			out.Memory = q.Value()
		case k == corev1.ResourceEphemeralStorage:
			out.Storage = q.Value()
		default: // an accelerator
			if gpu != "" {
				r.Fail.tell([]string{"spec", "containers"}, "requests both %s and %s", gpu, k)
				continue
			}
			out.GPU, gpu = q.Value(), string(k)
		}
	}
	return out, gpu
}
