package try

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/access"
	"github.com/spotter-dev/spotter/cmd/spotter/internal/capture"
	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/cli/clitest"
	"github.com/spotter-dev/spotter/live/aws"
	"github.com/spotter-dev/spotter/policy/figures"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// sighted reads a cluster.
func sighted(t *testing.T, s shelf) (*sight, error) {
	t.Helper()
	x := &sight{server: "https://shop.test"}
	return x, x.take(t.Context(), s.reader(t.Context()))
}

// isWrongCall fails unless err is a fault of the input, in one line that says want.
func isWrongCall(t *testing.T, err error, want string) {
	t.Helper()
	var invalid *cli.InvalidError
	if !errors.As(err, &invalid) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v, want a line with %q and exit code %d", err, want, cli.ExitInvalid)
	}
}

// nodesOf returns the nodes of s.
func (s shelf) nodes() (out []*corev1.Node) {
	for _, o := range s.objects {
		if n, is := o.(*corev1.Node); is {
			out = append(out, n)
		}
	}
	return out
}

// forbid refuses the lists of one kind, as for a user without the right.
func forbid[L client.ObjectList](s *shelf, name string) {
	s.refuse = func(l client.ObjectList) error {
		if _, is := l.(L); is {
			return apierrors.NewForbidden(schema.GroupResource{Resource: name}, "", nil)
		}
		return nil
	}
}

// without takes the NodePools away, and the labels of Karpenter from nodes.
func without(s *shelf, labels map[string]string) {
	s.objects = slices.DeleteFunc(s.objects, func(o client.Object) bool { _, is := o.(*karpv1.NodePool); return is })
	for _, n := range s.nodes() {
		for _, key := range []string{karpv1.NodePoolLabelKey, karpv1.CapacityTypeLabelKey, karpv1.NodeInitializedLabelKey} {
			delete(n.Labels, key)
		}
		maps.Copy(n.Labels, labels)
	}
}

// beta puts a NodePool of v1beta1 in place of those of v1.
func beta(s *shelf) {
	s.objects = slices.DeleteFunc(s.objects, func(o client.Object) bool { _, is := o.(*karpv1.NodePool); return is })
	p := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"weight": int64(7), "limits": map[string]any{"cpu": "1k"},
		"disruption": map[string]any{"consolidationPolicy": "WhenUnderutilized", "expireAfter": "240h",
			"budgets": []any{map[string]any{"nodes": "5%"}}},
		"template": map[string]any{
			"metadata": map[string]any{"labels": map[string]any{"team": "shop"}},
			"spec": map[string]any{"requirements": []any{map[string]any{"key": "karpenter.sh/capacity-type", "operator": "In",
				"values": []any{"on-demand"}}},
				"kubelet": map[string]any{"maxPods": int64(20)}, "nodeClassRef": map[string]any{"apiVersion": "karpenter.k8s.aws/v1beta1", "kind": "EC2NodeClass", "name": "bottlerocket"}},
		},
	}}}
	p.SetGroupVersionKind(schema.GroupVersionKind{Group: "karpenter.sh", Version: "v1beta1", Kind: "NodePool"})
	p.SetName("default")
	s.objects = append(s.objects, p)
}

// TestFaults: everything in a cluster that cannot be read or simulated is reported in one
// sentence, as an error if nothing could be tried, otherwise next to the results for the rest.
func TestFaults(t *testing.T) {
	alone(t)
	place := func(kind, region string) map[string]string {
		return map[string]string{corev1.LabelInstanceTypeStable: kind, corev1.LabelTopologyRegion: region,
			corev1.LabelTopologyZone: region + "-a"}
	}
	for name, x := range map[string]struct {
		change func(*shelf)
		fails  string   // empty for one that is tried
		says   []string // of the sentences, and of the notes to CapacityPools
		nodes  int      // that are tried, of 30
		pools  string   // backends of the CapacityPools
	}{
		"no nodes": {change: func(s *shelf) { s.objects = nil }, fails: "the cluster has no nodes"},
		"no workloads": {change: func(s *shelf) { s.objects = []client.Object{node(0, "default", nil)} },
			fails: "nothing is wanted: there is no workload"},
		"all types are unknown": {change: func(s *shelf) { label(s, 30, corev1.LabelInstanceTypeStable, "z99.huge") },
			fails: "30 nodes of type z99.huge, which the catalog of aws does not hold"},
		"a type is unknown": {change: func(s *shelf) { label(s, 2, corev1.LabelInstanceTypeStable, "z99.huge") },
			says: []string{"2 nodes of type z99.huge"}, nodes: 28, pools: "karpenter"},
		"Windows": {change: func(s *shelf) { label(s, 2, corev1.LabelOSStable, "windows") },
			says: []string{"2 nodes that run Windows"}, nodes: 28, pools: "karpenter"},
		"Fargate": {change: func(s *shelf) { label(s, 1, "eks.amazonaws.com/compute-type", "fargate") },
			says: []string{"1 nodes of Fargate"}, nodes: 29, pools: "karpenter"},
		"all of Fargate": {change: func(s *shelf) { label(s, 30, "eks.amazonaws.com/compute-type", "fargate") },
			fails: "30 nodes of Fargate"},
		"MIG by its resource": {change: func(s *shelf) { s.nodes()[0].Status.Capacity["nvidia.com/mig-1g.5gb"] = resource.MustParse("7") },
			says: []string{"1 nodes whose GPUs are cut into nvidia.com/mig-1g.5gb"}, nodes: 29, pools: "karpenter"},
		"MIG by its label": {change: func(s *shelf) {
			label(s, 1, "nvidia.com/gpu.product",
				"A100-SXM4-40GB-MIG-1g.5gb")
		}, says: []string{"1 nodes whose GPUs are cut into A100-SXM4-40GB-MIG-1g.5gb"}, nodes: 29, pools: "karpenter"},
		"GPUs shared": {change: func(s *shelf) { label(s, 1, "nvidia.com/gpu.sharing-strategy", "time-slicing") },
			says: []string{"1 nodes whose GPUs are shared by time"}, nodes: 29, pools: "karpenter"},
		"GPUs not shared":   {change: func(s *shelf) { label(s, 1, "nvidia.com/gpu.sharing-strategy", "none") }, nodes: 30, pools: "karpenter"},
		"no right to nodes": {change: func(s *shelf) { forbid[*corev1.NodeList](s, "nodes") }, fails: "the right to list nodes is missing"},
		"no right to pods":  {change: func(s *shelf) { forbid[*corev1.PodList](s, "pods") }, fails: "the right to list pods is missing"},
		"no right to PDBs": {change: func(s *shelf) { forbid[*policyv1.PodDisruptionBudgetList](s, "pdbs") },
			says: []string{"the right to list poddisruptionbudgets.policy is missing: there are no disruption budgets"}, nodes: 30, pools: "karpenter"},
		"no right to pools": {change: func(s *shelf) { forbid[*karpv1.NodePoolList](s, "nodepools") },
			says: []string{"the right to list nodepools.karpenter.sh is missing"}, nodes: 30, pools: "karpenter"},
		"no right to claims": {change: func(s *shelf) { forbid[*corev1.PersistentVolumeClaimList](s, "pvcs") },
			says: []string{"the right to list persistentvolumeclaims is missing"}, nodes: 30, pools: "karpenter"},
		"v1beta1": {change: beta, says: []string{"the NodePools are of karpenter.sh/v1beta1"}, nodes: 30, pools: "karpenter"},
		"a fixed number of nodes": {change: func(s *shelf) {
			for _, o := range s.objects {
				if p, is := o.(*karpv1.NodePool); is {
					p.Spec.Replicas = ptr(int64(30))
				}
			}
		}, nodes: 30, pools: "karpenter"},
		"a NodePool is wrong": {change: func(s *shelf) {
			label(s, 6, karpv1.NodePoolLabelKey, "wrong")
			p := nodePoolOf("wrong", karpv1.CapacityTypeOnDemand)
			p.Spec.Weight = ptr(int32(0))
			s.objects = append(s.objects, p)
		}, says: []string{"NodePool wrong with its 6 nodes and the pods on them, 20.0% of the cost of all nodes: \"spec.weight\": 0 is not"}, nodes: 24, pools: "karpenter"},
		"a region without prices": {change: func(s *shelf) { label(s, 2, corev1.LabelTopologyRegion, "xx-north-9") },
			says: []string{"2 nodes of type m5.2xlarge in xx-north-9, of which no price is known"}, nodes: 28, pools: "karpenter"},
		"node groups of EKS": {change: func(s *shelf) {
			without(s,
				map[string]string{"eks.amazonaws.com/nodegroup": "web"})
		}, says: []string{"the Cluster Autoscaler serves"}, nodes: 30, pools: "asg"},
		"kops": {change: func(s *shelf) {
			without(s,
				map[string]string{"kops.k8s.io/instancegroup": "nodes"})
		}, says: []string{"replaces no node that runs"}, nodes: 30, pools: "asg"},
		"groups of no name": {change: func(s *shelf) { without(s, nil) },
			says: []string{"30 nodes in no CapacityPool: no label says which"}, nodes: 30},
		"GKE": {change: func(s *shelf) { without(s, place("e2-standard-8", "us-central1")) },
			says: []string{"nodes of Google Cloud are bought and emptied as Karpenter would"}, nodes: 30},
		"AKS": {change: func(s *shelf) { without(s, place("Standard_D8s_v5", "eastus")) },
			says: []string{"nodes of Azure are bought and emptied as Karpenter would"}, nodes: 30},
		"no metrics": {change: func(*shelf) {},
			says: []string{"pods need what they request: no metrics are read"}, nodes: 30, pools: "karpenter"},
	} {
		t.Run(name, func(t *testing.T) {
			s := shop()
			x.change(&s)
			seen, err := sighted(t, s)
			if x.fails != "" {
				isWrongCall(t, err, x.fails)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			tr := &trial{p: &cli.Program{Stderr: t.Output()}, f: &call{}, folder: folder{dir: t.TempDir()}, began: time.Now(), patient: few()}
			staged, err := tr.scenario(t.Context(), seen)
			if err != nil {
				t.Fatal(err)
			}
			p := poolsOf(seen, staged.bound)
			all := strings.Join(slices.Concat(seen.Missing, seen.taken.Left, staged.assumed(), p.notes), "\n")
			for _, want := range x.says {
				if !strings.Contains(all, want) {
					t.Errorf("it is not said that %s:\n%s", want, all)
				}
			}
			if seen.taken.Nodes != x.nodes || strings.Join(p.backends, ",") != x.pools {
				t.Errorf("%d nodes are tried and CapacityPools of %q made, want %d and %q", seen.taken.Nodes, p.backends, x.nodes, x.pools)
			}
		})
	}
}

// label gives the first n nodes a label.
func label(s *shelf, n int, key, value string) {
	for _, x := range s.nodes()[:n] {
		x.Labels[key] = value
	}
}

// TestOwnNodePools: NodePools are simulated with their own settings. One whose budget allows no
// disruption keeps its nodes under every policy. Where only one node in n is simulated, limits
// are divided by n.
func TestOwnNodePools(t *testing.T) {
	alone(t)
	s := shop()
	for _, o := range s.objects {
		if p, is := o.(*karpv1.NodePool); is {
			p.Spec.Disruption.Budgets = []karpv1.Budget{{Nodes: "0"}}
			p.Spec.Limits = karpv1.Limits{corev1.ResourceCPU: resource.MustParse("242"), "nodes": resource.MustParse("31")}
		}
	}
	out, log, dir, err := tried(t, few(), s)
	if err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	const month = 30 * (0.384*eval.MonthHours + 24*0.08) // with the volumes of Bottlerocket
	if n := strings.Count(out, figures.Dollars(month)); n != 7 || strings.Contains(out, "consolidation by the pools themselves changes") {
		t.Errorf("%d of 7 amounts are what 30 nodes cost that no policy may end:\n%s", n, out)
	}
	if text := read(t, dir, scenarioFile); !strings.Contains(text, "kind: NodePool\n") || !strings.Contains(text, `cpu: "242"`) {
		t.Errorf("the scenario has not the NodePool as it is:\n%.3000s", text)
	}
	part := partOf(&karpv1.NodePool{Spec: karpv1.NodePoolSpec{
		Limits:     karpv1.Limits{corev1.ResourceCPU: resource.MustParse("242"), "nodes": resource.MustParse("31")},
		Disruption: karpv1.Disruption{Budgets: []karpv1.Budget{{Nodes: "0"}, {Nodes: "5"}, {Nodes: "10%"}}},
	}}, 4)
	cpu, nodes, b := part.Spec.Limits[corev1.ResourceCPU], part.Spec.Limits["nodes"], part.Spec.Disruption.Budgets
	if cpu.Value() != 61 || nodes.Value() != 8 || b[0].Nodes != "0" || b[1].Nodes != "2" || b[2].Nodes != "10%" {
		t.Errorf("a quarter is %+v", part.Spec)
	}
}

// TestBetaNodePools: the NodePools of a Karpenter before 1.0 are simulated as v1 has them.
func TestBetaNodePools(t *testing.T) {
	s := shop()
	beta(&s)
	x, err := sighted(t, s)
	if err != nil {
		t.Fatal(err)
	}
	if got := x.forbidSpot(); len(got) != 1 || got[0] != "default" {
		t.Errorf("NodePools without Spot: %v", got)
	}
	if b := karpenterBackend(&group{name: "default"}, x.options.NodePools); b.Karpenter.NodeClassName != "bottlerocket" {
		t.Errorf("node class %s", b.Karpenter.NodeClassName)
	}
	text, err := x.taken.Write(capture.Run{})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"kind: NodePool\n", "consolidationPolicy: WhenEmptyOrUnderutilized",
		"expireAfter: 240h", "group: karpenter.k8s.aws", "nodes: 5%", "cpu: 1k", "weight: 7"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the scenario has no %s:\n%.3000s", want, text)
		}
	}
}

// TestNoKubeconfig: without a cluster the demonstration is named.
func TestNoKubeconfig(t *testing.T) {
	alone(t)
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Chdir(t.TempDir())
	program := clitest.Program(func(p *cli.Program) []*cobra.Command { return []*cobra.Command{Command(p)} })
	code, out, log := program.Call(t, "try")
	if code != cli.ExitInvalid || out != "" || !strings.Contains(log, "no kubeconfig was found") ||
		!strings.Contains(log, "spotter try --demo") {
		t.Errorf("exit code %d\n%s%s", code, out, log)
	}
}

// TestFolder: what try has not written is not replaced without --force.
func TestFolder(t *testing.T) {
	f := folder{dir: filepath.Join(t.TempDir(), "x")}
	if err := f.check(false); err != nil {
		t.Errorf("a new folder: %v", err)
	}
	if _, err := os.Stat(f.dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is made before there is anything to write: %v", err)
	}
	if err := os.Mkdir(f.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.pools(), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	isWrongCall(t, f.check(false), f.pools()+" was not written by try")
	if err := f.check(true); err != nil {
		t.Errorf("with --force: %v", err)
	}
	if err := os.WriteFile(filepath.Join(f.dir, markFile), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.check(false); err != nil {
		t.Errorf("a folder of try: %v", err)
	}
}

// TestRefusals: why prices are synthetic is said in words.
func TestRefusals(t *testing.T) {
	for want, err := range map[string]error{
		"no AWS credentials were found":                            aws.ErrNoCredentials,
		"the AWS credentials have expired":                         aws.ErrExpired,
		"the AWS credentials may not ec2:DescribeSpotPriceHistory": &aws.RequestError{Action: "ec2:DescribeSpotPriceHistory", Region: "us-east-1", Kind: aws.ErrPermission, Err: errors.New("no")},
		"AWS did not give them within 15s":                         aws.ErrTimeout,
		"AWS cannot be reached":                                    aws.ErrUnreachable,
		"AWS has none for these types":                             aws.ErrNothing,
		"one":                                                      errors.New("one\ntwo"),
	} {
		if got := access.AWSRefusal(err, 15*time.Second); got != want {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
}

// TestSample: where runs take long one node in a few is simulated, which is said, and
// amounts are those of all.
func TestSample(t *testing.T) {
	alone(t)
	whole, _, _, err := tried(t, few(), shelf{objects: clusterOf(45, 5, 4)})
	if err != nil {
		t.Fatal(err)
	}
	l := few()
	l.firstRuns = time.Nanosecond
	out, log, dir, err := tried(t, l, shelf{objects: clusterOf(45, 5, 4)})
	if err != nil || !strings.Contains(out, "one node in 4 is simulated, with its pods, and amounts are times 4") ||
		!strings.Contains(read(t, dir, scenarioFile), "33 nodes since one in 4 is simulated") {
		t.Fatalf("%v\n%s%s", err, log, out)
	}
	paid := regexp.MustCompile(`\nYou pay .*\n`).FindString(whole)
	if paid == "" || !strings.Contains(out, paid) {
		t.Errorf("what is paid now is not that of all nodes:\n%s%s", whole, out)
	}
	amount := func(text string) float64 {
		found := regexp.MustCompile(`Spot allowed .karpenter. +\$([0-9]+)`).FindStringSubmatch(strings.ReplaceAll(text, ",", ""))
		if found == nil {
			t.Fatalf("no amount:\n%s", text)
		}
		v, _ := strconv.ParseFloat(found[1], 64)
		return v
	}
	if a, b := amount(whole), amount(out); b < a/2 || b > 2*a {
		t.Errorf("amounts are not those of all nodes:\n%s%s", whole, out)
	}
}

// TestPools: nodes that a CapacityPool holds get none, and those that labels tell apart get
// one each. None does more than show.
func TestPools(t *testing.T) {
	s := shop()
	for i, o := range s.objects {
		n, is := o.(*corev1.Node)
		if !is {
			continue
		}
		switch {
		case i < 10:
			n.Labels["team"] = "shop"
		case i < 20:
			n.Labels[karpv1.NodePoolLabelKey], n.Labels["team"] = "other", "search"
		case i < 25:
			delete(n.Labels, karpv1.NodePoolLabelKey)
			n.Labels["eks.amazonaws.com/nodegroup"] = "Web_A"
		default:
			n.Labels["held"] = "yes"
		}
	}
	s.objects = append(s.objects, &v1alpha1.CapacityPool{ObjectMeta: metav1.ObjectMeta{Name: "held"}, Spec: v1alpha1.CapacityPoolSpec{
		Backend: v1alpha1.Backend{Karpenter: &v1alpha1.KarpenterBackend{NodeClassName: "default"}}, Mode: v1alpha1.ModeActive,
		Template: v1alpha1.NodeTemplate{Labels: map[string]string{"held": "yes"}}, Markets: v1alpha1.Markets{Regions: []string{"us-east-1"}},
	}})
	p := plan(t, s)
	var got []string
	for _, c := range p.pools {
		if c.Spec.Mode != v1alpha1.ModeShadow || c.Spec.Policy.Name != portfolio {
			t.Errorf("CapacityPool %s is %s, of policy %s", c.Name, c.Spec.Mode, c.Spec.Policy.Name)
		}
		class := "asg"
		if k := c.Spec.Backend.Karpenter; k != nil {
			class = k.NodeClassName
		}
		got = append(got, c.Name+" "+class+" "+metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: c.Spec.Template.Labels}))
	}
	if want := []string{"default bottlerocket team=shop", "other default team=search",
		"web-a asg eks.amazonaws.com/nodegroup=Web_A"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if strings.Join(p.backends, ",") != "asg,karpenter" || p.regions != "us-east-1" {
		t.Errorf("backends %v in %s", p.backends, p.regions)
	}
}

// TestSharedLabels: NodePools whose nodes no label tells apart share a CapacityPool.
func TestSharedLabels(t *testing.T) {
	s := shop()
	for i, o := range s.objects {
		if n, is := o.(*corev1.Node); is && i < 10 {
			n.Labels[karpv1.NodePoolLabelKey] = "other"
		}
	}
	p := plan(t, s)
	if len(p.pools) != 1 || p.pools[0].Spec.Template.Labels[corev1.LabelArchStable] != "amd64" || len(p.notes) != 1 ||
		!strings.Contains(p.notes[0], "default, other") {
		t.Errorf("%d pools, %q", len(p.pools), p.notes)
	}
	if text, err := p.write(&result{Policies: []row{{Policy: portfolio}}}); err != nil ||
		!strings.Contains(string(text), "# Left out: a CapacityPool for each of the NodePools default, other") {
		t.Errorf("%v\n%s", err, text)
	}
}

// plan makes the CapacityPools of a cluster.
func plan(t *testing.T, s shelf) *poolPlan {
	t.Helper()
	alone(t)
	x, err := sighted(t, s)
	if err != nil {
		t.Fatal(err)
	}
	tr := &trial{p: &cli.Program{Stderr: t.Output()}, f: &call{}, folder: folder{dir: t.TempDir()}, began: time.Now(), patient: few()}
	staged, err := tr.scenario(t.Context(), x)
	if err != nil {
		t.Fatal(err)
	}
	return poolsOf(x, staged.bound)
}
