package v1alpha1

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/spotter-dev/spotter/policy"
)

func ptr[T any](v T) *T { return &v }

// karpenterPool returns a valid pool with its defaults.
func karpenterPool() *CapacityPool {
	p := &CapacityPool{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	p.Spec.Backend.Karpenter = &KarpenterBackend{NodeClassName: "default"}
	p.Default()
	return p
}

func TestDefaults(t *testing.T) {
	p := karpenterPool()
	if errs := p.Validate(); len(errs) > 0 {
		t.Fatalf("a pool of defaults is not valid: %v", errs)
	}
	want := policy.Pool{
		Name: "p", Provisioner: policy.ProvisionerKarpenter, Mode: policy.ModeShadow,
		Share: policy.ShareRange{Max: 1}, OnDemandFallback: true,
		Budgets:     []policy.DisruptionBudget{{Nodes: policy.Quantity{Set: true, Percent: true, N: 10}, Active: true}},
		ExpireAfter: 720 * time.Hour,
		Levers:      policy.Levers{Weights: true, Limits: true, Launch: true},
	}
	if got := p.Pool(); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	stated := karpenterPool()
	stated.Spec.Mode, stated.Spec.Disruption.ExpireAfter = ModeActive, &metav1.Duration{}
	stated.Spec.Capacity.OnDemandFallback = ptr(false)
	stated.Default()
	if got := stated.Pool(); got.Mode != policy.ModeActive || got.ExpireAfter != 0 || got.OnDemandFallback {
		t.Errorf("what was stated is overwritten: %+v", got)
	}
}

func windows(schedule string, d time.Duration) []Window {
	return []Window{{Schedule: schedule, Duration: metav1.Duration{Duration: d}}}
}

// freezes returns a freeze of length d from 1 December 2026 on.
func freezes(d time.Duration, reason string) []Freeze {
	from := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	return []Freeze{{From: metav1.NewTime(from), To: metav1.NewTime(from.Add(d)), Reason: reason}}
}

// TestClosing: maintenance windows and freezes become budgets that allow no node and say why.
func TestClosing(t *testing.T) {
	p := karpenterPool()
	p.Spec.Disruption.Windows = append(windows("0 2 * * *", 4*time.Hour), windows("@monthly", time.Hour)...)
	p.Spec.Disruption.Freezes = append(freezes(36*time.Hour, "Black Friday"), freezes(time.Hour, "")...)
	if errs := p.Validate(); len(errs) > 0 {
		t.Fatal(errs)
	}
	none, from := policy.Quantity{Set: true}, policy.TimeOf(time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC))
	want := []policy.DisruptionBudget{
		{Nodes: policy.Quantity{Set: true, Percent: true, N: 10}, Active: true},
		{Nodes: none, Active: true, Closed: "maintenance window: none is open",
			Windows: []policy.Window{{Schedule: "0 2 * * *", Duration: 4 * time.Hour}, {Schedule: "@monthly", Duration: time.Hour}}},
		{Nodes: none, From: from, To: from.Add(36 * time.Hour), Closed: "freeze: until 2026-12-02 12:00 UTC, Black Friday"},
		{Nodes: none, From: from, To: from.Add(time.Hour), Closed: "freeze: until 2026-12-01 01:00 UTC"},
	}
	if got := p.Pool().Budgets; !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// TestPause: the annotation becomes a budget that allows no node.
func TestPause(t *testing.T) {
	none, until := policy.Quantity{Set: true}, policy.TimeOf(time.Date(2026, 12, 1, 6, 0, 0, 0, time.UTC))
	forever := &policy.DisruptionBudget{Nodes: none, Active: true, Closed: "paused by spotter.dev/pause"}
	for value, want := range map[string]*policy.DisruptionBudget{
		"": nil, "false": nil, "true": forever, "yes, please": forever,
		"2026-12-01T07:00:00+01:00": {Nodes: none, To: until, Closed: "paused by spotter.dev/pause until 2026-12-01 06:00 UTC"},
	} {
		p := karpenterPool()
		p.Annotations = map[string]string{AnnotationPause: value}
		got := p.Pool().Budgets[1:]
		if len(got) != 0 != (want != nil) || want != nil && !reflect.DeepEqual(got[0], *want) {
			t.Errorf("%q: %+v, want %+v", value, got, want)
		}
	}
	if p := PauseOf(map[string]string{AnnotationPause: "2026-12-01T06:00:00Z"}); !p.At(until-1) || p.At(until) {
		t.Error("a pause does not end when it says")
	}
}

// Each change breaks one rule, which the error names by field.
func TestValidatePool(t *testing.T) {
	for field, change := range map[string]func(*CapacityPoolSpec){
		"spec.backend":           func(s *CapacityPoolSpec) { s.Backend = Backend{} },
		"spec.backend.karpenter": func(s *CapacityPoolSpec) { s.Backend.Karpenter.NodeClassSelector = &metav1.LabelSelector{} },
		"spec.backend.autoScalingGroups.discoveryTags": func(s *CapacityPoolSpec) { s.Backend = Backend{AutoScalingGroups: &AutoScalingGroupsBackend{}} },
		"spec.backend.rackspace.org": func(s *CapacityPoolSpec) {
			s.Backend = Backend{Rackspace: &RackspaceBackend{Cloudspace: "c", CredentialsSecretRef: corev1.SecretReference{Name: "s"}}}
		},
		"spec.markets.minVCPU":                func(s *CapacityPoolSpec) { s.Markets.MinVCPU, s.Markets.MaxVCPU = ptr(int32(3)), ptr(int32(2)) },
		"spec.markets.maxVCPU":                func(s *CapacityPoolSpec) { s.Markets.MaxVCPU = ptr(int32(0)) },
		"spec.markets.minMemory":              func(s *CapacityPoolSpec) { s.Markets.MinMemory = ptr(resource.MustParse("-1")) },
		"spec.markets.minGPUs":                func(s *CapacityPoolSpec) { s.Markets.MinGPUs = ptr(int32(-1)) },
		"spec.markets.maxPrice":               func(s *CapacityPoolSpec) { s.Markets.MaxPrice = ptr(-0.1) },
		"spec.markets.minPlacementScore":      func(s *CapacityPoolSpec) { s.Markets.MinPlacementScore = ptr(int32(11)) },
		"spec.markets.architectures[1]":       func(s *CapacityPoolSpec) { s.Markets.Architectures = []string{"arm64", "riscv"} },
		"spec.capacity.exactRatio":            func(s *CapacityPoolSpec) { s.Capacity.ExactRatio = ptr(1.01) },
		"spec.capacity.spotShare.min":         func(s *CapacityPoolSpec) { s.Capacity.SpotShare = &SpotShare{Min: ptr(.6), Max: ptr(.5)} },
		"spec.capacity.spotShare.target":      func(s *CapacityPoolSpec) { s.Capacity.SpotShare = &SpotShare{Max: ptr(.5), Target: ptr(.6)} },
		"spec.capacity.limits.gpu":            func(s *CapacityPoolSpec) { s.Capacity.Limits = &Limits{GPU: ptr(resource.MustParse("-2"))} },
		"spec.disruption.budget":              func(s *CapacityPoolSpec) { s.Disruption.Budget = ptr(intstr.FromString("101%")) },
		"spec.disruption.schedule":            func(s *CapacityPoolSpec) { s.Disruption.Duration = &metav1.Duration{Duration: time.Hour} },
		"spec.disruption.windows[0].schedule": func(s *CapacityPoolSpec) { s.Disruption.Windows = windows("0 25 * * *", time.Hour) },
		"spec.disruption.windows[0].duration": func(s *CapacityPoolSpec) { s.Disruption.Windows = windows("@daily", 0) },
		"spec.disruption.windows": func(s *CapacityPoolSpec) {
			s.Disruption.Windows = slices.Repeat(windows("@daily", time.Hour), 17)
		},
		"spec.disruption.freezes[0].from": func(s *CapacityPoolSpec) { s.Disruption.Freezes = freezes(0, "") },
		"spec.disruption.freezes[0].reason": func(s *CapacityPoolSpec) {
			s.Disruption.Freezes = freezes(time.Hour, "a\x1b[2Kb")
		},
		"spec.disruption.consolidateAfter":    func(s *CapacityPoolSpec) { s.Disruption.ConsolidateAfter = &metav1.Duration{Duration: -1} },
		"spec.disruption.savingsThreshold":    func(s *CapacityPoolSpec) { s.Disruption.SavingsThreshold = ptr(2.0) },
		"spec.disruption.consolidationPolicy": func(s *CapacityPoolSpec) { s.Disruption.ConsolidationPolicy = "Rarely" },
		"spec.policy.name":                    func(s *CapacityPoolSpec) { s.Policy = &PolicyRef{} },
		"spec.policy.parameters": func(s *CapacityPoolSpec) {
			s.Policy = &PolicyRef{Name: "static", Parameters: map[string]string{"share": "0.5:x=1"}}
		},
		"spec.mode": func(s *CapacityPoolSpec) { s.Mode = "on" },
	} {
		p := karpenterPool()
		change(&p.Spec)
		errs := p.Validate()
		if len(errs) != 1 || errs[0].Field != field {
			t.Errorf("%s: got %v", field, errs)
		}
	}
}

// What a pool buys by itself is one of the capacity types or both, in any order.
func TestCapacityTypes(t *testing.T) {
	for text, want := range map[string][]policy.CapacityType{
		"spot": {policy.Spot}, "on-demand": {policy.OnDemand}, "spot,on-demand": {policy.OnDemand, policy.Spot},
		"": nil, "spot, on-demand": nil, "reserved": nil, "spot,": nil,
	} {
		p := karpenterPool()
		p.Annotations = map[string]string{AnnotationCapacityTypes: text}
		errs := p.Validate()
		if (len(errs) == 0) != (want != nil) || len(errs) > 0 && errs[0].Field != "metadata.annotations["+AnnotationCapacityTypes+"]" {
			t.Errorf("%q: errors %v", text, errs)
		}
		if got := p.Pool().CapacityTypes; want != nil && !reflect.DeepEqual(got, want) {
			t.Errorf("%q is read as %v, want %v", text, got, want)
		}
	}
}

// The share at which a pool was captured is one of both capacity types.
func TestOwnShare(t *testing.T) {
	for text, want := range map[string]float64{"0.667": 0.667, "0": -1, "1": -1, "NaN": -1, "half": -1, "": -1} {
		p := karpenterPool()
		p.Annotations = map[string]string{AnnotationOwnShare: text}
		if errs := p.Validate(); (len(errs) == 0) != (want >= 0) {
			t.Errorf("%q: errors %v", text, errs)
		}
		if got := p.Pool().OwnShare; want >= 0 && got != want {
			t.Errorf("%q is read as %v, want %v", text, got, want)
		}
	}
}

func TestValidateBudget(t *testing.T) {
	b := &GPUBudget{ObjectMeta: metav1.ObjectMeta{Name: "b"}}
	b.Spec.Quota = Quota{Dollars: ptr(10.0), WindowHours: 24}
	b.Default()
	if errs := b.Validate(); len(errs) > 0 || b.Spec.ResourceName != "nvidia.com/gpu" || b.Spec.Enforcement.Action != EnforceAlertOnly {
		t.Fatalf("%+v is not valid: %v", b.Spec, errs)
	}
	b.Spec.Quota = Quota{WindowHours: 24}
	if errs := b.Validate(); len(errs) != 1 || errs[0].Field != "spec.quota" {
		t.Errorf("a quota of nothing: %v", errs)
	}
}

func TestQuantity(t *testing.T) {
	for _, c := range []struct {
		in   *intstr.IntOrString
		want policy.Quantity
	}{
		{nil, policy.Quantity{}},
		{ptr(intstr.FromInt32(3)), policy.Quantity{Set: true, N: 3}},
		{ptr(intstr.FromString("25%")), policy.Quantity{Set: true, Percent: true, N: 25}},
		{ptr(intstr.FromString("25")), policy.Quantity{N: 25}},
		{ptr(intstr.FromString("x%")), policy.Quantity{}},
	} {
		got := Quantity(c.in)
		if got.Set != c.want.Set || got.Set && got != c.want {
			t.Errorf("%v gives %+v, want %+v", c.in, got, c.want)
		}
	}
}

// Exotic types are taken only when they are requested; the memory that counts is that of the
// machine as sold.
func TestTakeType(t *testing.T) {
	plain := policy.InstanceType{Name: "m5.large", Family: "m5", Category: "m", Arch: "amd64", VCPU: 2,
		Capacity: policy.Resources{Memory: 7577 << 20},
		Labels:   []policy.Label{{Key: "karpenter.k8s.aws/instance-memory", Value: "8192"}}}
	gpu := policy.InstanceType{Name: "g5.xlarge", Family: "g5", Category: "g", Arch: "amd64", VCPU: 4, Capacity: policy.Resources{GPU: 1}}
	metal := policy.InstanceType{Name: "m5.metal", Family: "m5", Category: "m", Arch: "amd64", VCPU: 96}
	for _, c := range []struct {
		name              string
		m                 Markets
		plain, gpu, metal bool
	}{
		{"nothing stated", Markets{}, true, false, false},
		{"least memory", Markets{MinMemory: ptr(resource.MustParse("8Gi"))}, true, false, false},
		{"more memory", Markets{MinMemory: ptr(resource.MustParse("8193Mi"))}, false, false, false},
		{"an accelerator", Markets{MinGPUs: ptr(int32(1))}, false, true, false},
		{"a family", Markets{Families: []string{"g5", "m5"}}, true, true, false},
		{"a category", Markets{Categories: []string{"g"}}, false, true, false},
		{"by name", Markets{InstanceTypes: []string{"m5.metal"}}, false, false, true},
		{"at most 2 vCPU", Markets{MaxVCPU: ptr(int32(2))}, true, false, false},
		{"another zone", Markets{Zones: []string{"b"}}, false, false, false},
		{"another region", Markets{Regions: []string{"r2"}}, false, false, false},
	} {
		p := CapacityPool{Spec: CapacityPoolSpec{Markets: c.m}}
		p.Default()
		m := &p.Spec.Markets
		if a, b, d := m.Take("r", "a", &plain), m.Take("r", "a", &gpu), m.Take("r", "a", &metal); a != c.plain || b != c.gpu || d != c.metal {
			t.Errorf("%s: plain %v, gpu %v, metal %v", c.name, a, b, d)
		}
	}
}

func TestProvider(t *testing.T) {
	p := karpenterPool()
	if !p.BuysFrom("aws") || !p.BuysFrom("azure") || p.BuysFrom("rackspace") {
		t.Error("Karpenter buys at AWS, Azure and not at the auction")
	}
	p.Spec.Backend = Backend{Rackspace: &RackspaceBackend{}}
	if got := p.Pool(); !p.BuysFrom("rackspace") || p.BuysFrom("aws") || got.Provisioner != policy.ProvisionerNone ||
		!got.Levers.Launch || got.Levers.Weights {
		t.Errorf("%+v", got)
	}
}

// A copy shares nothing with what it was made of.
func TestDeepCopy(t *testing.T) {
	p := karpenterPool()
	p.Spec.Markets.Zones = []string{"a"}
	p.Spec.Markets.MaxVCPU = ptr(int32(16))
	p.Spec.Policy = &PolicyRef{Name: "static", Parameters: map[string]string{"share": "0.5"}}
	before, _ := json.Marshal(p)
	c := p.DeepCopy()
	c.Spec.Markets.Zones[0], *c.Spec.Markets.MaxVCPU, c.Spec.Policy.Parameters["share"] = "b", 1, "1"
	if after, _ := json.Marshal(p); string(before) != string(after) {
		t.Errorf("the original changed from %s to %s", before, after)
	}
}

func TestScheme(t *testing.T) {
	s := runtime.NewScheme()
	if err := AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"CapacityPool", "GPUBudget", "SpotNode", "SpotNodeList"} {
		if !s.Recognizes(GroupVersion.WithKind(kind)) {
			t.Errorf("%s is not registered", kind)
		}
	}
}

// TestFaultCategoryWithoutAlias takes the classes of Rackspace Spot by the short
// name of their category and by the words that its feed has for it.
func TestFaultCategoryWithoutAlias(t *testing.T) {
	for category, words := range map[string][]string{
		"gp": {"gp", "General Purpose", " general purpose"}, "ch": {"ch", "Compute Heavy"}, "mh": {"mh", "Memory Heavy"},
		"bm": {"bm", "Bare Metal"}, "gpu": {"gpu", "GPU Accelerated"},
	} {
		for _, word := range words {
			m := Markets{Categories: []string{word}}
			for _, c := range []string{"gp", "ch", "mh", "bm", "gpu"} {
				if got := m.TakeType(&policy.InstanceType{Provider: policy.Rackspace, Category: c}); got != (c == category) {
					t.Errorf("%q takes a class of category %s: %v", word, c, got)
				}
			}
		}
	}
}

// TestBudget converts a budget with everything, and one with next to nothing.
func TestBudget(t *testing.T) {
	b := &GPUBudget{ObjectMeta: metav1.ObjectMeta{Name: "b"}}
	b.Spec.Quota = Quota{GPUHours: ptr(96.5), Dollars: ptr(30.0), WindowHours: 24}
	b.Spec.Enforcement = Enforcement{Action: EnforceEvict, OverQuotaDelay: &metav1.Duration{Duration: time.Minute},
		PodGracePeriod: &metav1.Duration{}}
	b.Spec.Gate, b.Spec.Accounting = true, AccountLiveObjects
	b.Default()
	selector := policy.Selector{Everything: true}
	want := policy.Budget{
		Name: "ml/b", Namespace: "ml", Selector: selector, Resource: "nvidia.com/gpu", GPUHours: 96.5, HasGPUHours: true,
		Dollars: 30 * policy.Dollar, HasDollars: true, Window: 24 * time.Hour, LiveObjects: true, Action: policy.BudgetEvict,
		OverQuotaDelay: time.Minute, HasPodGrace: true, Gate: true,
	}
	if got := b.Budget("ml", selector); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	least := &GPUBudget{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Spec: GPUBudgetSpec{Quota: Quota{Dollars: ptr(1.0), WindowHours: 1}}}
	least.Default()
	if errs := least.Validate(); len(errs) > 0 {
		t.Fatal(errs)
	}
	want = policy.Budget{Name: "ml/c", Namespace: "ml", Resource: "nvidia.com/gpu", Dollars: policy.Dollar,
		HasDollars: true, Window: time.Hour}
	if got := least.Budget("ml", policy.Selector{}); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	for field, change := range map[string]func(*GPUBudgetSpec){
		"spec.quota.windowHours": func(s *GPUBudgetSpec) { s.Quota.WindowHours = 8785 },
		"spec.quota.dollars":     func(s *GPUBudgetSpec) { s.Quota.Dollars = ptr(1e13) },
		"spec.resourceName":      func(s *GPUBudgetSpec) { s.ResourceName = "memory" },
		"spec.accounting":        func(s *GPUBudgetSpec) { s.Accounting = "Guesses" },
	} {
		x := least.DeepCopy()
		change(&x.Spec)
		if errs := x.Validate(); len(errs) != 1 || errs[0].Field != field {
			t.Errorf("%s: got %v", field, errs)
		}
	}
}
