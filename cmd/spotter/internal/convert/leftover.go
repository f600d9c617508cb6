package convert

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/catalog"
)

// A leftoverPool is a LeftoverNodePool, gpu.devplatforms.io/v1alpha1.
type leftoverPool struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Region            string            `json:"region"`
		Families          []string          `json:"families"`
		MinGPUs           *int32            `json:"minGPUs"`
		MinSpotScore      *int32            `json:"minSpotScore"`
		TargetCount       *int32            `json:"targetCount"`
		MaxInstanceTypes  *int32            `json:"maxInstanceTypes"`
		MaxZones          *int32            `json:"maxZones"`
		CapacityType      string            `json:"capacityType"`
		OnDemandFallback  *bool             `json:"onDemandFallback"`
		NodeClassName     string            `json:"nodeClassName"`
		NodeClassSelector map[string]string `json:"nodeClassSelector"`
		Labels            map[string]string `json:"labels"`
		Taints            []string          `json:"taints"`
		BudgetsNodes      string            `json:"budgetsNodes"`
		ConsolidateAfter  string            `json:"consolidateAfter"`
		RequeueMinutes    *int32            `json:"requeueMinutes"`
		SubnetTags        map[string]string `json:"subnetSelectorTags"`
		GroupTags         map[string]string `json:"securityGroupSelectorTags"`
	} `json:"spec"`

	// Status is what was last selected. It is ignored.
	Status metav1.FieldsV1 `json:"status"`
}

func (r *reader) leftover(o *scenarios.RawObject) {
	var old leftoverPool
	if err := o.Decode(&old); err != nil {
		r.fail(err)
		return
	}
	s := &source{file: o.File(), object: o}
	p := s.newPool(old.Name, "leftover")
	p.ObjectMeta = named(&old.ObjectMeta)
	if old.Name == "" {
		s.fail("metadata.name", "must be set")
	}
	spec := &old.Spec
	s.leftoverBackend(p, &old, r.o.NodeClass)
	s.leftoverMarkets(p, &old)
	s.leftoverCapacity(p, &old)
	p.Spec.Template.Labels = spec.Labels
	for i, text := range spec.Taints {
		t, ok := taint(text)
		if !ok {
			s.fail("spec.taints"+scenarios.Index(i),
				"%q is not key[=value]:Effect with NoSchedule, PreferNoSchedule or NoExecute", text)
		}
		p.Spec.Template.Taints = append(p.Spec.Template.Taints, t)
	}
	s.leftoverDisruption(p, &old)
	for _, f := range []string{"budgetsNodes", "consolidateAfter", "labels", "taints", "maxInstanceTypes", "maxZones",
		"onDemandFallback"} {
		if s.has("spec." + f) {
			s.warn("spec."+f, "Leftover took this field and never used it; from now on it is in force")
		}
	}
	s.drop(
		[2]string{"spec.targetCount", "placement scores are requested for each type and zone, not for a number of pods"},
		[2]string{"spec.requeueMinutes",
			"decisions are taken every 10 minutes, and at once on a notice, a refused launch or a pod that waits"},
		[2]string{"spec.subnetSelectorTags", "subnets are those of the node class"},
		[2]string{"spec.securityGroupSelectorTags", "security groups are those of the node class"},
	)
	s.warn("",
		"the pool may buy several types in several zones at once, where Leftover chose one type in one zone and replaced "+
			"running nodes whenever that changed; its node pool is not leftover-%s, whose nodes stay until you delete it", old.Name)
	s.shadow("Leftover")
	r.add(s, p)
}

func (s *source) leftoverBackend(p *v1alpha1.CapacityPool, old *leftoverPool, nodeClass string) {
	k := &v1alpha1.KarpenterBackend{NodeClassName: old.Spec.NodeClassName}
	if len(old.Spec.NodeClassSelector) > 0 {
		k.NodeClassSelector = &metav1.LabelSelector{MatchLabels: old.Spec.NodeClassSelector}
	}
	switch {
	case k.NodeClassName == "" && k.NodeClassSelector == nil && nodeClass != "":
		k.NodeClassName = nodeClass // the first releases had no such field
	case k.NodeClassName == "" && k.NodeClassSelector == nil:
		s.fail("spec.nodeClassName",
			"one of nodeClassName or nodeClassSelector must be set; --node-class NAME sets the first "+
				"where both are missing")
	case k.NodeClassName != "" && k.NodeClassSelector != nil:
		s.fail("spec.nodeClassName", "%q: only one of nodeClassName or nodeClassSelector may be set", k.NodeClassName)
	}
	p.Spec.Backend.Karpenter = k
}

var familyName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9]+[a-z0-9-]*$`) })

func (s *source) leftoverMarkets(p *v1alpha1.CapacityPool, old *leftoverPool) {
	spec, m := &old.Spec, &p.Spec.Markets
	if spec.Region == "" {
		s.fail("spec.region", "must be set")
	} else {
		m.Regions = []string{spec.Region}
	}
	m.Architectures = []string{"amd64"}
	m.MinGPUs = s.atLeast("spec.minGPUs", spec.MinGPUs, 1, 1)
	m.MaxInstanceTypes = s.atLeast("spec.maxInstanceTypes", spec.MaxInstanceTypes, 5, 1)
	m.MaxZones = s.atLeast("spec.maxZones", spec.MaxZones, 2, 1)
	m.MinPlacementScore = s.atLeast("spec.minSpotScore", spec.MinSpotScore, 5, 0)
	if score := *m.MinPlacementScore; score > 10 {
		s.fail("spec.minSpotScore", "%d is not from 0 to 10", score)
	}
	for i, prefix := range spec.Families {
		at := "spec.families" + scenarios.Index(i)
		if !familyName().MatchString(prefix) {
			s.fail(at, "%q is not a family such as g5", prefix)
			continue
		}
		found, arm := gpuFamilies(prefix)
		if len(found) == 0 {
			s.warn(at, "%s is not the start of a known family with GPUs and amd64; it is used as a family of its own", prefix)
			found = []string{prefix}
		} else if !slices.Equal(found, []string{prefix}) {
			s.warn(at, "%s was the beginning of a name, and a family is one whole name from now on: it becomes %s", prefix,
				strings.Join(found, ", "))
		}
		if len(arm) > 0 {
			s.warn(at,
				"%s also matched %s, whose nodes are arm64 and which Leftover chose although its node pool required amd64; "+
					"add the architecture and the family to have them", prefix, strings.Join(arm, ", "))
		}
		m.Families = append(m.Families, found...)
	}
	slices.Sort(m.Families)
	m.Families = slices.Compact(m.Families)
}

// gpuFamilies returns the families with GPUs whose names start with prefix, ascending: those for
// amd64 and those for arm64.
func gpuFamilies(prefix string) (amd, arm []string) {
	for _, row := range catalog.List(catalog.Filter{Providers: []string{catalog.AWS}, MinGPUs: 1}) {
		t := &row.Type
		if !strings.HasPrefix(t.Family, prefix) || !strings.HasSuffix(t.GPUResource, "/gpu") { // GPUs of AMD count, Neuron devices do not
			continue
		}
		if t.Arch == "arm64" {
			arm = append(arm, t.Family)
		} else {
			amd = append(amd, t.Family)
		}
	}
	slices.Sort(amd)
	slices.Sort(arm)
	return slices.Compact(amd), slices.Compact(arm)
}

func (s *source) leftoverCapacity(p *v1alpha1.CapacityPool, old *leftoverPool) {
	fallback := old.Spec.OnDemandFallback == nil || *old.Spec.OnDemandFallback
	zero, one := 0.0, 1.0
	switch old.Spec.CapacityType {
	case "", "spot":
		p.Spec.Capacity.OnDemandFallback = &fallback
		if !fallback {
			p.Spec.Capacity.SpotShare = &v1alpha1.SpotShare{Min: &one}
		}
		if !s.has("spec.onDemandFallback") {
			s.warn("",
				"capacity.onDemandFallback is true, which was Leftover's default and which it never did: where no Spot market "+
					"will do, on-demand nodes are bought from now on")
		}
	case "on-demand":
		if s.has("spec.onDemandFallback") && fallback {
			s.fail("spec.onDemandFallback", "true: must not be set for capacityType on-demand")
		}
		p.Spec.Capacity.SpotShare = &v1alpha1.SpotShare{Max: &zero}
		s.warn("spec.capacityType", "on-demand was chosen by the price of spot; from now on by that of on-demand")
	default:
		s.fail("spec.capacityType", "%q is neither spot nor on-demand", old.Spec.CapacityType)
	}
}

var percentage = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9]{1,3}%$`) })

func (s *source) leftoverDisruption(p *v1alpha1.CapacityPool, old *leftoverPool) {
	d, text := &p.Spec.Disruption, cmp.Or(old.Spec.BudgetsNodes, "10%")
	disruptionBudget := intstr.FromString(text)
	if n, err := strconv.ParseInt(text, 10, 32); err == nil && n >= 0 {
		disruptionBudget = intstr.FromInt32(int32(n))
	} else if !percentage().MatchString(text) {
		s.fail("spec.budgetsNodes", "%q is not a number or a percentage such as 10%%", text)
	}
	d.Budget = &disruptionBudget
	after := s.duration("spec.consolidateAfter", cmp.Or(old.Spec.ConsolidateAfter, "2m"))
	d.ConsolidateAfter = &after
}

// taint parses key[=value]:Effect. It reports whether text is valid.
func taint(text string) (corev1.Taint, bool) {
	left, effect, ok := strings.Cut(text, ":")
	key, value, _ := strings.Cut(left, "=")
	t := corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)}
	return t, ok && key != "" && v1alpha1.Effect(t.Effect) != 0
}

// atLeast returns v, or otherwise if v is nil. It records an error if v is less than least.
func (s *source) atLeast(path string, v *int32, otherwise, least int32) *int32 {
	if v == nil {
		return &otherwise
	}
	if *v < least {
		s.fail(path, "%d is not at least %d", *v, least)
	}
	return v
}

// duration parses a Go duration, the format of Karpetrack and Leftover.
func (s *source) duration(path, text string) metav1.Duration {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		s.fail(path, "want a duration such as 90s, 15m or 24h, got %q", text)
	}
	return metav1.Duration{Duration: d}
}
