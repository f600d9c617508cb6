package capture

import (
	"bytes"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// bind binds a scenario to its trace.
func bind(t *testing.T, file string, text []byte, tr *trace.Trace) (*scenarios.BoundScenario, *trace.Trace) {
	t.Helper()
	sc, err := scenarios.Parse(file, text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if tr == nil {
		if tr, _, err = trace.EmbeddedNamed(sc.Trace); sc.Trace == "" {
			tr, err = trace.Synthetic()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	w, err := scenarios.Bind(sc, tr, scenarios.BindOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return w, tr
}

// snapshot returns the cluster that a scenario describes: one Spot node and two on-demand nodes
// of each pool, which run all desired pods.
func snapshot(w *scenarios.BoundScenario) *policy.Snapshot {
	s := &policy.Snapshot{
		Now: w.Start, Types: w.Types, Zones: w.Zones, Markets: w.Markets, Pools: w.Pools, Templates: w.Templates, PDBs: w.PDBs,
		Budgets: w.GPUBudgets, Commitments: w.Commitments,
	}
	for i := range w.Pools {
		for _, capacity := range []policy.CapacityType{policy.Spot, policy.OnDemand, policy.OnDemand} {
			k := slices.IndexFunc(w.Pools[i].Markets, func(m policy.MarketID) bool { return w.Markets[m].Capacity == capacity })
			if k < 0 {
				continue
			}
			id := policy.NodeID(len(s.Nodes))
			s.Nodes = append(s.Nodes, policy.Node{
				ID: id, Name: fmt.Sprint("node-", id), Pool: w.Pools[i].ID, Market: w.Pools[i].Markets[k], Phase: policy.NodeInitialized,
			})
		}
	}
	for i := range w.Workloads {
		x := w.Workloads[i].Workload
		if j := w.Workloads[i].Job; j != nil {
			x.Work = time.Duration(j.Completions) * j.Work
			if j.Deadline > 0 {
				x.Deadline = w.Start.Add(j.Deadline)
			}
		}
		s.Workloads = append(s.Workloads, x)
		for n := range x.Replicas {
			id := policy.PodID(len(s.Pods))
			s.Pods = append(s.Pods, policy.Pod{
				ID: id, Name: fmt.Sprintf("%s-%d", x.Name, n), Template: policy.TemplateID(i), Phase: policy.PodReady,
				Node: policy.NodeID(int(id) % len(s.Nodes)), DoNotDisrupt: w.Workloads[i].DoNotDisrupt,
			})
		}
	}
	return s
}

func options() Options { return Options{Name: "captured", Provider: "aws", JobDuration: time.Hour} }

func written(t *testing.T, c *Captured, w *scenarios.BoundScenario) []byte {
	t.Helper()
	text, err := c.Write(Run{Start: w.Start, Duration: w.Duration, WarmUp: w.WarmUp, Head: []string{"A test."}})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestRoundTrip captures the cluster that every embedded scenario describes, reads the result as
// a scenario, and compares every field of every pod template, workload, disruption budget, pool
// and accelerator budget, and the nodes.
func TestRoundTrip(t *testing.T) {
	for _, name := range scenarios.Names() {
		if strings.HasPrefix(name, "bench-") {
			continue // larger, and of the same fields
		}
		if name == "nodepools" {
			continue // a snapshot does not have the user's objects: TestOwnNodePools has them
		}
		t.Run(name, func(t *testing.T) {
			text, err := scenarios.Source(name)
			if err != nil {
				t.Fatal(err)
			}
			before, tr := bind(t, name, text, nil)
			s := snapshot(before)
			c, err := Take(s, options())
			if err != nil {
				t.Fatal(err)
			}
			got := written(t, c, before)
			after, _ := bind(t, "captured.yaml", got, tr)
			compare(t, before, after)
			if c.Nodes != len(s.Nodes) || c.Spot != len(s.Pools) {
				t.Errorf("%d nodes, %d of them spot; want %d and %d", c.Nodes, c.Spot, len(s.Nodes), len(s.Pools))
			}
			if !after.Captured || before.Captured {
				t.Errorf("captured: %v before, %v after", before.Captured, after.Captured)
			}
			if want, have := nodesOf(s), seedsOf(after); !reflect.DeepEqual(want, have) {
				t.Errorf("nodes\n%v\nwant\n%v", have, want)
			}
			if want, have := podsOf(s), podsAt(after); !reflect.DeepEqual(want, have) {
				t.Errorf("pods on nodes\n%v\nwant\n%v", have, want)
			}
		})
	}
}

// nodesOf counts the nodes of a snapshot by pool and market, seedsOf the initial nodes of a
// scenario.
func nodesOf(s *policy.Snapshot) map[string]int {
	out := map[string]int{}
	for i := range s.Nodes {
		out[s.Pools[s.Nodes[i].Pool].Name+" "+s.Markets[s.Nodes[i].Market].Name]++
	}
	return out
}

func seedsOf(w *scenarios.BoundScenario) map[string]int {
	out := map[string]int{}
	for _, x := range w.Seeds {
		out[w.Pools[x.Pool].Name+" "+w.Markets[x.Market].Name] += x.Count
	}
	return out
}

// podsOf counts the pods of a snapshot by workload, pool and market, podsAt the pods that are on
// nodes at the start of a scenario.
func podsOf(s *policy.Snapshot) map[string]int {
	out := map[string]int{}
	for i := range s.Pods {
		n, t := &s.Nodes[s.Pods[i].Node], &s.Templates[s.Pods[i].Template]
		if !t.DaemonSet {
			out[t.Name+" "+s.Pools[n.Pool].Name+" "+s.Markets[n.Market].Name]++
		}
	}
	return out
}

func podsAt(w *scenarios.BoundScenario) map[string]int {
	out := map[string]int{}
	for _, x := range w.Seeds {
		for _, p := range x.Pods {
			out[w.Workloads[p.Workload].Name+" "+w.Pools[x.Pool].Name+" "+w.Markets[x.Market].Name] += int(p.Count) * x.Count
		}
	}
	return out
}

// compare reports where two scenarios differ. Workloads without replicas are not captured, nor is
// anything that only their pods need.
func compare(t *testing.T, before, after *scenarios.BoundScenario) {
	t.Helper()
	at := 0
	for i := range before.Workloads {
		x := &before.Workloads[i]
		if x.Replicas == 0 && x.Kind != policy.KindDaemonSet {
			continue
		}
		if at == len(after.Workloads) || after.Workloads[at].Name != x.Name {
			t.Fatalf("workload %s is not captured", x.Name)
		}
		y := &after.Workloads[at]
		a, b := before.Templates[i], after.Templates[at]
		a.ID, b.ID, a.Workload, b.Workload = 0, 0, 0, 0
		for _, p := range []*policy.Template{&a, &b} { // budgets are known by other numbers
			p.PDBs = nil
		}
		slices.SortFunc(a.Volumes, byClaim)
		slices.SortFunc(b.Volumes, byClaim)
		if !reflect.DeepEqual(a, b) {
			t.Errorf("template of %s\n%+v\nwant\n%+v", x.Name, b, a)
		}
		if x.Kind != y.Kind || x.Replicas != y.Replicas || x.OutagePenalty != y.OutagePenalty ||
			x.OutageCostPerHour != y.OutageCostPerHour || x.DoNotDisrupt != y.DoNotDisrupt {
			t.Errorf("workload %+v, want %+v", *y, *x)
		}
		if x.Job != nil && (x.Job.Work != y.Job.Work || x.Job.Checkpoint != y.Job.Checkpoint ||
			x.Job.Deadline != y.Job.Deadline || x.Job.Pods != y.Job.Pods || x.Job.Completions != y.Job.Completions) {
			t.Errorf("job %s %+v, want %+v", x.Name, *y.Job, *x.Job)
		}
		at++
	}
	if at != len(after.Workloads) {
		t.Errorf("%d workloads, want %d", len(after.Workloads), at)
	}
	for i := range before.PDBs {
		k := slices.IndexFunc(after.PDBs, func(p policy.PDB) bool { return p.Name == before.PDBs[i].Name })
		if k < 0 {
			t.Errorf("PDB %s is not captured", before.PDBs[i].Name)
			continue
		}
		a, b := before.PDBs[i], after.PDBs[k]
		a.ID, b.ID = 0, 0
		if !reflect.DeepEqual(a, b) {
			t.Errorf("PDB %+v, want %+v", b, a)
		}
	}
	if !reflect.DeepEqual(before.GPUBudgets, after.GPUBudgets) {
		t.Errorf("budgets %+v, want %+v", after.GPUBudgets, before.GPUBudgets)
	}
	for i := range before.Pools {
		a, b := before.Pools[i], after.Pools[i]
		if len(a.Markets) != len(b.Markets) {
			t.Errorf("pool %s may buy in %d markets, want %d", a.Name, len(b.Markets), len(a.Markets))
		}
		if want := []policy.CapacityType{policy.OnDemand, policy.Spot}; !slices.Equal(b.CapacityTypes, want) {
			t.Errorf("pool %s buys %v by itself, and its nodes are %v", b.Name, b.CapacityTypes, want)
		}
		a.Markets, b.Markets, b.CapacityTypes = nil, nil, nil
		if !reflect.DeepEqual(a, b) {
			t.Errorf("pool %+v, want %+v", b, a)
		}
	}
}

func byClaim(a, b policy.Volume) int { return strings.Compare(a.Claim, b.Claim) }

// TestAnonymise finds no name that a person chose in what is written, and the same
// scenario behind other names.
func TestAnonymise(t *testing.T) {
	text, err := scenarios.Source("web-week")
	if err != nil {
		t.Fatal(err)
	}
	before, tr := bind(t, "web-week", text, nil)
	o := options()
	o.Anonymise = true
	c, err := Take(snapshot(before), o)
	if err != nil {
		t.Fatal(err)
	}
	got := written(t, c, before)
	chosen := regexp.MustCompile(`frontend|checkout|catalog|sessions|recommendations|namespace: web|general`)
	if leak := chosen.Find(got); leak != nil {
		t.Errorf("%q is in the scenario", leak)
	}
	after, _ := bind(t, "captured.yaml", got, tr)
	if len(after.Workloads) != len(before.Workloads) || len(after.PDBs) != len(before.PDBs) || len(after.Warnings) > len(before.Warnings) {
		t.Errorf("%d workloads, %d PDBs, warnings %q", len(after.Workloads), len(after.PDBs), after.Warnings)
	}
	penalties := func(w *scenarios.BoundScenario) (sum float64) {
		for i := range w.Workloads {
			sum += w.Workloads[i].OutagePenalty * float64(w.Workloads[i].Replicas)
		}
		return sum
	}
	if a, b := penalties(before), penalties(after); a != b {
		t.Errorf("an outage of all costs %v, and %v with other names", a, b)
	}
	again, err := Take(snapshot(before), o)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, written(t, again, before)) {
		t.Error("two captures of one snapshot differ")
	}
}

// team is a label that pods ask nodes for.
var team = policy.Label{Key: "team", Value: "a"}

// foreign returns a cluster of node groups that no CapacityPool holds: a mixed one, one of
// accelerators, one of an unknown type, and the control plane.
func foreign() *policy.Snapshot {
	node := func(id int, group, zone, kind, capacity string, more ...policy.Label) policy.Node {
		labels := append([]policy.Label{
			{Key: "eks.amazonaws.com/capacityType", Value: capacity}, {Key: "eks.amazonaws.com/nodegroup", Value: group},
			{Key: "node.kubernetes.io/instance-type", Value: kind}, {Key: "topology.kubernetes.io/region", Value: "us-east-1"},
			{Key: "topology.kubernetes.io/zone", Value: zone},
		}, more...)
		slices.SortFunc(labels, func(a, b policy.Label) int { return strings.Compare(a.Key, b.Key) })
		return policy.Node{ID: policy.NodeID(id), Name: fmt.Sprint("n", id), Pool: policy.None, Market: policy.None,
			Phase: policy.NodeInitialized, Labels: labels,
			Taints: []policy.Taint{{Key: "team", Value: "a", Effect: policy.NoSchedule}}}
	}
	return &policy.Snapshot{
		Now: 1_767_225_600_000,
		Nodes: []policy.Node{
			node(0, "Web_A", "us-east-1a", "m5.large", "SPOT", team), node(1, "Web_A", "us-east-1b", "m5.2xlarge", "ON_DEMAND", team),
			node(2, "gpu", "us-east-1a", "g5.xlarge", "ON_DEMAND"), node(3, "odd", "us-east-1a", "z99.huge", "SPOT"),
			node(4, "cp", "us-east-1a", "m5.large", "ON_DEMAND", policy.Label{Key: "node-role.kubernetes.io/control-plane"}),
		},
		Templates: []policy.Template{
			{ID: 0, Workload: 0, Name: "a/web", Namespace: "a", Grace: graceDefault, OutagePenalty: -1, MigrationTier: -1,
				Requests: policy.Resources{CPU: 500, Memory: 1 << 30, Pods: 1}, NodeSelector: []policy.Label{team,
					{Key: "eks.amazonaws.com/capacityType", Value: "SPOT"}}},
			{ID: 1, Workload: policy.None, Name: "kube-system/etcd", Namespace: "kube-system", Grace: graceDefault,
				OutagePenalty: -1, MigrationTier: -1,
				Requests: policy.Resources{CPU: 100, Pods: 1}},
		},
		Workloads: []policy.Workload{{ID: 0, Name: "a/web", Kind: policy.KindDeployment, Replicas: 3}},
		Pods: []policy.Pod{
			{ID: 0, Name: "a/web-0", Phase: policy.PodReady, Node: 0, Bound: 1000, ReadySince: 21_000}, {ID: 1,
				Name: "a/web-1", Phase: policy.PodReady, Node: 3},
			{ID: 2, Name: "a/web-2", Phase: policy.PodPending, Node: policy.None}, {ID: 3, Name: "kube-system/etcd",
				Template: 1, Phase: policy.PodReady, Node: 4},
		},
	}
}

// TestDerivedPools captures nodes that no CapacityPool holds: they become pools by the
// label of who made them, with what they have in common.
func TestDerivedPools(t *testing.T) {
	s := foreign()
	c, err := Take(s, options())
	if err != nil {
		t.Fatal(err)
	}
	tr, err := c.Draw(1, drawnMax, s.Now, s.Now.Add(24*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if !tr.Synthetic {
		t.Error("drawn prices are not said to be synthetic")
	}
	text, err := c.Write(Run{Start: s.Now, Duration: 24 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	w, _ := bind(t, "captured.yaml", text, tr)
	if got, want := fmt.Sprint(seedsOf(w)), "map[gpu aws/us-east-1/us-east-1a/g5.xlarge/on-demand:1 web-a aws/us-east-1/us-east-1a/m5.large/spot:1 web-a aws/us-east-1/us-east-1b/m5.2xlarge/on-demand:1]"; got != want {
		t.Errorf("nodes %s, want %s\n%s", got, want, text)
	}
	web := &w.Pools[1]
	if len(web.Taints) != 1 || web.Taints[0].Key != "team" || len(web.Labels) != 1 || web.Labels[0] != team {
		t.Errorf("pool %s has taints %v and labels %v", web.Name, web.Taints, web.Labels)
	}
	if len(web.Markets) < 20 {
		t.Errorf("pool %s may buy in %d markets: too few to go elsewhere when a market is squeezed", web.Name, len(web.Markets))
	}
	x := &w.Templates[0]
	if got := fmt.Sprint(x.NodeSelector); got != "[{karpenter.sh/capacity-type spot} {team a}]" || x.Startup != 20*time.Second {
		t.Errorf("selector %s, start %v", got, x.Startup)
	}
	if n := w.Workloads[0].Replicas; n != 2 {
		t.Errorf("%d pods are wanted; one of three is on a node that is not captured", n)
	}
	for _, want := range []string{"z99.huge", "control plane", "pods on nodes"} {
		if !slices.ContainsFunc(c.Left, func(l string) bool { return strings.Contains(l, want) }) {
			t.Errorf("that %s is left out is not said: %q", want, c.Left)
		}
	}
}

// TestCapacityTypes: a captured pool may buy the capacity types that its NodePools allow,
// whatever its nodes are at the moment; where the NodePools may not be read, the capacity types
// of its nodes.
func TestCapacityTypes(t *testing.T) {
	ask := func(op corev1.NodeSelectorOperator, values ...string) []karpv1.NodeSelectorRequirementWithMinValues {
		return []karpv1.NodeSelectorRequirementWithMinValues{{Key: karpv1.CapacityTypeLabelKey, Operator: op, Values: values}}
	}
	for name, x := range map[string]struct {
		requirements []karpv1.NodeSelectorRequirementWithMinValues
		unread       bool
		want         []policy.CapacityType
	}{
		"both":           {ask(corev1.NodeSelectorOpIn, "spot", "on-demand"), false, []policy.CapacityType{policy.OnDemand, policy.Spot}},
		"one":            {ask(corev1.NodeSelectorOpIn, "on-demand"), false, []policy.CapacityType{policy.OnDemand}},
		"all but one":    {ask(corev1.NodeSelectorOpNotIn, "on-demand"), false, []policy.CapacityType{policy.Spot}},
		"not asked for":  {nil, false, []policy.CapacityType{policy.OnDemand, policy.Spot}},
		"as its node is": {nil, true, []policy.CapacityType{policy.Spot}},
	} {
		s := foreign()
		s.Nodes[0].Labels = append(s.Nodes[0].Labels, policy.Label{Key: karpv1.NodePoolLabelKey, Value: "web"})
		slices.SortFunc(s.Nodes[0].Labels, func(a, b policy.Label) int { return strings.Compare(a.Key, b.Key) })
		o := options()
		if !x.unread {
			p := karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
			p.Spec.Template.Spec.Requirements = x.requirements
			p.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "default"}
			o.NodePools = []karpv1.NodePool{{ObjectMeta: metav1.ObjectMeta{Name: "other"}}, p}
		}
		c, err := Take(s, o)
		if err != nil {
			t.Fatal(err)
		}
		if !x.unread {
			at := slices.IndexFunc(c.own, func(p *ownPool) bool { return p.pool.Metadata.Name == "web" })
			if at < 0 || !slices.Equal(c.own[at].alone.Pools()[0].CapacityTypes, x.want) {
				t.Errorf("%s: NodePool %d of %+v, want %v", name, at, c.own, x.want)
			}
			continue
		}
		at := slices.IndexFunc(c.pools, func(p v1alpha1.CapacityPool) bool { return p.Name == "web" })
		if at < 0 {
			t.Fatalf("%s: there is no pool web", name)
		}
		if pool := c.pools[at].Pool(); !slices.Equal(pool.CapacityTypes, x.want) {
			t.Errorf("%s: pool %s buys %v by itself, want %v", name, pool.Name, pool.CapacityTypes, x.want)
		}
		assumed := slices.ContainsFunc(c.Assumed, func(a string) bool { return strings.Contains(a, "pool web buys spot by itself") })
		if assumed != x.unread {
			t.Errorf("%s: assumed %q", name, c.Assumed)
		}
	}
}

// TestOwnShare: if each NodePool of a pool has one capacity type, the captured pool keeps the
// Spot share of its nodes. A pool that was steered keeps the share of its steer.
func TestOwnShare(t *testing.T) {
	for name, x := range map[string]struct {
		nodepools [3]string // of the nodes, of which the first is spot
		steered   float64
		want      float64
	}{
		"a NodePool of each":     {[3]string{"a", "b", "b"}, -1, 0.333},
		"one of both":            {[3]string{"a", "a", "a"}, -1, 0},
		"one of both and others": {[3]string{"a", "a", "b"}, -1, 0},
		"steered":                {[3]string{"a", "a", "b"}, 0.4, 0.4},
		"steered to nothing":     {[3]string{"a", "b", "b"}, 0, 0},
		"steered to all":         {[3]string{"a", "b", "b"}, 1, 0},
	} {
		text, err := scenarios.Source("tiny")
		if err != nil {
			t.Fatal(err)
		}
		w, _ := bind(t, "tiny", text, nil)
		s := snapshot(w)
		s.Pools = slices.Clone(s.Pools)
		if x.steered >= 0 {
			s.Pools[0].Steer = policy.SteerState{Set: true, Share: x.steered}
		}
		for i := range s.Nodes {
			n := &s.Nodes[i]
			n.Labels = []policy.Label{{Key: karpv1.NodePoolLabelKey, Value: x.nodepools[i]}}
			m := s.Markets[n.Market]
			k := slices.IndexFunc(w.Pools[0].Markets, func(id policy.MarketID) bool {
				return s.Markets[id].Capacity == m.Capacity && s.Markets[id].Type == s.Markets[s.Nodes[0].Market].Type
			})
			n.Market = w.Pools[0].Markets[k]
		}
		c, err := Take(s, options())
		if err != nil {
			t.Fatal(err)
		}
		if got := c.pools[0].Pool(); got.OwnShare != x.want || len(got.CapacityTypes) != 2 {
			t.Errorf("%s: it buys %v at a share of %v, want both at %v", name, got.CapacityTypes, got.OwnShare, x.want)
		}
	}
}

// TestNothingToCapture says why there is no scenario.
func TestNothingToCapture(t *testing.T) {
	s := &policy.Snapshot{Now: 1, Nodes: []policy.Node{{Name: "kind", Pool: policy.None, Market: policy.None, Phase: policy.NodeInitialized}}}
	if _, err := Take(s, options()); err == nil || !strings.Contains(err.Error(), "instance type") {
		t.Errorf("a cluster without known nodes: %v", err)
	}
}

// TestDoNotDisruptAsItIs writes the do-not-disrupt that most pods of a workload have, also one
// that has ended; a snapshot without annotations knows true alone.
func TestDoNotDisruptAsItIs(t *testing.T) {
	for _, c := range []struct {
		values []string // of the pods of a workload, "-" for a pod of which no annotation is known
		kept   bool     // by the snapshot
		want   string
	}{
		{[]string{"2h", "2h", "true"}, true, "2h"}, {[]string{"2h", "2h", ""}, false, "2h"}, {[]string{"2h", "4h", "true"}, true, ""},
		{[]string{"-", "-", "-"}, true, "true"}, {[]string{"never", "never", "never"}, false,
			""}, {[]string{"false", "false", "false"}, false, ""},
	} {
		var x load
		src := &source{o: &Options{DoNotDisrupt: map[string]string{}}}
		for i, value := range c.values {
			p := policy.Pod{Name: "a/p-" + strconv.Itoa(i), DoNotDisrupt: c.kept}
			if value != "-" {
				src.o.DoNotDisrupt[p.Name] = value
			}
			y := &load{pods: 1, t: &policy.Template{MigrationTier: -1}}
			y.protect(src.protection(&p), 1)
			x.join(y)
		}
		if got := podAnnotations(&x)[kube.AnnotationDoNotDisrupt]; got != c.want {
			t.Errorf("%q: %q is written, want %q", c.values, got, c.want)
		}
	}
}
