package capture

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
)

// image replaces all images, since a snapshot does not have the images of pods.
const image = "registry.k8s.io/pause:3.10"

// graceDefault is the API server's default termination grace period.
const graceDefault = 30 * time.Second

// A podWriter writes pod specifications, and collects the priority classes of the pods.
type podWriter struct {
	*source
	classes map[string]priorityClass
}

// spec returns the specification of the pods of a load. It combines the requests of all containers
// in one container.
func (c *podWriter) spec(x *load) corev1.PodSpec {
	t := x.t
	s := corev1.PodSpec{
		Containers:   []corev1.Container{{Name: "main", Image: image, Resources: requests(t), Ports: ports(t)}},
		NodeSelector: c.nodeSelector(t), Affinity: c.affinity(t), Tolerations: c.tolerations(t), TopologySpreadConstraints: c.spread(t),
	}
	if t.Grace != graceDefault {
		s.TerminationGracePeriodSeconds = ptr.To(int64(t.Grace / time.Second))
	}
	c.prioritise(&s, t)
	if len(t.Devices) > 0 || t.Uncounted {
		c.leave(1, "workloads' MIG slices and resource claims: the workloads are captured without them")
	}
	for i, v := range t.Volumes {
		switch {
		case !v.Zonal || v.Claim == "" && x.kind == policy.KindStatefulSet: // attachable in all zones, or a claim of the StatefulSet
			continue
		case v.Claim != "":
			s.Volumes = append(s.Volumes, corev1.Volume{Name: volumeName(i), VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: c.names.of("claim", v.Claim)},
			}})
		default:
			s.Volumes = append(s.Volumes, corev1.Volume{Name: volumeName(i), VolumeSource: corev1.VolumeSource{
				Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: claim(&v)}},
			}})
		}
	}
	return s
}

func volumeName(i int) string { return "volume-" + string(rune('a'+i%26)) }

// claims returns the volume claim templates of a StatefulSet.
func claims(t *policy.Template) (out []corev1.PersistentVolumeClaim) {
	for i := range t.Volumes {
		if v := &t.Volumes[i]; v.Claim == "" {
			out = append(out, corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: volumeName(i)}, Spec: claim(v)})
		}
	}
	return out
}

// claim returns a claim for a volume. A snapshot does not record its size.
func claim(v *policy.Volume) corev1.PersistentVolumeClaimSpec {
	mode := corev1.ReadWriteOnce
	switch {
	case v.Once:
		mode = corev1.ReadWriteOncePod
	case !v.Zonal:
		mode = corev1.ReadWriteMany
	}
	return corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{mode},
		Resources: corev1.VolumeResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
		}}
}

// requests returns the requests of a pod. Accelerators are limits too, since Kubernetes requires
// both to be equal.
func requests(t *policy.Template) corev1.ResourceRequirements {
	r, all := &t.Requests, corev1.ResourceList{}
	for _, x := range []struct {
		name corev1.ResourceName
		q    *resource.Quantity
	}{
		{corev1.ResourceCPU, resource.NewMilliQuantity(r.CPU, resource.DecimalSI)},
		{corev1.ResourceMemory, resource.NewQuantity(r.Memory, resource.BinarySI)},
		{corev1.ResourceEphemeralStorage, resource.NewQuantity(r.Storage, resource.BinarySI)},
		{corev1.ResourceName(t.GPUResource), resource.NewQuantity(r.GPU, resource.DecimalSI)},
	} {
		if !x.q.IsZero() {
			all[x.name] = *x.q
		}
	}
	out := corev1.ResourceRequirements{Requests: all}
	if r.GPU > 0 {
		out.Limits = corev1.ResourceList{corev1.ResourceName(t.GPUResource): all[corev1.ResourceName(t.GPUResource)]}
	}
	return out
}

func ports(t *policy.Template) (out []corev1.ContainerPort) {
	for _, p := range t.HostPorts {
		out = append(out, corev1.ContainerPort{ContainerPort: p.Port, HostPort: p.Port, HostIP: p.IP,
			Protocol: corev1.Protocol(p.Protocol)})
	}
	return out
}

// tolerations returns the tolerations of a template, without those that controllers and the API
// server add.
func (c *podWriter) tolerations(t *policy.Template) (out []corev1.Toleration) {
	added := kube.DaemonTolerations()
	for _, x := range t.Tolerations {
		evictions := x.Exists && x.Effect == policy.NoExecute && (x.Key == "node.kubernetes.io/not-ready" ||
			x.Key == "node.kubernetes.io/unreachable")
		if evictions || t.DaemonSet && slices.Contains(added, x) {
			continue
		}
		y := corev1.Toleration{Key: c.names.key(x.Key), Operator: corev1.TolerationOpEqual, Effect: effects[x.Effect]}
		if x.Exists {
			y.Operator = corev1.TolerationOpExists
		} else {
			y.Value = c.names.value(x.Key, x.Value)
		}
		out = append(out, y)
	}
	return out
}

func (c *podWriter) spread(t *policy.Template) (out []corev1.TopologySpreadConstraint) {
	for i := range t.Spread {
		x := &t.Spread[i]
		y := corev1.TopologySpreadConstraint{
			MaxSkew: x.MaxSkew, TopologyKey: c.names.key(x.TopologyKey), WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: c.names.selector(&x.Selector),
		}
		if x.Soft {
			y.WhenUnsatisfiable = corev1.ScheduleAnyway
		}
		if x.MinDomains > 0 {
			y.MinDomains = &x.MinDomains
		}
		if x.IgnoreAffinity {
			y.NodeAffinityPolicy = ptr.To(corev1.NodeInclusionPolicyIgnore)
		}
		if x.HonorTaints {
			y.NodeTaintsPolicy = ptr.To(corev1.NodeInclusionPolicyHonor)
		}
		out = append(out, y)
	}
	return out
}
