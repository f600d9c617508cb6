package kube

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// A Reader converts pod specifications into Templates. Its functions provide the information that a
// pod specification lacks.
type Reader struct {
	// Fail is called for errors, with the path in the pod template.
	Fail Fail

	// Warn is called for parts that are ignored; it may be nil.
	Warn func(format string, args ...any)

	// Priority returns the PriorityClass called class, or the default of pods without a class if
	// the name is empty. Nil means that no classes exist.
	Priority func(class string) (Priority, error)

	// Claim returns the volume of the PersistentVolumeClaim called name. If it is nil, each claim
	// is a block volume in one zone that the pods of the template share, as with a default storage
	// class.
	Claim func(name string) policy.Volume

	// Namespaces returns the names of the namespaces that s selects. If it is nil, only selectors
	// by the name of the namespace are supported.
	Namespaces func(s *metav1.LabelSelector) ([]string, error)
}

func (r *Reader) warn(format string, args ...any) {
	if r.Warn != nil {
		r.Warn(format, args...)
	}
}

// Template fills t from the labels and the specification of its pods. The Name and Namespace of t
// must be set.
func (r *Reader) Template(t *policy.Template, labels map[string]string, s *corev1.PodSpec) {
	t.Labels = Labels(labels)
	total := Requests(s)
	t.Requests, t.GPUResource = r.resources(t.Name, total)
	var d Devices
	d.Request(total, nil)
	t.Devices, t.Uncounted = d.Uses(), d.Unknown || len(s.ResourceClaims) > 0
	t.AssumedCPU, t.AssumedMemory = assume(s)
	t.NodeSelector = Labels(s.NodeSelector)
	t.Grace = 30 * time.Second // the default of the API server
	if s.TerminationGracePeriodSeconds != nil {
		t.Grace = time.Duration(*s.TerminationGracePeriodSeconds) * time.Second
	}
	for _, x := range s.Tolerations {
		t.Tolerations = append(t.Tolerations, policy.Toleration{
			Key: x.Key, Exists: x.Operator == corev1.TolerationOpExists, Value: x.Value, Effect: v1alpha1.Effect(x.Effect),
		})
	}
	r.priority(t, s)
	r.affinity(t, s.Affinity)
	for i := range s.TopologySpreadConstraints {
		t.Spread = append(t.Spread, r.spread(t, i, &s.TopologySpreadConstraints[i]))
	}
	r.ports(t, s)
	r.volumes(t, s)
}

func (r *Reader) priority(t *policy.Template, s *corev1.PodSpec) {
	var class Priority
	if r.Priority != nil {
		var err error
		if class, err = r.Priority(s.PriorityClassName); err != nil {
			r.Fail.tell([]string{"spec", "priorityClassName"}, "%v", err)
			return
		}
	}
	t.PriorityClass, t.Priority, t.PreemptionNever = class.Name, class.Value, class.Never
	if s.Priority != nil && s.PriorityClassName == "" {
		t.Priority = *s.Priority
	}
	if s.PreemptionPolicy != nil {
		t.PreemptionNever = *s.PreemptionPolicy == corev1.PreemptNever
	}
}

func (r *Reader) spread(t *policy.Template, i int, c *corev1.TopologySpreadConstraint) policy.Spread {
	at := []string{"spec", "topologySpreadConstraints", Index(i)}
	if c.MaxSkew < 1 {
		r.Fail.tell(join(at, "maxSkew"), "%d is not above 0", c.MaxSkew)
	}
	if c.TopologyKey == "" {
		r.Fail.tell(join(at, "topologyKey"), "must be set")
	}
	out := policy.Spread{TopologyKey: c.TopologyKey, MaxSkew: c.MaxSkew}
	switch c.WhenUnsatisfiable {
	case corev1.DoNotSchedule, "":
	case corev1.ScheduleAnyway:
		out.Soft = true
	default:
		r.Fail.tell(join(at, "whenUnsatisfiable"), "%q is not DoNotSchedule or ScheduleAnyway", c.WhenUnsatisfiable)
	}
	if c.MinDomains != nil {
		out.MinDomains = *c.MinDomains
	}
	out.IgnoreAffinity = c.NodeAffinityPolicy != nil && *c.NodeAffinityPolicy == corev1.NodeInclusionPolicyIgnore
	out.HonorTaints = c.NodeTaintsPolicy != nil && *c.NodeTaintsPolicy == corev1.NodeInclusionPolicyHonor
	out.Selector = r.selector(c.LabelSelector, join(at, "labelSelector"))
	addKeys(&out.Selector, t.Labels, c.MatchLabelKeys, policy.OpIn)
	return out
}

// ports adds the host ports that a pod occupies while it runs, including those of its sidecars.
// With host networking, every container port is a host port.
func (r *Reader) ports(t *policy.Template, s *corev1.PodSpec) {
	for k, list := range [...][]corev1.Container{s.InitContainers, s.Containers} {
		for i := range list {
			if p := list[i].RestartPolicy; k == 0 && (p == nil || *p != corev1.ContainerRestartPolicyAlways) {
				continue // the scheduler ignores ports of init containers that end before the pod runs
			}
			for _, p := range list[i].Ports {
				port := p.HostPort
				if s.HostNetwork && port == 0 {
					port = p.ContainerPort
				}
				if port > 0 {
					t.HostPorts = append(t.HostPorts, policy.HostPort{IP: p.HostIP, Port: port,
						Protocol: cmp.Or(string(p.Protocol), "TCP")})
				}
			}
		}
	}
}

// volumes adds the volumes of the pod specification that come from claims.
func (r *Reader) volumes(t *policy.Template, s *corev1.PodSpec) {
	for _, v := range s.Volumes {
		switch {
		case v.PersistentVolumeClaim != nil && r.Claim != nil:
			t.Volumes = append(t.Volumes, r.Claim(v.PersistentVolumeClaim.ClaimName))
		case v.PersistentVolumeClaim != nil:
			t.Volumes = append(t.Volumes, policy.Volume{Zonal: true, Claim: v.PersistentVolumeClaim.ClaimName})
		case v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil:
			t.Volumes = append(t.Volumes, Volume(&v.Ephemeral.VolumeClaimTemplate.Spec))
		}
	}
}

// Volume returns the volume for a claim that belongs to one pod. A volume that several nodes can
// mount is a file system that all zones can reach.
func Volume(c *corev1.PersistentVolumeClaimSpec) policy.Volume {
	return policy.Volume{
		Zonal: !slices.Contains(c.AccessModes, corev1.ReadWriteMany) && !slices.Contains(c.AccessModes, corev1.ReadOnlyMany),
		Once:  slices.Contains(c.AccessModes, corev1.ReadWriteOncePod),
	}
}

// DaemonTolerations returns the tolerations that the DaemonSet controller adds to its pods.
func DaemonTolerations() []policy.Toleration {
	return []policy.Toleration{
		{Key: "node.kubernetes.io/not-ready", Exists: true, Effect: policy.NoExecute},
		{Key: "node.kubernetes.io/unreachable", Exists: true, Effect: policy.NoExecute},
		{Key: "node.kubernetes.io/disk-pressure", Exists: true, Effect: policy.NoSchedule},
		{Key: "node.kubernetes.io/memory-pressure", Exists: true, Effect: policy.NoSchedule},
		{Key: "node.kubernetes.io/pid-pressure", Exists: true, Effect: policy.NoSchedule},
		{Key: "node.kubernetes.io/unschedulable", Exists: true, Effect: policy.NoSchedule},
	}
}
