package kube

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/policy"
)

func cpu(text string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(text)}}
}

// TestRequests adds up containers, sidecars, init containers and overhead as the
// scheduler does.
func TestRequests(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	one := func(text string) corev1.Container { return corev1.Container{Resources: cpu(text)} }
	sidecar := func(text string) corev1.Container {
		return corev1.Container{Resources: cpu(text), RestartPolicy: &always}
	}
	for _, c := range []struct {
		name string
		spec corev1.PodSpec
		want int64
	}{
		{"containers add up", corev1.PodSpec{Containers: []corev1.Container{one("1"), one("500m")}}, 1500},
		{"a large init container", corev1.PodSpec{InitContainers: []corev1.Container{one("3")}, Containers: []corev1.Container{one("1")}}, 3000},
		{"a sidecar runs beside", corev1.PodSpec{InitContainers: []corev1.Container{sidecar("1")},
			Containers: []corev1.Container{one("1")}}, 2000},
		{"an init container beside the sidecars before it", corev1.PodSpec{InitContainers: []corev1.Container{sidecar("1"),
			one("3"), sidecar("2")}, Containers: []corev1.Container{one("500m")}}, 4000},
		{"overhead", corev1.PodSpec{Containers: []corev1.Container{one("1")},
			Overhead: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m")}}, 1250},
		{"limits stand for requests",
			corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}}}}}, 2000},
		{"the pod's own", corev1.PodSpec{Containers: []corev1.Container{one("1")},
			Resources: &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("5")}}}, 5000},
	} {
		var tmpl policy.Template
		(&Reader{}).Template(&tmpl, nil, &c.spec)
		if tmpl.Requests.CPU != c.want || tmpl.Requests.Pods != 1 {
			t.Errorf("%s: %+v, want %d", c.name, tmpl.Requests, c.want)
		}
	}
}

// TestFaultsAreTold names the field of each fault, and continues.
func TestFaultsAreTold(t *testing.T) {
	spec := corev1.PodSpec{
		Containers:        []corev1.Container{{Resources: cpu("2G")}},
		PriorityClassName: "absent",
		TopologySpreadConstraints: []corev1.TopologySpreadConstraint{
			{MaxSkew: 0, TopologyKey: "zone", WhenUnsatisfiable: "Perhaps"}},
		Affinity: &corev1.Affinity{
			NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
				{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "k", Operator: "Like"},
					{Key: "n", Operator: "Gt", Values: []string{"many"}}}}}}},
			PodAffinity: &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 200}}},
		},
	}
	var told []string
	r := Reader{
		Fail: func(path []string, format string, args ...any) {
			told = append(told, strings.Join(path, ".")+": "+fmt.Sprintf(format, args...))
		},
		Priority: func(class string) (Priority, error) { return Priority{}, fmt.Errorf("no class %q", class) },
	}
	var tmpl policy.Template
	r.Template(&tmpl, nil, &spec)
	at := "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms.[0].matchExpressions."
	for _, want := range []string{
		"spec.containers: cpu of 2G is more than 1M",
		`spec.priorityClassName: no class "absent"`,
		"spec.topologySpreadConstraints.[0].maxSkew: 0 is not above 0",
		`spec.topologySpreadConstraints.[0].whenUnsatisfiable: "Perhaps" is not DoNotSchedule or ScheduleAnyway`,
		at + `[0].operator: "Like" is not an operator; known are In, NotIn, Exists, DoesNotExist, Gt, Lt`,
		at + `[1].values: "many" is not an integer`,
		"spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution.[0].weight: 200 is not from 1 to 100",
		"spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution.[0].podAffinityTerm.topologyKey: must be set",
	} {
		if !slices.Contains(told, want) {
			t.Errorf("not told: %s", want)
		}
	}
	if len(told) != 8 {
		t.Errorf("%d faults are told:\n%s", len(told), strings.Join(told, "\n"))
	}
	if tmpl.Requests.CPU != 1e9 {
		t.Errorf("a request beyond all measure is taken as %d", tmpl.Requests.CPU)
	}
}

// TestSelectorAgrees compares selectors as they are read here with those of
// apimachinery, for any labels.
func TestSelectorAgrees(t *testing.T) {
	key, value := rapid.SampledFrom([]string{"a", "b", "c"}), rapid.SampledFrom([]string{"", "1", "2"})
	rapid.Check(t, func(t *rapid.T) {
		s := &metav1.LabelSelector{MatchLabels: rapid.MapOfN(key, value, 0, 2).Draw(t, "matchLabels")}
		for range rapid.IntRange(0, 2).Draw(t, "expressions") {
			e := metav1.LabelSelectorRequirement{Key: key.Draw(t, "key")}
			switch rapid.IntRange(0, 3).Draw(t, "operator") {
			case 0:
				e.Operator, e.Values = "In", rapid.SliceOfN(value, 1, 2).Draw(t, "values")
			case 1:
				e.Operator, e.Values = "NotIn", rapid.SliceOfN(value, 1, 2).Draw(t, "values")
			case 2:
				e.Operator = "Exists"
			default:
				e.Operator = "DoesNotExist"
			}
			s.MatchExpressions = append(s.MatchExpressions, e)
		}
		theirs, err := metav1.LabelSelectorAsSelector(s)
		if err != nil {
			t.Fatal(err)
		}
		ours, err := Selector(s)
		if err != nil {
			t.Fatal(err)
		}
		labels := rapid.MapOfN(key, value, 0, 3).Draw(t, "labels")
		if a, b := theirs.Matches(set(labels)), ours.Matches(Labels(labels)); a != b {
			t.Errorf("%v of %v: theirs says %v, ours %v", s, labels, a, b)
		}
	})
}

// A set is labels as apimachinery wants them.
type set map[string]string

func (s set) Has(k string) bool              { _, ok := s[k]; return ok }
func (s set) Get(k string) string            { return s[k] }
func (s set) Lookup(k string) (string, bool) { v, ok := s[k]; return v, ok }

// TestInForce walks a schedule of two hours from nine.
func TestInForce(t *testing.T) {
	at := func(text string) policy.Time {
		x, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return policy.TimeOf(x)
	}
	for text, want := range map[string]bool{
		"2026-03-02T08:59:59Z": false, "2026-03-02T09:00:00Z": true, "2026-03-02T10:59:59Z": true, "2026-03-02T11:00:00Z": false,
		"2026-03-01T10:00:00Z": false, // a Sunday
	} {
		if got := InForce(&policy.DisruptionBudget{Schedule: "0 9 * * mon-fri", Duration: 2 * time.Hour}, at(text)); got != want {
			t.Errorf("at %s: %v", text, got)
		}
	}
	for _, schedule := range []string{"", "whenever", "0 0 30 2 *"} {
		if !InForce(&policy.DisruptionBudget{Schedule: schedule, Duration: time.Hour}, 1) {
			t.Errorf("a budget with the schedule %q must hold", schedule)
		}
	}
	// Saturdays from 22:00 for four hours, which pass midnight, and 12:00 on the first.
	windows := &policy.DisruptionBudget{Windows: []policy.Window{{Schedule: "0 22 * * sat", Duration: 4 * time.Hour},
		{Schedule: "0 12 1 * *", Duration: time.Minute}}}
	for text, want := range map[string]bool{
		"2026-03-07T21:59:59Z": true, "2026-03-07T22:00:00Z": false, "2026-03-08T01:59:59Z": false, "2026-03-08T02:00:00Z": true,
		"2026-03-01T11:59:59Z": true, "2026-03-01T12:00:59Z": false, "2026-03-01T12:01:00Z": true,
	} {
		if got := InForce(windows, at(text)); got != want {
			t.Errorf("outside of windows at %s: %v", text, got)
		}
	}
	for _, schedule := range []string{"whenever", "0 0 30 2 *"} {
		if !InForce(&policy.DisruptionBudget{Windows: []policy.Window{{Schedule: schedule, Duration: 1000 * time.Hour}}},
			at("2026-03-01T00:00:00Z")) {
			t.Errorf("a window with the schedule %q must stay closed", schedule)
		}
	}
	freeze := &policy.DisruptionBudget{From: at("2026-12-20T00:00:00Z"), To: at("2027-01-04T07:00:00Z")}
	for text, want := range map[string]bool{
		"2026-12-19T23:59:59Z": false, "2026-12-20T00:00:00Z": true, "2027-01-04T06:59:59Z": true, "2027-01-04T07:00:00Z": false,
	} {
		if got := InForce(freeze, at(text)); got != want {
			t.Errorf("frozen at %s: %v", text, got)
		}
	}
}

// TestAnnotations reads ours and SpotVortex's; ours count.
func TestAnnotations(t *testing.T) {
	var told []string
	a := Annotations{Fail: func(key, format string, args ...any) { told = append(told, key) }, Values: map[string]string{
		"spotvortex.io/startup-time": "90", "spotter.dev/startup-time": "2m", "spotvortex.io/outage-penalty": "10h", "spotter.dev/outage-cost-per-hour": "$12.5",
		"spotvortex.io/migration-tier": "1", "spotvortex.io/critical": "true", "spotvortex.io/migration-strategy": "graceful-only",
		"cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
	}}
	var x policy.Template
	a.Fill(&x)
	if x.Startup != 2*time.Minute || x.OutagePenalty != 10 || x.OutageCost != 12_500_000 || x.MigrationTier != 1 ||
		!x.Critical || !x.GracefulOnly || x.SafeToEvict || !x.NotSafeToEvict || told != nil {
		t.Errorf("%+v, told %v", x, told)
	}
	a.Values = map[string]string{"spotter.dev/startup-time": "-1s", "spotter.dev/outage-penalty": "much",
		"spotter.dev/outage-cost-per-hour": "0",
		"spotvortex.io/migration-tier":     "3", "spotvortex.io/critical": "perhaps"}
	x = policy.Template{}
	a.Fill(&x)
	if x.Startup != 0 || x.OutagePenalty != -1 || x.OutageCost != 0 || x.MigrationTier != -1 || x.Critical || len(told) != 5 {
		t.Errorf("%+v, told %v", x, told)
	}
}
