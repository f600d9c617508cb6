package top

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spotter-dev/spotter/policy"
)

var now = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// object returns a ready node of an age with labels.
func object(name, providerID string, age time.Duration, labels map[string]string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, CreationTimestamp: metav1.NewTime(now.Add(-age))}}
	n.Spec.ProviderID = providerID
	n.Status.Capacity = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("16Gi")}
	n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3900m"),
		corev1.ResourceMemory: resource.MustParse("15Gi")}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return n
}

// TestNodeOf: pool, market and capacity type are read from the labels of each provisioner.
func TestNodeOf(t *testing.T) {
	for name, c := range map[string]struct {
		labels     map[string]string
		providerID string
		want       string // pool provider region zone type capacity stated
	}{
		"Karpenter": {map[string]string{
			"karpenter.sh/nodepool": "web", "karpenter.sh/capacity-type": "spot", "node.kubernetes.io/instance-type": "c6i.xlarge",
			"topology.kubernetes.io/zone": "eu-west-1b", "topology.kubernetes.io/region": "eu-west-1",
		}, "aws:///eu-west-1b/i-1", "web aws eu-west-1 eu-west-1b c6i.xlarge spot true"},
		"EKS node group": {map[string]string{
			"eks.amazonaws.com/nodegroup": "system", "eks.amazonaws.com/capacityType": "ON_DEMAND", "node.kubernetes.io/instance-type": "m6g.large",
			"topology.kubernetes.io/zone": "us-west-2c",
		}, "aws:///us-west-2c/i-2", "system aws us-west-2 us-west-2c m6g.large on-demand true"},
		"Rackspace": {map[string]string{"servers.ngpc.rxt.io/class": "gp.vs1.medium-dfw",
			"servers.ngpc.rxt.io/type": "spotnode", "nodepool.ngpc.rxt.io/name": "p7"},
			"openstack:///abc", "p7 rackspace us-central-dfw-1  gp.vs1.medium-dfw spot true"},
		"Rackspace on demand": {map[string]string{"servers.ngpc.rxt.io/class": "gp.vs1.medium-dfw", "servers.ngpc.rxt.io/type": "ondemand"},
			"", " rackspace us-central-dfw-1  gp.vs1.medium-dfw on-demand true"},
		"an own machine": {nil, "", "     on-demand false"},
	} {
		n, stated := nodeOf(object("n", c.providerID, time.Hour, c.labels), now)
		got := strings.Join([]string{n.Pool, n.Provider, n.Region, n.Zone, n.Type, n.Capacity, fmt.Sprint(stated)}, " ")
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestNotices: each mark is named, with who set it and how long is left.
func TestNotices(t *testing.T) {
	taint := func(key string, ago time.Duration) func(*corev1.Node) {
		at := metav1.NewTime(now.Add(-ago))
		return func(n *corev1.Node) {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule, TimeAdded: &at})
		}
	}
	for want, mark := range map[string]func(*corev1.Node){
		"": func(*corev1.Node) {},
		"under notice: reclaimed in 80s; drained by Node Termination Handler": taint("aws-node-termination-handler/spot-itn", 40*time.Second),
		"under notice since 5m; drained by Node Termination Handler":          taint("aws-node-termination-handler/spot-itn", 5*time.Minute),
		"disrupted by Karpenter":        taint("karpenter.sh/disrupted", 0),
		"drained by Cluster Autoscaler": taint("ToBeDeletedByClusterAutoscaler", 0),
		"drained by Spotter":            taint("spotter.dev/draining", 0),
		"cordoned":                      func(n *corev1.Node) { n.Spec.Unschedulable = true },
		"being deleted":                 func(n *corev1.Node) { at := metav1.NewTime(now); n.DeletionTimestamp = &at },
		"not ready":                     func(n *corev1.Node) { n.Status.Conditions = nil },
		"under notice: reclaimed in 30s": func(n *corev1.Node) {
			n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{
				Type: "PreemptScheduled", Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(30*time.Second - policy.NoticeLead(policy.Azure))),
			})
		},
	} {
		n := object("n", "", time.Hour, nil)
		mark(n)
		if got := strings.Join(noticesOf(n, now), "; "); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func dollars(x float64) *float64 { return &x }

// tableOf returns three nodes and one of which little is known.
func tableOf() *Table {
	pods := 12
	node := func(name, pool, kind, capacity string, price, cpu *float64, age time.Duration) Node {
		n := Node{Name: name, Pool: pool, Provider: "aws", Region: "us-east-2", Zone: "us-east-2a", Type: kind, Capacity: capacity,
			Price: price, PriceOf: sourceCatalog, Created: now.Add(-age), Age: age.Seconds(), VCPU: 8, Memory: 32, CPUUse: cpu, MemoryUse: dollars(0.25), Pods: &pods}
		return n
	}
	t := &Table{At: now, Nodes: []Node{
		node("ip-10-0-31-7.us-east-2.compute.internal", "general", "m6i.2xlarge", "spot", dollars(0.1234), dollars(0.5), 50*time.Hour),
		node("ip-10-0-112-70.us-east-2.compute.internal", "batch", "m6i.2xlarge", "on-demand", dollars(0.384), dollars(0.9), 90*time.Minute),
		node("ip-10-0-1-7.us-east-2.compute.internal", "general", "m6i.2xlarge", "spot", nil, dollars(0.1), 90*time.Second),
		{Name: "metal-1", Capacity: "on-demand", Created: now, VCPU: 8},
	}}
	t.Nodes[0].Notices = []string{"under notice: reclaimed in 80s", "drained by Spotter"}
	t.Nodes[2].PriceOf = ""
	t.Totals = totalsOf(t.Nodes)
	return t
}

// TestTotals: nodes without a price are in no sum of dollars, and a month has 730 hours.
func TestTotals(t *testing.T) {
	x := tableOf().Totals
	if x.Nodes != 4 || x.Spot != 2 || x.VCPU != 32 || x.SpotVCPU != 16 || x.Priced != 2 ||
		fmt.Sprintf("%.4f %.3f", x.PerHour, x.PerMonth) != "0.5074 370.402" {
		t.Errorf("totals are %+v", x)
	}
}

// TestSort: unknown values are last, and an unknown column is refused.
func TestSort(t *testing.T) {
	table := tableOf()
	for by, want := range map[string]string{"age": "31 112 1 metal", "price": "112 31 1 metal", "use": "112 31 1 metal",
		"pool": "112 1 31 metal"} {
		if err := table.Sort(by); err != nil {
			t.Fatal(err)
		}
		var got []string
		for i := range table.Nodes {
			name := strings.TrimPrefix(table.Nodes[i].Name, "ip-10-0-")
			name, _, _ = strings.Cut(name, "-")
			got = append(got, name)
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("by %s: %s, want %s", by, text, want)
		}
	}
	if err := table.Sort("prise"); err == nil || !strings.Contains(err.Error(), "did you mean price") {
		t.Errorf("an unknown column: %v", err)
	}
}

const drawn = `4 nodes in us-east-2, 2 on Spot (50%); Spot has 50% of 32 vCPU
$0.51 an hour, $370 a month, not counting 2 nodes without a known price

NODE           POOL     TYPE         ZONE  BUY         $/H AGE CPU MEM PODS
ip-10-0-112-70 batch    m6i.2xlarge  a     on-demand 0.384 90m 90% 25%   12
`

// TestLines: the table is as narrow as its names let it be, fits a width by cutting names,
// and lists no more nodes than it is given room for.
func TestLines(t *testing.T) {
	table := tableOf()
	if err := table.Sort("price"); err != nil {
		t.Fatal(err)
	}
	all := table.Lines(0, -1, false)
	t.Log("\n" + strings.Join(all, "\n"))
	squeezed := strings.Join(strings.Fields(strings.Join(all, "\n")), " ")
	if want := strings.Join(strings.Fields(drawn), " "); !strings.HasPrefix(squeezed, want) {
		t.Errorf("it is\n%s\nwant it to begin with\n%s", strings.Join(all, "\n"), drawn)
	}
	for _, want := range []string{"  ! under notice: reclaimed in 80s; drained by Spotter", "metal-1"} {
		if !slices.ContainsFunc(all, func(l string) bool { return strings.HasPrefix(l, want) }) {
			t.Errorf("%q is missing", want)
		}
	}
	table.Nodes[0].Name, table.Nodes[1].Pool = strings.Repeat("n", 60), strings.Repeat("p", 60)
	for _, line := range table.Lines(80, -1, false) {
		if n := utf8.RuneCountInString(line); n > 80 {
			t.Errorf("%d runes: %s", n, line)
		}
	}
	if lines := table.fit(80, 8, false); len(lines) > 8 || !slices.Contains(lines, "… 2 more nodes") {
		t.Errorf("within eight lines:\n%s", strings.Join(lines, "\n"))
	}
	if empty := (&Table{}).Lines(80, -1, false); len(empty) != 1 || empty[0] != "0 nodes, 0 on Spot" {
		t.Errorf("an empty cluster: %q", empty)
	}
}
