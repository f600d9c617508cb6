package scenarios

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// accelerators are the extended resources that a node type can offer.
var accelerators = []string{"amd.com/gpu", "aws.amazon.com/neuron", "habana.ai/gaudi", "nvidia.com/gpu"}

// A podReader turns the pod specification of a workload into a Template.
type podReader struct {
	sc   *Scenario
	doc  *document
	path []string // of the pod template
	errs []error
}

func (r *podReader) fail(path []string, format string, args ...any) {
	r.errs = append(r.errs, r.doc.problem(append(slices.Clip(r.path), path...), format, args...))
}

func (r *podReader) warn(format string, args ...any) {
	r.sc.Warnings = append(r.sc.Warnings, fmt.Sprintf(format, args...))
}

// read fills t, whose Name and Namespace are set.
func (r *podReader) read(t *policy.Template, pod *corev1.PodTemplateSpec) {
	s := &pod.Spec
	t.Labels = labelList(pod.Labels)
	t.Requests, t.GPUResource = r.requests(t.Name, s)
	t.NodeSelector = labelList(s.NodeSelector)
	t.Grace = 30 * time.Second // as the API server's default
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
	if len(s.SchedulingGates) > 0 {
		r.warn("%s: its scheduling gates are taken to be open", t.Name)
	}
}

// requests returns the effective requests of one pod, as the scheduler counts
// them: the larger of what runs at once and of what each init container needs
// beside the sidecars started before it, plus the overhead.
func (r *podReader) requests(name string, s *corev1.PodSpec) (policy.Resources, string) {
	total := corev1.ResourceList{}
	for i := range s.Containers {
		add(total, containerRequests(s.Containers[i].Resources))
	}
	sidecars, starting := corev1.ResourceList{}, corev1.ResourceList{}
	for i := range s.InitContainers {
		c := &s.InitContainers[i]
		need := containerRequests(c.Resources)
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
	if s.Resources != nil { // the pod's own requests replace the sum
		maps.Copy(total, containerRequests(corev1.ResourceRequirements{Requests: s.Resources.Requests, Limits: s.Resources.Limits}))
	}
	add(total, s.Overhead)
	return r.resources(name, total)
}

// containerRequests returns requests, completed by limits as the API server
// does.
func containerRequests(c corev1.ResourceRequirements) corev1.ResourceList {
	all := corev1.ResourceList{}
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

func (r *podReader) resources(name string, total corev1.ResourceList) (policy.Resources, string) {
	out, gpu := policy.Resources{Pods: 1}, ""
	for _, k := range slices.Sorted(maps.Keys(total)) {
		q := total[k]
		if q.Sign() < 0 {
			r.fail([]string{"spec", "containers"}, "%s of %s is negative", k, q.String())
		}
		if most := requestMax(k); q.Cmp(most) > 0 {
			r.fail([]string{"spec", "containers"}, "%s of %s is more than %s", k, q.String(), most.String())
		}
		switch {
		case q.Sign() == 0:
		case k == corev1.ResourceCPU:
			out.CPU = q.MilliValue()
		case k == corev1.ResourceMemory:
			out.Memory = q.Value()
		case k == corev1.ResourceEphemeralStorage:
			out.Storage = q.Value()
		case slices.Contains(accelerators, string(k)):
			if gpu != "" {
				r.fail([]string{"spec", "containers"}, "asks for both %s and %s", gpu, k)
			}
			out.GPU, gpu = q.Value(), string(k)
		default:
			r.warn("%s: its request for %s is left out: no node type of the catalog offers it", name, k)
		}
	}
	return out, gpu
}

func (r *podReader) priority(t *policy.Template, s *corev1.PodSpec) {
	class := r.sc.defaultPriority
	if s.PriorityClassName != "" {
		var ok bool
		if class, ok = r.sc.priorities[s.PriorityClassName]; !ok {
			r.fail([]string{"spec", "priorityClassName"}, "no PriorityClass is called %q%s",
				s.PriorityClassName, suggestion(s.PriorityClassName, r.sc.priorities))
			return
		}
	}
	t.PriorityClass, t.Priority, t.PreemptionNever = class.name, class.value, class.never
	if s.Priority != nil && s.PriorityClassName == "" {
		t.Priority = *s.Priority
	}
	if s.PreemptionPolicy != nil {
		t.PreemptionNever = *s.PreemptionPolicy == corev1.PreemptNever
	}
}

func (r *podReader) affinity(t *policy.Template, a *corev1.Affinity) {
	if a == nil {
		return
	}
	at := []string{"spec", "affinity"}
	if n := a.NodeAffinity; n != nil {
		r.nodeAffinity(t, n, append(at, "nodeAffinity"))
	}
	if p := a.PodAffinity; p != nil {
		t.PodAffinity = r.podTerms(t, append(slices.Clip(at), "podAffinity"),
			p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if p := a.PodAntiAffinity; p != nil {
		t.PodAntiAffinity = r.podTerms(t, append(slices.Clip(at), "podAntiAffinity"),
			p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution)
	}
}

func (r *podReader) nodeAffinity(t *policy.Template, n *corev1.NodeAffinity, at []string) {
	if req := n.RequiredDuringSchedulingIgnoredDuringExecution; req != nil {
		at := append(slices.Clip(at), "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
		for i := range req.NodeSelectorTerms {
			term := r.nodeTerm(&req.NodeSelectorTerms[i], append(slices.Clip(at), index(i)))
			if len(term.Labels)+len(term.Fields) > 0 { // an empty term matches no node
				t.Affinity = append(t.Affinity, term)
			}
		}
		if len(t.Affinity) == 0 {
			r.fail(at, "no term matches any node")
		}
	}
	preferred := append(slices.Clip(at), "preferredDuringSchedulingIgnoredDuringExecution")
	for i := range n.PreferredDuringSchedulingIgnoredDuringExecution {
		p := &n.PreferredDuringSchedulingIgnoredDuringExecution[i]
		path := append(slices.Clip(preferred), index(i))
		t.Preferred = append(t.Preferred, policy.PreferredNodeTerm{
			Weight: r.weight(p.Weight, path),
			Term:   r.nodeTerm(&p.Preference, append(slices.Clip(path), "preference")),
		})
	}
}

func (r *podReader) weight(w int32, at []string) int32 {
	if w < 1 || w > 100 {
		r.fail(append(slices.Clip(at), "weight"), "%d is not from 1 to 100", w)
	}
	return w
}

func (r *podReader) nodeTerm(t *corev1.NodeSelectorTerm, at []string) policy.NodeTerm {
	return policy.NodeTerm{
		Labels: r.nodeRequirements(t.MatchExpressions, append(slices.Clip(at), "matchExpressions")),
		Fields: r.nodeRequirements(t.MatchFields, append(slices.Clip(at), "matchFields")),
	}
}

var operators = map[string]policy.Operator{
	"In": policy.OpIn, "NotIn": policy.OpNotIn, "Exists": policy.OpExists, "DoesNotExist": policy.OpDoesNotExist,
	"Gt": policy.OpGt, "Lt": policy.OpLt,
}

func (r *podReader) nodeRequirements(in []corev1.NodeSelectorRequirement, at []string) []policy.Requirement {
	var out []policy.Requirement
	for i, e := range in {
		op, ok := operators[string(e.Operator)]
		if !ok {
			r.fail(append(slices.Clip(at), index(i), "operator"), "%q is no operator; known are In, NotIn, Exists, DoesNotExist, Gt, Lt", e.Operator)
			continue
		}
		if op == policy.OpGt || op == policy.OpLt {
			if len(e.Values) != 1 {
				r.fail(append(slices.Clip(at), index(i), "values"), "%s takes one integer, got %d values", e.Operator, len(e.Values))
			} else if _, err := strconv.ParseInt(e.Values[0], 10, 64); err != nil {
				r.fail(append(slices.Clip(at), index(i), "values"), "%q is not an integer", e.Values[0])
			}
		}
		out = append(out, policy.Requirement{Key: e.Key, Op: op, Values: e.Values})
	}
	return out
}

func (r *podReader) podTerms(t *policy.Template, at []string, required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) []policy.PodTerm {
	var out []policy.PodTerm
	for i := range required {
		path := append(slices.Clip(at), "requiredDuringSchedulingIgnoredDuringExecution", index(i))
		out = append(out, r.podTerm(t, &required[i], 0, path))
	}
	for i := range preferred {
		path := append(slices.Clip(at), "preferredDuringSchedulingIgnoredDuringExecution", index(i))
		w := r.weight(preferred[i].Weight, path)
		out = append(out, r.podTerm(t, &preferred[i].PodAffinityTerm, w, append(slices.Clip(path), "podAffinityTerm")))
	}
	return out
}

func (r *podReader) podTerm(t *policy.Template, x *corev1.PodAffinityTerm, weight int32, at []string) policy.PodTerm {
	if x.TopologyKey == "" {
		r.fail(append(slices.Clip(at), "topologyKey"), "must be set")
	}
	out := policy.PodTerm{Weight: weight, TopologyKey: x.TopologyKey, Namespaces: slices.Sorted(slices.Values(x.Namespaces))}
	out.Selector = r.selector(x.LabelSelector, append(slices.Clip(at), "labelSelector"))
	addKeys(&out.Selector, t.Labels, x.MatchLabelKeys, policy.OpIn)
	addKeys(&out.Selector, t.Labels, x.MismatchLabelKeys, policy.OpNotIn)
	if n := x.NamespaceSelector; n != nil {
		s := r.selector(n, append(slices.Clip(at), "namespaceSelector"))
		out.AllSpaces = s.Everything
		for _, q := range s.Requirements {
			if q.Key != "kubernetes.io/metadata.name" || q.Op != policy.OpIn {
				r.fail(append(slices.Clip(at), "namespaceSelector"), "only {} and kubernetes.io/metadata.name are known here")
				continue
			}
			out.Namespaces = append(out.Namespaces, q.Values...)
		}
	}
	return out
}

// addKeys adds one requirement for each key that the pod's labels have.
func addKeys(s *policy.Selector, labels []policy.Label, keys []string, op policy.Operator) {
	for _, k := range keys {
		if v, ok := policy.FindLabel(labels, k); ok {
			s.Requirements = append(s.Requirements, policy.Requirement{Key: k, Op: op, Values: []string{v}})
			s.Everything = false
		}
	}
}

// selector returns s as requirements, ascending by key. None matches nothing,
// an empty one everything.
func (r *podReader) selector(s *metav1.LabelSelector, at []string) policy.Selector {
	out, err := selectorOf(s)
	if err != nil {
		r.fail(at, "%v", err)
	}
	return out
}

func selectorOf(s *metav1.LabelSelector) (policy.Selector, error) {
	if s == nil {
		return policy.Selector{}, nil
	}
	var out policy.Selector
	for _, l := range labelList(s.MatchLabels) {
		out.Requirements = append(out.Requirements, policy.Requirement{Key: l.Key, Op: policy.OpIn, Values: []string{l.Value}})
	}
	for _, e := range s.MatchExpressions {
		op, ok := operators[string(e.Operator)]
		if !ok || op > policy.OpDoesNotExist {
			return out, fmt.Errorf("%q is no operator; known are In, NotIn, Exists, DoesNotExist", e.Operator)
		}
		if sets := op == policy.OpIn || op == policy.OpNotIn; sets == (len(e.Values) == 0) {
			return out, fmt.Errorf("%s of %s with %d values", e.Operator, e.Key, len(e.Values))
		}
		out.Requirements = append(out.Requirements, policy.Requirement{Key: e.Key, Op: op, Values: e.Values})
	}
	slices.SortStableFunc(out.Requirements, func(a, b policy.Requirement) int { return cmp.Compare(a.Key, b.Key) })
	out.Everything = len(out.Requirements) == 0
	return out, nil
}

func (r *podReader) spread(t *policy.Template, i int, c *corev1.TopologySpreadConstraint) policy.Spread {
	at := []string{"spec", "topologySpreadConstraints", index(i)}
	if c.MaxSkew < 1 {
		r.fail(append(slices.Clip(at), "maxSkew"), "%d is not above 0", c.MaxSkew)
	}
	if c.TopologyKey == "" {
		r.fail(append(slices.Clip(at), "topologyKey"), "must be set")
	}
	out := policy.Spread{TopologyKey: c.TopologyKey, MaxSkew: c.MaxSkew}
	switch c.WhenUnsatisfiable {
	case corev1.DoNotSchedule, "":
	case corev1.ScheduleAnyway:
		out.Soft = true
	default:
		r.fail(append(slices.Clip(at), "whenUnsatisfiable"), "%q is not DoNotSchedule or ScheduleAnyway", c.WhenUnsatisfiable)
	}
	if c.MinDomains != nil {
		out.MinDomains = *c.MinDomains
	}
	out.IgnoreAffinity = c.NodeAffinityPolicy != nil && *c.NodeAffinityPolicy == corev1.NodeInclusionPolicyIgnore
	out.HonorTaints = c.NodeTaintsPolicy != nil && *c.NodeTaintsPolicy == corev1.NodeInclusionPolicyHonor
	out.Selector = r.selector(c.LabelSelector, append(slices.Clip(at), "labelSelector"))
	addKeys(&out.Selector, t.Labels, c.MatchLabelKeys, policy.OpIn)
	return out
}

// ports lists the ports of the node that a pod occupies; on the host's network
// those are all that it names.
func (r *podReader) ports(t *policy.Template, s *corev1.PodSpec) {
	for _, list := range [...][]corev1.Container{s.InitContainers, s.Containers} {
		for i := range list {
			for _, p := range list[i].Ports {
				port := p.HostPort
				if s.HostNetwork && port == 0 {
					port = p.ContainerPort
				}
				if port > 0 {
					t.HostPorts = append(t.HostPorts, policy.HostPort{IP: p.HostIP, Port: port, Protocol: cmp.Or(string(p.Protocol), "TCP")})
				}
			}
		}
	}
}

// volumes lists the claims of the pod specification. A claim is taken to be a
// block volume of one zone, as those of the default storage class are.
func (r *podReader) volumes(t *policy.Template, s *corev1.PodSpec) {
	for _, v := range s.Volumes {
		switch {
		case v.PersistentVolumeClaim != nil:
			t.Volumes = append(t.Volumes, policy.Volume{Zonal: true, Claim: v.PersistentVolumeClaim.ClaimName})
		case v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil:
			t.Volumes = append(t.Volumes, volumeOf(&v.Ephemeral.VolumeClaimTemplate.Spec))
		}
	}
}

// volumeOf returns the volume that a claim of one pod gives. What many nodes
// may write to is a file system that all zones reach.
func volumeOf(c *corev1.PersistentVolumeClaimSpec) policy.Volume {
	return policy.Volume{
		Zonal: !slices.Contains(c.AccessModes, corev1.ReadWriteMany) && !slices.Contains(c.AccessModes, corev1.ReadOnlyMany),
		Once:  slices.Contains(c.AccessModes, corev1.ReadWriteOncePod),
	}
}

func labelList(m map[string]string) []policy.Label {
	var all []policy.Label
	for _, k := range slices.Sorted(maps.Keys(m)) {
		all = append(all, policy.Label{Key: k, Value: m[k]})
	}
	return all
}

func needsGPU(t policy.Template) bool { return t.Requests.GPU > 0 }

func index(i int) string { return "[" + strconv.Itoa(i) + "]" }

func timeOf(t *metav1.Time) policy.Time { return policy.TimeOf(t.Time) }
