package scenarios

import (
	"fmt"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// podOf has a placeholder for what a pod requires of nodes.
const podOf = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: q}
spec:
  selector: {matchLabels: {app: q}}
  template: {metadata: {labels: {app: q}}, spec: {%s, containers: [{name: main, image: x, resources: {requests: {cpu: 1}}}]}}
---`

// withLabelsOf reads a scenario of ownNodePool with one more workload.
func withLabelsOf(requirements, spec string) (*Scenario, error) {
	return Parse("s.yaml", []byte(fmt.Sprintf(podOf, spec)+fmt.Sprintf(ownNodePool, requirements, "")))
}

// affinityTo returns required or preferred node affinity.
func affinityTo(expression string, preferred bool) string {
	if preferred {
		return "affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: [" + expression + "]}}]}}"
	}
	return "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [" + expression + "]}]}}}"
}

// TestUnknownLabelsOfPods refuses unknown labels of Karpenter, wherever a pod names them.
func TestUnknownLabelsOfPods(t *testing.T) {
	const warp = "karpenter.k8s.aws/instance-warp"
	for _, spec := range []string{
		"nodeSelector: {" + warp + ": a}",
		affinityTo("{key: "+warp+", operator: In, values: [a]}", false),
		affinityTo("{key: "+warp+", operator: NotIn, values: [a]}", false),
		affinityTo("{key: "+warp+", operator: Exists}", false),
		affinityTo("{key: "+warp+", operator: DoesNotExist}", false),
		affinityTo("{key: "+warp+", operator: Gt, values: ['1']}", false),
		affinityTo("{key: "+warp+", operator: DoesNotExist}", true),
		"topologySpreadConstraints: [{maxSkew: 1, topologyKey: " + warp +
			", whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: q}}}]",
		"affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: " + warp +
			", labelSelector: {matchLabels: {app: q}}}]}}",
	} {
		_, err := withLabelsOf(twoFamilies, spec)
		if err == nil || !strings.Contains(err.Error(), `"`+warp+`": which nodes have this label is unknown`) ||
			!strings.Contains(err.Error(), "s.yaml:7") {
			t.Errorf("%s: %v", spec, err)
		}
	}
	for _, spec := range []string{
		"nodeSelector: {topology.k8s.aws/zone-id: use1-az1}", "nodeSelector: {karpenter.sh/reservation: x}",
	} {
		if _, err := withLabelsOf(twoFamilies, spec); err == nil {
			t.Errorf("%s is taken", spec)
		}
	}
}

// TestLabelsOfPods gives labels that pods name today's names, and takes those that are known.
func TestLabelsOfPods(t *testing.T) {
	sc, err := withLabelsOf(twoFamilies,
		"nodeSelector: {beta.kubernetes.io/os: linux, failure-domain.beta.kubernetes.io/zone: us-east-1a, example.com/rack: r, "+
			"karpenter.k8s.aws/instance-local-nvme: '75'}, "+affinityTo("{key: karpenter.sh/provisioner-name, operator: DoesNotExist}, {key: beta.kubernetes.io/arch, operator: In, values: [arm64]}", false))
	if err != nil {
		t.Fatal(err)
	}
	q := &sc.templates[1]
	if got := fmt.Sprint(q.NodeSelector,
		q.Affinity); got != "[{example.com/rack r} {karpenter.k8s.aws/instance-local-nvme 75} {kubernetes.io/os linux} "+
		"{topology.kubernetes.io/zone us-east-1a}] [{[{karpenter.sh/provisioner-name 3 []} {kubernetes.io/arch 0 [arm64]}] []}]" {
		t.Errorf("pods ask for %s", got)
	}
}

// TestUnmetRequirement says which requirement leaves nothing of what a trace sells.
func TestUnmetRequirement(t *testing.T) {
	tr, err := trace.Synthetic()
	if err != nil {
		t.Fatal(err)
	}
	for requirements, want := range map[string]string{
		"{key: karpenter.k8s.aws/instance-category, operator: In, values: [r]}, {key: karpenter.k8s.aws/instance-local-nvme, operator: Gt, values: ['5000']}, " +
			"{key: topology.kubernetes.io/zone, operator: Exists}": "what is required of karpenter.k8s.aws/instance-local-nvme leaves none, and 10 types of the catalog: r6id.24xlarge,",
		"{key: karpenter.k8s.aws/instance-accelerator-name, operator: In, values: [trainium]}": "karpenter.k8s.aws/instance-accelerator-name leaves none, and 3 types of the catalog: trn1.2xlarge, trn1.32xlarge, trn1n.32xlarge",
		"{key: topology.kubernetes.io/zone, operator: In, values: [moon-1a]}":                  "what is required of topology.kubernetes.io/zone leaves none",
	} {
		sc, err := withLabelsOf(requirements, "nodeSelector: {}")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Bind(sc, tr, BindOptions{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", requirements, err, want)
		}
	}
}

// TestLabelChoices makes labels and choices of requirements on labels of the user's own.
func TestLabelChoices(t *testing.T) {
	const key = "example.com/part"
	for _, c := range []struct{ requirements, pods, labels, values string }{
		{"{key: example.com/part, operator: In, values: [b]}", "nodeSelector: {example.com/part: b}", "b", ""},
		{"{key: example.com/part, operator: In, values: [c, a, b]}", "nodeSelector: {example.com/part: b}", "", "[c a b]"},
		{"{key: example.com/part, operator: In, values: [c, a, b]}, {key: example.com/part, operator: NotIn, values: [c]}",
			"nodeSelector: {example.com/part: b}", "", "[a b]"},
		{"{key: example.com/part, operator: In, values: [c, a]}", "nodeSelector: {example.com/other: b}", "c", ""},
		{"{key: example.com/part, operator: Exists}", "nodeSelector: {example.com/part: b}", "", "[0 b]"},
		{"{key: example.com/part, operator: Exists}",
			affinityTo("{key: example.com/part, operator: NotIn, values: [z, '0']}", false), "", "[1 0 z]"},
		{"{key: example.com/part, operator: NotIn, values: [b]}",
			affinityTo("{key: example.com/part, operator: In, values: [b, d]}", true), "", "[0 d]"},
		{"{key: example.com/part, operator: Gt, values: ['4']}", "nodeSelector: {example.com/part: '7'}", "", "[5 7]"},
		{"{key: example.com/part, operator: Gt, values: ['4']}, {key: example.com/part, operator: Lt, values: ['6']}",
			"nodeSelector: {example.com/part: '5'}", "", "[5]"},
		{"{key: example.com/part, operator: Lt, values: ['1']}, {key: example.com/part, operator: NotIn, values: ['0']}",
			"nodeSelector: {example.com/part: '-2'}", "", "[-1 -2]"},
		{"{key: example.com/part, operator: Exists}", "nodeSelector: {example.com/other: b}", "", ""},
		{"{key: example.com/part, operator: Exists}",
			"topologySpreadConstraints: [{maxSkew: 1, topologyKey: example.com/part, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: q}}}]", "", "[0]"},
		{"{key: example.com/part, operator: DoesNotExist}", "nodeSelector: {example.com/part: b}", "", ""},
	} {
		if c.values != "" {
			c.labels = policy.AnyValue
		}
		sc, err := withLabelsOf(twoFamilies+", "+c.requirements, c.pods)
		if err != nil {
			t.Fatalf("%s: %v", c.requirements, err)
		}
		w := boundOwn(t, sc)
		label, _ := policy.FindLabel(w.Pools[0].Labels, key)
		values := ""
		for _, x := range w.NodePools[0].Choices {
			values += fmt.Sprint(x.Values)
		}
		if label != c.labels || values != c.values {
			t.Errorf("%s with %s: label %q and values %q, want %q and %q", c.requirements, c.pods, label, values, c.labels, c.values)
		}
	}
	for _, none := range []string{
		"{key: example.com/part, operator: Gt, values: ['5']}, {key: example.com/part, operator: Lt, values: ['3']}",
		"{key: example.com/part, operator: Gt, values: ['5']}, {key: example.com/part, operator: Lt, values: ['7']}, {key: example.com/part, operator: NotIn, values: ['6']}",
	} {
		if _, err := withLabelsOf(twoFamilies+", "+none, "nodeSelector: {example.com/part: '6'}"); err == nil ||
			!strings.Contains(err.Error(), `"example.com/part": no value meets all`) {
			t.Errorf("%s: %v", none, err)
		}
	}
}

// TestLabelCombinations: nodes with too many combinations of labels that pods refer to are refused,
// whether the NodePool lists their values or the pods do.
func TestLabelCombinations(t *testing.T) {
	tr, err := trace.Synthetic()
	if err != nil {
		t.Fatal(err)
	}
	values := "[" + strings.Join(strings.Split("abcdefghijklmnopq", ""), ", ") + "]"
	for _, c := range []struct {
		requirement string
		refused     bool
	}{{"operator: In, values: " + values, true}, {"operator: Exists", true}, {"operator: In, values: [a, b]", false}} {
		pools, terms := twoFamilies, []string(nil)
		for _, key := range []string{"example.com/x", "example.com/y"} {
			pools += ", {key: " + key + ", " + c.requirement + "}"
			terms = append(terms, "{key: "+key+", operator: In, values: "+values+"}")
		}
		for n := range terms {
			sc, err := withLabelsOf(pools, affinityTo(strings.Join(terms[n:], ", "), false))
			if err != nil {
				t.Fatal(err)
			}
			_, err = Bind(sc, tr, BindOptions{})
			if refused := err != nil && strings.Contains(err.Error(), "more than 256 combinations of values"); refused != (c.refused && n == 0) {
				t.Errorf("%s, with %d labels in pods: %v", c.requirement, len(terms)-n, err)
			}
		}
	}
}
