package recorded

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// keptAnnotations are those of pods that a run reads.
var keptAnnotations = []string{
	"karpenter.sh/do-not-disrupt", "cluster-autoscaler.kubernetes.io/safe-to-evict",
}

// pauseImage replaces the image of a container whose image was not recorded.
const pauseImage = "registry.k8s.io/pause:3.10"

// defaultRequests are those of a container that has none.
var defaultRequests = []struct {
	name   corev1.ResourceName
	amount string
}{{corev1.ResourceCPU, defaultCPU}, {corev1.ResourceMemory, defaultMemory}}

// template makes t the pod template of x.
func (k *simkube) template(x *object, t *corev1.PodTemplateSpec) {
	k.reduce(x.id(), t)
	if len(x.pod.Spec.Containers) > 0 && !reflect.DeepEqual(x.pod.Spec, t.Spec) {
		note(&k.retemplated, x.id())
	}
	x.pod, x.shape = *t, shapeOf(&t.Spec)
}

// reduce cuts a pod template down to what scheduling reads. What its containers
// run, and with which secrets, has no place in a scenario.
func (k *simkube) reduce(id string, t *corev1.PodTemplateSpec) {
	s := &t.Spec
	out := corev1.PodTemplateSpec{}
	out.Labels = t.Labels
	for _, key := range keptAnnotations {
		if v, ok := t.Annotations[key]; ok {
			if out.Annotations == nil {
				out.Annotations = map[string]string{}
			}
			out.Annotations[key] = v
		}
	}
	if len(s.NodeSelector) > 0 || s.NodeName != "" || s.Affinity != nil && s.Affinity.NodeAffinity != nil {
		note(&k.chosen, id)
	}
	missing := false
	spec := corev1.PodSpec{
		Containers: reduceContainers(s.Containers, true, &missing), InitContainers: reduceContainers(s.InitContainers,
			false, &missing),
		TopologySpreadConstraints: s.TopologySpreadConstraints, PriorityClassName: s.PriorityClassName, Priority: s.Priority,
		PreemptionPolicy: s.PreemptionPolicy, TerminationGracePeriodSeconds: s.TerminationGracePeriodSeconds,
		Overhead: s.Overhead, HostNetwork: s.HostNetwork, RestartPolicy: s.RestartPolicy, Tolerations: slices.Clip(s.Tolerations),
	}
	if missing {
		note(&k.defaulted, id)
	}
	if a := s.Affinity; a != nil && (a.PodAffinity != nil || a.PodAntiAffinity != nil) {
		spec.Affinity = &corev1.Affinity{PodAffinity: a.PodAffinity, PodAntiAffinity: a.PodAntiAffinity}
	}
	for i := range s.Volumes {
		if v := &s.Volumes[i]; v.PersistentVolumeClaim != nil || v.Ephemeral != nil {
			spec.Volumes = append(spec.Volumes, *v)
		}
	}
	if shapeOf(&spec).gpu > 0 {
		spec.Tolerations = append(spec.Tolerations, corev1.Toleration{Key: gpuTaint, Operator: corev1.TolerationOpExists})
	}
	out.Spec = spec
	*t = out
}

// reduceContainers keeps name, image, requests and the ports of the node. Of
// containers that fill, it sets missing when one gets the default requests.
func reduceContainers(in []corev1.Container, fill bool, missing *bool) []corev1.Container {
	var out []corev1.Container
	for i := range in {
		c := &in[i]
		requests := corev1.ResourceList{}
		maps.Copy(requests, c.Resources.Limits) // as the API server completes them
		maps.Copy(requests, c.Resources.Requests)
		for _, least := range defaultRequests {
			if _, has := requests[least.name]; !has && fill {
				requests[least.name] = resource.MustParse(least.amount)
				*missing = true
			}
		}
		x := corev1.Container{Name: c.Name, Image: c.Image, RestartPolicy: c.RestartPolicy}
		if x.Image == "" {
			x.Image = pauseImage
		}
		if len(requests) > 0 {
			x.Resources.Requests = requests
		}
		for _, p := range c.Ports {
			if p.HostPort > 0 {
				x.Ports = append(x.Ports, p)
			}
		}
		out = append(out, x)
	}
	return out
}

// plain returns v as maps, lists and values, as its JSON has them, without what
// is null.
func plain(v any) (any, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return plainJSON(data)
}

func plainJSON(data []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	return values(v), nil
}

// values turns numbers into such that YAML writes as numbers, and drops nulls.
func values(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, x := range v {
			if v[key] = values(x); v[key] == nil {
				delete(v, key)
			}
		}
	case []any:
		for i := range v {
			v[i] = values(v[i])
		}
	case json.Number:
		if n, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
			return n
		}
		if x, err := strconv.ParseFloat(v.String(), 64); err == nil {
			return x
		}
		return v.String()
	}
	return v
}
