package main

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpenterapis "sigs.k8s.io/karpenter/pkg/apis"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/live/karpenter"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/record"
	"github.com/spotter-dev/spotter/policy/share"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/test/testenv"
)

// TestCaptureCalls refuses what cannot be meant, and writes nothing.
func TestCaptureCalls(t *testing.T) {
	dir := t.TempDir()
	there := file(t, "there.yaml", "x")
	out := filepath.Join(dir, "c.yaml")
	for want, args := range map[string][]string{
		"--out is missing":                       {},
		there + " already exists":                {"--out", there},
		"no such file or directory":              {"--out", filepath.Join(dir, "nowhere", "c.yaml"), "--run", dir},
		`--at: "7" needs --run`:                  {"--out", out, "--at", "7"},
		"--run: a recording has its own cluster": {"--out", out, "--run", dir, "--context", "x"},
		"--duration: 5m0s is less than 1h0m0s":   {"--out", out, "--duration", "5m"},
		"--warm-up: -1s is negative":             {"--out", out, "--warm-up=-1s"},
		"--job-duration: 0s is not above 0":      {"--out", out, "--job-duration", "0"},
		`--provider: "lan" is not known`:         {"--out", out, "--provider", "lan"},
		`--nodes: "none" is neither`:             {"--out", out, "--nodes", "none"},
		`--spot-label: "=x" is not of the form`:  {"--out", out, "--spot-label", "=x"},
		"no recording":                           {"--out", out, "--run", dir},
		"no cluster":                             {"--out", out, "--kubeconfig", filepath.Join(dir, "nowhere")},
	} {
		wrongCallIs(t, want, append([]string{"capture"}, args...)...)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("refused calls left %v, %v", entries, err)
	}
	if text, err := os.ReadFile(there); err != nil || string(text) != "x" {
		t.Errorf("what was there is %q, %v", text, err)
	}
}

// TestCaptureRecording captures a step of a recorded run: the scenario starts with exactly the
// nodes and prices of that step, and a run of it keeps all invariants.
func TestCaptureRecording(t *testing.T) {
	rec, dir := filepath.Join(t.TempDir(), "steps"), t.TempDir()
	// A migration, in which half of two nodes become Spot ones; from an empty cluster all pods share one.
	scenario := file(t, "tiny.yaml", strings.Replace(tiny, "duration: 24h", "duration: 24h\n  start: on-demand", 1))
	if code, _, stderr := call(t, "sim", scenario, "--policy", "static:share=0.5", "--seed", "3", "--record", rec); code != cli.ExitOK {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	out := filepath.Join(dir, "then.yaml")
	code, stdout, stderr := call(t, "capture", "--out", out, "--run", rec, "--at", "20")
	if code != cli.ExitOK || !strings.Contains(stdout, "written to "+out) {
		t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
	}
	r, err := record.Open(rec)
	if err != nil {
		t.Fatal(err)
	}
	then, err := r.Step(20)
	if err != nil {
		t.Fatal(err)
	}
	now := firstStep(t, out)
	if want, got := holdings(then.Snapshot), holdings(now); !maps.Equal(want, got) {
		t.Errorf("the run begins with %v, and the recording has %v", got, want)
	}
	if want, got := hourly(then.Snapshot), hourly(now); want != got || want == 0 {
		t.Errorf("the run begins at %v an hour, and the recording was at %v", got, want)
	}
	wrongCallIs(t, "already exists", "capture", "--out", out, "--run", rec)
	if code, _, stderr := call(t, "capture", "--out", out, "--run", rec, "--force", "--nodes", "on-demand"); code != cli.ExitOK {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	if h := share.Of(firstStep(t, out), 0); (&h).Share() != 0 || h.Nodes == 0 {
		t.Errorf("on demand it begins with %+v", h)
	}
	wrongCallIs(t, "no step 99999", "capture", "--out", filepath.Join(dir, "x.yaml"), "--run", rec, "--at", "99999")
	wrongCallIs(t, "starts at", "capture", "--out", filepath.Join(dir, "x.yaml"), "--run", rec, "--at", "2001-01-01")
	if code, again, stderr := call(t, "eval", out, "--policies", "static", "--seeds", "1"); code != cli.ExitOK ||
		!strings.Contains(again, "static") || !strings.Contains(again, " as-is * ") {
		t.Errorf("eval of a capture: exit code %d, want the baseline as-is\n%s%s", code, again, stderr)
	}
	if code, again, stderr := call(t, "eval", out, scenario, "--policies", "static", "--seeds",
		"1"); code != cli.ExitOK || !strings.Contains(again, " karpenter * ") {
		t.Errorf("eval of a capture and another scenario: exit code %d, want the baseline karpenter\n%s%s", code, again, stderr)
	}
	mixed := filepath.Join(dir, "mixed.yaml")
	if code, _, stderr := call(t, "capture", "--out", mixed, "--run", rec, "--at", "20"); code != cli.ExitOK {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	if share := lastShare(t, mixed, "as-is"); math.Abs(share-0.5) > 0.2 {
		t.Errorf("a cluster with a spot share of one half set goes on at %v", share)
	}
	for _, spec := range []string{"as-is", "karpenter"} {
		steps := filepath.Join(t.TempDir(), spec)
		if code, _, stderr := call(t, "sim", out, "--policy", spec, "--record", steps); code != cli.ExitOK {
			t.Fatalf("exit code %d\n%s", code, stderr)
		}
		if code, stdout, stderr := call(t, "replay", steps); code != cli.ExitOK {
			t.Errorf("replay of %s: exit code %d\n%s%s", spec, code, stdout, stderr)
		}
	}
}

// firstStep plays a scenario with every invariant held and returns what its first
// decision was taken on.
func firstStep(t *testing.T, scenario string) *policy.Snapshot {
	t.Helper()
	rec := filepath.Join(t.TempDir(), "played")
	if code, stdout, stderr := call(t, "sim", scenario, "--policy", "static:share=0.5", "--check", "--record", rec); code != cli.ExitOK {
		t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
	}
	r, err := record.Open(rec)
	if err != nil {
		t.Fatal(err)
	}
	first, err := r.Step(1)
	if err != nil {
		t.Fatal(err)
	}
	return first.Snapshot
}

// lastShare simulates a scenario under a policy and returns the Spot share of its first pool at
// the last decision.
func lastShare(t *testing.T, scenario, policy string) float64 {
	t.Helper()
	rec := filepath.Join(t.TempDir(), "played")
	if code, stdout, stderr := call(t, "sim", scenario, "--policy", policy, "--record", rec); code != cli.ExitOK {
		t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
	}
	r, err := record.Open(rec)
	if err != nil {
		t.Fatal(err)
	}
	last, err := r.Last()
	if err != nil {
		t.Fatal(err)
	}
	held := share.Of(last.Snapshot, 0)
	return held.Share()
}

// holdings counts the nodes of each market, hourly adds up their prices.
func holdings(s *policy.Snapshot) map[string]int {
	out := map[string]int{}
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.Live() && n.Phase != policy.NodeDeleting {
			out[s.Markets[n.Market].Name]++
		}
	}
	return out
}

func hourly(s *policy.Snapshot) (sum policy.Money) {
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.Live() && n.Phase != policy.NodeDeleting {
			sum += s.Markets[n.Market].Charge()
		}
	}
	return sum
}

// crew makes a cluster of a pool on Karpenter, a node group that no pool holds, and a
// Deployment and a DaemonSet on them.
func crew(t *testing.T, env *testenv.Env) {
	t.Helper()
	node := func(name, kind, zone string, labels map[string]string) {
		n := testenv.Node(name, "4", "15Gi")
		maps.Copy(n.Labels, map[string]string{
			corev1.LabelInstanceTypeStable: kind, corev1.LabelTopologyZone: zone, corev1.LabelTopologyRegion: "us-east-1",
		})
		maps.Copy(n.Labels, labels)
		n.Spec.ProviderID = "aws:///" + zone + "/i-" + name
		env.AddNode(t, n)
	}
	web := func(capacity string) map[string]string {
		return map[string]string{"karpenter.sh/nodepool": "web-" + capacity, "karpenter.sh/capacity-type": capacity,
			"karpenter.sh/initialized": "true", "pool": "web"}
	}
	node("w1", "m5.xlarge", "us-east-1a", web("spot"))
	node("w2", "m5.xlarge", "us-east-1b", web("spot"))
	node("w3", "m5.xlarge", "us-east-1a", web("on-demand"))
	node("g1", "c5.xlarge", "us-east-1b", map[string]string{"eks.amazonaws.com/nodegroup": "batch",
		"eks.amazonaws.com/capacityType": "ON_DEMAND"})
	labels := map[string]string{"app": "shop"}
	pod := func(cpu string) corev1.PodTemplateSpec {
		return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "main", Image: "secret.registry/shop:1", Env: []corev1.EnvVar{{Name: "TOKEN", Value: "hidden"}},
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu),
				corev1.ResourceMemory: resource.MustParse("1Gi")}},
		}}}}
	}
	six := int32(6)
	low := intstr.FromString("50%")
	agent := pod("100m")
	agent.Labels = map[string]string{"app": "agent"}
	for _, o := range []client.Object{
		&v1alpha1.CapacityPool{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: v1alpha1.CapacityPoolSpec{
			Backend: v1alpha1.Backend{Karpenter: &v1alpha1.KarpenterBackend{NodeClassName: "default"}}, Mode: v1alpha1.ModeActive,
			Template: v1alpha1.NodeTemplate{Labels: map[string]string{"pool": "web"}},
			Markets: v1alpha1.Markets{Regions: []string{"us-east-1"}, Zones: []string{"us-east-1a", "us-east-1b"},
				Families: []string{"m5", "m6i", "c5"}},
		}},
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: "default"}, Spec: appsv1.DeploymentSpec{
			Replicas: &six, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: pod("1"),
		}},
		&appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "agent", Namespace: "default"}, Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: agent.Labels}, Template: agent,
		}},
		&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: "default"}, Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: &low, Selector: &metav1.LabelSelector{MatchLabels: labels},
		}},
	} {
		if err := env.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	testenv.Eventually(t, "six pods of the shop run", func() error {
		var pods corev1.PodList
		if err := env.Client.List(t.Context(), &pods, client.MatchingLabels(labels)); err != nil {
			return err
		}
		running := 0
		for i := range pods.Items {
			if pods.Items[i].Status.Phase == corev1.PodRunning {
				running++
			}
		}
		if running != int(six) {
			return fmt.Errorf("%d run", running)
		}
		return nil
	})
}

// mixedNodePool makes a NodePool that allows both capacity types.
func mixedNodePool(t *testing.T, env *testenv.Env, name string) {
	t.Helper()
	if err := karpenter.AddToScheme(env.Scheme); err != nil {
		t.Fatal(err)
	}
	n := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name}}
	n.Spec.Template.Spec.Requirements = []karpv1.NodeSelectorRequirementWithMinValues{{
		Key: karpv1.CapacityTypeLabelKey, Operator: corev1.NodeSelectorOpIn, Values: []string{karpv1.CapacityTypeSpot,
			karpv1.CapacityTypeOnDemand},
	}}
	n.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass", Name: "default"}
	if err := env.Client.Create(t.Context(), n); err != nil {
		t.Fatal(err)
	}
}

// TestCaptureCluster captures a cluster with permissions to read only. The run starts with the
// nodes, the share and the hourly cost of the cluster and keeps all invariants, and no contents
// of containers are written. Where something may not be read, the message names the missing
// permission.
func TestCaptureCluster(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an API server and processes")
	}
	env := testenv.New(t, testenv.Options{ControllerManager: true, Scheduler: true, Kwok: true,
		CRDs: append(slices.Clone(karpenterapis.CRDs), nodeClassCRD())})
	crew(t, env)
	mixedNodePool(t, env, "web-on-demand")
	reader := rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list"}}
	kubeconfig := testenv.Kubeconfig(t, env.User(t, "reader", reader))
	mark := env.Mark()
	out := filepath.Join(t.TempDir(), "cluster.yaml")
	code, stdout, stderr := call(t, "capture", "--out", out, "--kubeconfig", kubeconfig, "--duration", "24h")
	if code != cli.ExitOK || !strings.Contains(stdout, "4 nodes in 2 pools, 2 workloads") || !strings.Contains(stdout, "synthetic prices") {
		t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
	}
	if writes := env.Audit(t, mark, func(e testenv.AuditEvent) bool { return e.User == "reader" && e.Writes() }); len(writes) > 0 {
		t.Errorf("it wrote %v", writes)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"hidden", "TOKEN", "secret.registry"} {
		if strings.Contains(string(text), secret) {
			t.Errorf("%s is in the scenario:\n%s", secret, text)
		}
	}
	if !strings.Contains(string(text), "spotter.dev/capacity-types: on-demand,spot\n") || strings.Contains(string(text), "own-spot-share") {
		t.Errorf("one NodePool of web allows both capacity types, which is not read:\n%s", text)
	}
	s := firstStep(t, out)
	want := map[string]int{
		"aws/us-east-1/us-east-1a/m5.xlarge/spot": 1, "aws/us-east-1/us-east-1b/m5.xlarge/spot": 1,
		"aws/us-east-1/us-east-1a/m5.xlarge/on-demand": 1, "aws/us-east-1/us-east-1b/c5.xlarge/on-demand": 1,
	}
	if got := holdings(s); !maps.Equal(got, want) {
		t.Errorf("the run begins with %v, want %v\n%s", got, want, text)
	}
	sum := policy.Money(0)
	for i := range s.Markets {
		sum += policy.Money(want[s.Markets[i].Name]) * s.Markets[i].Price
	}
	if got := hourly(s); got != sum || sum == 0 {
		t.Errorf("it begins at %v an hour, and the nodes of the cluster cost %v", got, sum)
	}
	held := share.Of(s, 1)
	if share := held.Share(); fmt.Sprintf("%.3f", share) != "0.667" {
		t.Errorf("the spot share of %s is %v, and 2 of 3 equal nodes are spot", s.Pools[1].Name, share)
	}

	wrongCallIs(t, "the right to list pods is missing", "capture", "--out", filepath.Join(t.TempDir(), "x.yaml"), "--kubeconfig",
		testenv.Kubeconfig(t, env.User(t, "narrow", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes"},
			Verbs: []string{"list"}})))
	some := testenv.Kubeconfig(t, env.User(t, "some", rbacv1.PolicyRule{APIGroups: []string{""},
		Resources: []string{"nodes", "pods"}, Verbs: []string{"list"}}))
	less := filepath.Join(t.TempDir(), "less.yaml")
	code, stdout, stderr = call(t, "capture", "--out", less, "--kubeconfig", some)
	if code != cli.ExitOK ||
		!strings.Contains(stderr, "the right to list poddisruptionbudgets.policy is missing: there are no disruption budgets") {
		t.Errorf("with rights on nodes and pods alone: exit code %d\n%s%s", code, stdout, stderr)
	}
	if stated := "the right to list nodepools.karpenter.sh is missing: a NodePool allows the capacity types that its nodes have"; !strings.Contains(stderr, stated) {
		t.Errorf("no warning says that NodePools may not be read:\n%s", stderr)
	}
	if _, err := os.Stat(less); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	captureOwnNodePools(t, env, kubeconfig)
}

// captureOwnNodePools adds a NodePool that no CapacityPool holds, with a node, and captures
// it as it is: what is written is valid, and as-is runs it.
func captureOwnNodePools(t *testing.T, env *testenv.Env, kubeconfig string) {
	t.Helper()
	node := testenv.Node("t1", "4", "15Gi")
	maps.Copy(node.Labels, map[string]string{
		corev1.LabelInstanceTypeStable: "m6i.xlarge", corev1.LabelTopologyZone: "us-east-1a", corev1.LabelTopologyRegion: "us-east-1",
		karpv1.NodePoolLabelKey: "team", karpv1.CapacityTypeLabelKey: "spot", karpv1.NodeInitializedLabelKey: "true",
	})
	node.Spec.ProviderID = "aws:///us-east-1a/i-t1"
	env.AddNode(t, node)
	class := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": map[string]any{"name": "standard"},
		"spec": map[string]any{"role": "nodes", "amiFamily": "AL2023", "kubelet": map[string]any{"maxPods": int64(30)}},
	}}
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "team", Annotations: map[string]string{"note": "x"}}}
	weight, values := int32(9), 2
	pool.Spec.Weight = &weight
	pool.Spec.Disruption = karpv1.Disruption{ConsolidateAfter: karpv1.MustParseNillableDuration("5m"),
		Budgets: []karpv1.Budget{{Nodes: "1"}, {Nodes: "50%"}}}
	pool.Spec.Template.Spec.Requirements = []karpv1.NodeSelectorRequirementWithMinValues{
		{Key: "karpenter.k8s.aws/instance-family", Operator: corev1.NodeSelectorOpIn, Values: []string{"m5", "m6i"}, MinValues: &values},
	}
	pool.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "standard"}
	for _, o := range []client.Object{class, pool} {
		if err := env.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(t.TempDir(), "own.yaml")
	code, stdout, stderr := call(t, "capture", "--out", out, "--kubeconfig", kubeconfig, "--duration", "24h")
	text, err := os.ReadFile(out)
	if code != cli.ExitOK || err != nil || !strings.Contains(stdout, "5 nodes in 3 pools") {
		t.Fatalf("exit code %d, %v\n%s%s", code, err, stdout, stderr)
	}
	for _, want := range []string{"kind: NodePool\nmetadata:\n  name: team\nspec:\n",
		"kind: EC2NodeClass\nmetadata:\n  name: standard\nspec:\n", "minValues: 2", "weight: 9", "maxPods: 30", "pool: team\n"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%q is not written:\n%s", want, text)
		}
	}
	for _, added := range []string{"managedFields", "resourceVersion", "creationTimestamp"} {
		if strings.Contains(string(text), added) {
			t.Errorf("%s is written:\n%s", added, text)
		}
	}
	if code, stdout, stderr := call(t, "scenario", "validate", out); code != cli.ExitOK || !strings.Contains(stdout, "good") {
		t.Errorf("validate: exit code %d\n%s%s", code, stdout, stderr)
	}
	if code, stdout, stderr := call(t, "sim", out, "--policy", "as-is", "--check"); code != cli.ExitOK {
		t.Errorf("sim: exit code %d\n%s%s", code, stdout, stderr)
	}
}

// nodeClassCRD is the definition of EC2NodeClasses, with no more than the API server needs to
// store them.
func nodeClassCRD() *apiextensionsv1.CustomResourceDefinition {
	open := true
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "ec2nodeclasses.karpenter.k8s.aws"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "karpenter.k8s.aws", Scope: apiextensionsv1.ClusterScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "ec2nodeclasses", Singular: "ec2nodeclass",
				Kind: "EC2NodeClass", ListKind: "EC2NodeClassList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{
					OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &open},
				}}},
		},
	}
}
