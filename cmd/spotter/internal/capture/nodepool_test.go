package capture

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/policy"
)

// What a user's own NodePool and EC2NodeClass say, as the API server has them.
const (
	ownNodePool = `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: web-team, uid: 1-2-3, managedFields: [{manager: helm}], annotations: {owner: someone}}
spec:
  weight: 7
  limits: {cpu: "100", nodes: "9"}
  template:
    metadata: {labels: {team: a}, annotations: {note: secret}}
    spec:
      expireAfter: Never
      terminationGracePeriod: 2h
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: standard}
      taints: [{key: team, value: a, effect: NoSchedule}]
      requirements:
        - {key: karpenter.sh/capacity-type, operator: In, values: [spot, on-demand]}
        - {key: karpenter.k8s.aws/instance-family, operator: In, values: [m5, m6i, c5], minValues: 2}
        - {key: topology.kubernetes.io/zone, operator: In, values: [us-east-1a, us-east-1b]}
        - {key: example.com/tier, operator: In, values: [gold]}
  disruption:
    consolidationPolicy: WhenEmpty
    consolidateAfter: 3m
    budgets: [{nodes: 20%}, {nodes: "0", schedule: "0 9 * * mon-fri", duration: 8h, reasons: [Empty]}]
status: {resources: {cpu: "8"}}
`
	ownNodeClass = `
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: standard}
spec:
  role: secret-role
  subnetSelectorTerms: [{tags: {owner: secret}}]
  amiSelectorTerms: [{alias: bottlerocket@latest}]
  kubelet: {maxPods: 40, systemReserved: {cpu: 250m}}
status:
  subnets: [{id: subnet-secret, zone: us-east-1a, zoneID: use1-az1}, {id: subnet-2, zone: us-east-1b, zoneID: use1-az2}]
  conditions: [{type: Ready, status: "True"}]
`
)

// read reads an object of YAML.
func read(t *testing.T, text string, into any) {
	t.Helper()
	var x any
	if err := yaml.Unmarshal([]byte(text), &x); err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(x)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		t.Fatal(err)
	}
}

// owned returns the cluster of foreign with its first two nodes of a NodePool, and options
// that know it.
func owned(t *testing.T) (*policy.Snapshot, Options) {
	t.Helper()
	s, o := foreign(), options()
	for i := range 2 {
		n := &s.Nodes[i]
		n.Labels = append(slices.DeleteFunc(n.Labels, func(l policy.Label) bool { return l.Key == "eks.amazonaws.com/nodegroup" }),
			policy.Label{Key: karpv1.NodePoolLabelKey, Value: "web-team"})
		slices.SortFunc(n.Labels, func(a, b policy.Label) int { return strings.Compare(a.Key, b.Key) })
	}
	o.NodePools, o.NodeClasses = make([]karpv1.NodePool, 1), make([]unstructured.Unstructured, 1)
	read(t, ownNodePool, &o.NodePools[0])
	read(t, ownNodeClass, &o.NodeClasses[0].Object)
	return s, o
}

// TestOwnNodePools writes NodePools as they are, with their class and without what the API
// server added, and reads the same from it; the nodes of other groups are captured as ever.
func TestOwnNodePools(t *testing.T) {
	for _, hidden := range []bool{false, true} {
		s, o := owned(t)
		o.Anonymise = hidden
		c, w, text := capturedDay(t, s, o)
		name := map[bool]string{false: "web-team", true: c.own[0].pool.Metadata.Name}[hidden]
		at := slices.IndexFunc(w.Pools, func(p policy.Pool) bool { return p.Name == name })
		if at < 0 || w.NodePools[at] == nil || len(w.Pools) != 2 {
			t.Fatalf("pools %+v\n%s", w.Pools, text)
		}
		p, own := &w.Pools[at], w.NodePools[at]
		got := fmt.Sprintln(p.CapacityTypes[0], p.CapacityTypes[1], p.Limits.CPU, len(p.Budgets), p.Budgets[1].Schedule,
			p.Consolidation, p.ConsolidateAfter, p.ExpireAfter, len(p.Labels), len(p.Taints),
			own.Weight, own.MinValues, own.NodesMax, own.TerminationGrace)
		if want := "on-demand spot 100000 2 0 9 * * mon-fri 1 3m0s 0s 3 1 7 [{karpenter.k8s.aws/instance-family 2}] 9 2h0m0s\n"; got != want {
			t.Errorf("the NodePool is read as %s, want %s\n%s", got, want, text)
		}
		if seeds := seedsOf(w); seeds[name+" aws/us-east-1/us-east-1a/m5.large/spot"] != 1 ||
			seeds[name+" aws/us-east-1/us-east-1b/m5.2xlarge/on-demand"] != 1 || len(seeds) != 3 {
			t.Errorf("nodes %v", seeds)
		}
		if pods := w.Types[0].Capacity.Pods; pods != 40 {
			t.Errorf("a node of the class takes %d pods, want 40", pods)
		}
		for _, left := range []string{"managedFields", "uid", "conditions", "someone", "resources:\n    cpu: \"8\""} {
			if strings.Contains(text, left) {
				t.Errorf("%q is written\n%s", left, text)
			}
		}
		if leak := strings.Contains(text, "secret") || strings.Contains(text, "gold") || strings.Contains(text, "web-team"); leak != !hidden {
			t.Errorf("hidden %v: names that people chose are there: %v\n%s", hidden, leak, text)
		}
	}
}

// TestNodePoolsNotAsTheyAre leaves a NodePool out with its nodes where it cannot be simulated as
// it is or could not be read, and says why and what part of the cost that is. Nothing is bought
// in its place.
func TestNodePoolsNotAsTheyAre(t *testing.T) {
	for want, change := range map[string]func(*Options){
		"\"spec.replicas\": -3 is not": func(o *Options) { n := int64(-3); o.NodePools[0].Spec.Replicas = &n },
		"\"spec.weight\": 0 is not":    func(o *Options) { n := int32(0); o.NodePools[0].Spec.Weight = &n },
		"it cannot be read: quantity": func(o *Options) {
			o.Unread, o.NodePools = map[string]string{o.NodePools[0].Name: "it cannot be read: quantity"}, nil
		},
	} {
		s, o := owned(t)
		change(&o)
		c, err := Take(s, o)
		if err != nil {
			t.Fatal(err)
		}
		said := slices.ContainsFunc(c.Left, func(l string) bool {
			return strings.HasPrefix(l,
				"NodePool web-team with its 2 nodes and the pods on them, 32.3% of the cost of all nodes: ") && strings.Contains(l, want)
		})
		if !said || len(c.pools) != 1 || len(c.own) > 0 || c.Nodes != 1 {
			t.Errorf("left out %q, want %q; %d pools, %d nodes", c.Left, want, len(c.pools), c.Nodes)
		}
	}
	s, o := owned(t)
	s.Nodes[1].Labels = slices.Clone(s.Nodes[1].Labels)
	for i := range s.Nodes[1].Labels {
		if l := &s.Nodes[1].Labels[i]; l.Key == "node.kubernetes.io/instance-type" {
			l.Value = "r5.large" // the NodePool was another when it was bought
		}
	}
	c, err := Take(s, o)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(c.seeds, func(x seed) bool { return x.Pool == "web-team-others" && x.InstanceType == "r5.large" }) {
		t.Errorf("a node that its NodePool would not buy is of none of its own: %+v", c.seeds)
	}
}

// TestNodeClassNotRead writes a NodePool as it is with the default settings of a class that
// could not be read, and says so.
func TestNodeClassNotRead(t *testing.T) {
	s, o := owned(t)
	o.NodeClasses = nil
	c, w, text := capturedDay(t, s, o)
	want := "EC2NodeClass standard, which could not be read, has the default settings"
	if !slices.ContainsFunc(c.Assumed, func(x string) bool { return strings.Contains(x, want) }) || len(c.own) != 1 || w.NodePools == nil {
		t.Errorf("assumed %q, want %q\n%s", c.Assumed, want, text)
	}
}

// TestAutoModeAsItIs writes a NodePool of EKS Auto Mode with its NodeClass.
func TestAutoModeAsItIs(t *testing.T) {
	const class = `
apiVersion: eks.amazonaws.com/v1
kind: NodeClass
metadata: {name: standard, uid: 4-5-6}
spec: {role: secret-role, ephemeralStorage: {size: 33Gi, kmsKeyID: secret-key}, subnetSelectorTerms: [{id: subnet-secret}]}
status: {subnets: [{id: subnet-secret, zone: us-east-1a, zoneID: use1-az1}, {id: subnet-2, zone: us-east-1b, zoneID: use1-az2}]}
`
	for _, hidden := range []bool{false, true} {
		s, o := owned(t)
		o.Anonymise = hidden
		read(t, strings.NewReplacer("karpenter.k8s.aws/", "eks.amazonaws.com/",
			"group: karpenter.k8s.aws, kind: EC2NodeClass", "group: eks.amazonaws.com, kind: NodeClass").
			Replace(ownNodePool), &o.NodePools[0])
		o.NodeClasses = append(o.NodeClasses, unstructured.Unstructured{}) // next to an EC2NodeClass of the same name
		read(t, class, &o.NodeClasses[1].Object)
		for i := range 2 {
			s.Nodes[i].Labels = append(s.Nodes[i].Labels, policy.Label{Key: "eks.amazonaws.com/instance-hypervisor", Value: "nitro"})
			slices.SortFunc(s.Nodes[i].Labels, func(a, b policy.Label) int { return strings.Compare(a.Key, b.Key) })
		}
		s.Templates[0].NodeSelector = []policy.Label{{Key: "eks.amazonaws.com/instance-hypervisor", Value: "nitro"}}
		c, w, text := capturedDay(t, s, o)
		if n := strings.Count(text, "instance-hypervisor"); n != 1 {
			t.Errorf("the label that pods select is written %d times, want in the pods alone\n%s", n, text)
		}
		if len(c.own) != 1 || !strings.Contains(text, "kind: NodeClass") || !strings.Contains(text, "size: 33Gi") ||
			strings.Contains(text, "EC2NodeClass") {
			t.Fatalf("left out %q\n%s", c.Left, text)
		}
		if leak := strings.Contains(text, "secret"); leak != !hidden {
			t.Errorf("hidden %v: names that people chose are there: %v\n%s", hidden, leak, text)
		}
		if disk := w.Types[0].Capacity.Storage; disk != 33<<30 {
			t.Errorf("a node of the class has a disk of %d", disk)
		}
	}
}

// TestOpenLabels leaves a label open that the NodePool leaves open, though all nodes have one value of
// it now, and does not say that pods which select it stay pending.
func TestOpenLabels(t *testing.T) {
	const key = "example.com/unit"
	for _, hidden := range []bool{false, true} {
		s, o := owned(t)
		o.Anonymise = hidden
		q := karpv1.NodeSelectorRequirementWithMinValues{Key: key, Operator: corev1.NodeSelectorOpExists}
		o.NodePools[0].Spec.Template.Spec.Requirements = append(o.NodePools[0].Spec.Template.Spec.Requirements, q)
		for i := range 2 {
			s.Nodes[i].Labels = append(slices.Clone(s.Nodes[i].Labels), policy.Label{Key: key, Value: "north"})
			slices.SortFunc(s.Nodes[i].Labels, func(a, b policy.Label) int { return strings.Compare(a.Key, b.Key) })
		}
		s.Templates = slices.Clone(s.Templates)
		at := slices.IndexFunc(s.Templates, func(x policy.Template) bool { return !x.DaemonSet })
		s.Templates[at].NodeSelector = []policy.Label{{Key: key, Value: "north"}}
		c, w, text := capturedDay(t, s, o)
		choices := 0
		for _, own := range w.NodePools {
			if own != nil && len(own.Choices) == 1 && own.Choices[0].Open && len(own.Choices[0].Values) == 2 {
				choices++
			}
		}
		if choices != 1 || strings.Contains(text, "north") == hidden {
			t.Errorf("hidden %v: %d choices\n%s", hidden, choices, text)
		}
		if slices.ContainsFunc(c.Left, func(l string) bool { return strings.Contains(l, "stay pending") }) {
			t.Errorf("left out %q", c.Left)
		}
	}
}
