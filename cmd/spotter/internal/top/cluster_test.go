package top

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/live/aws/fake"
	"github.com/spotter-dev/spotter/test/testenv"
)

// call runs the command and returns its exit code and what it printed.
func call(t *testing.T, args ...string) (int, string) {
	t.Helper()
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true") // no request leaves the machine
	t.Setenv("HOME", t.TempDir())
	var out bytes.Buffer
	p := cli.Program{Name: "spotter", Version: "test", Args: append([]string{"top"}, args...), Stdout: &out, Stderr: &out}
	code := p.Run(t.Context(), func(p *cli.Program) []*cobra.Command { return []*cobra.Command{Command(p)} })
	return code, out.String()
}

// place makes a node in the cluster with a status.
func place(t *testing.T, env *testenv.Env, i int, labels map[string]string) {
	t.Helper()
	zone := "us-east-2" + string("abc"[i%3])
	n := testenv.Node(fmt.Sprintf("ip-10-0-%d-%d.us-east-2.compute.internal", i, 7*i), "7900m", "30Gi")
	n.Spec.ProviderID = fmt.Sprintf("aws:///%s/i-%d", zone, i)
	if i%2 == 0 {
		n.Labels["topology.k8s.aws/zone-id"] = "use2-az1"
	}
	n.Labels[corev1.LabelTopologyRegion], n.Labels[corev1.LabelTopologyZone] = "us-east-2", zone
	for k, v := range labels {
		n.Labels[k] = v
	}
	if i == 1 {
		n.Spec.Taints = []corev1.Taint{{Key: "karpenter.sh/disrupted", Effect: corev1.TaintEffectNoSchedule}}
	}
	n.Status.Capacity = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("32Gi")}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	status := n.Status
	if err := env.Client.Create(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	n.Status = status
	if err := env.Client.Status().Update(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = env.Client.Delete(context.Background(), n) })
}

// pod puts a pod that requests so much on a node.
func pod(t *testing.T, env *testenv.Env, namespace, name, node, cpu string, phase corev1.PodPhase) {
	t.Helper()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1.PodSpec{
		NodeName: node, Containers: []corev1.Container{{Name: "main", Image: "none", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse("3Gi")},
		}}},
	}}
	if err := env.Client.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	p.Status.Phase = phase
	if err := env.Client.Status().Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
}

// kubeconfigOf writes the kubeconfig of a user who may list some kinds.
func kubeconfigOf(t *testing.T, env *testenv.Env, name string, resources ...string) string {
	t.Helper()
	cfg := env.User(t, name, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: resources, Verbs: []string{"list"}})
	file := filepath.Join(t.TempDir(), "kubeconfig")
	c := clientcmdapi.NewConfig()
	c.Clusters["a"] = &clientcmdapi.Cluster{Server: cfg.Host, CertificateAuthorityData: cfg.CAData}
	c.AuthInfos["a"] = &clientcmdapi.AuthInfo{ClientCertificateData: cfg.CertData, ClientKeyData: cfg.KeyData}
	c.Contexts["a"] = &clientcmdapi.Context{Cluster: "a", AuthInfo: "a"}
	c.CurrentContext = "a"
	if err := clientcmd.WriteToFile(*c, file); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestTop: the command lists the nodes of a real API server with rights to list nodes and
// pods alone, and says what it does not know.
func TestTop(t *testing.T) {
	env := testenv.Start(t, testenv.Options{})
	namespace := env.Namespace(t)
	karpenter := func(capacity string) map[string]string {
		return map[string]string{"karpenter.sh/nodepool": "general", "karpenter.sh/capacity-type": capacity,
			corev1.LabelInstanceTypeStable: "m5.2xlarge"}
	}
	for i := range 9 {
		place(t, env, i, karpenter([]string{"spot", "spot", "on-demand"}[i%3]))
	}
	place(t, env, 9, map[string]string{"eks.amazonaws.com/nodegroup": "system",
		"eks.amazonaws.com/capacityType": "ON_DEMAND", corev1.LabelInstanceTypeStable: "m5.2xlarge"})
	place(t, env, 10, map[string]string{corev1.LabelInstanceTypeStable: "zz9.huge"})
	place(t, env, 11, nil)
	busy := "ip-10-0-0-0.us-east-2.compute.internal"
	pod(t, env, namespace, "a", busy, "2", corev1.PodRunning)
	pod(t, env, namespace, "b", busy, "1950m", corev1.PodPending)
	pod(t, env, namespace, "ended", busy, "4", corev1.PodSucceeded)
	reader := kubeconfigOf(t, env, "look-at-nodes", "nodes", "pods")

	code, text := call(t, "--kubeconfig", reader, "--sort", "use")
	t.Log("\n" + text)
	if code != cli.ExitOK {
		t.Fatalf("exit %d", code)
	}
	for _, want := range []string{
		"12 nodes in us-east-2, 6 on Spot (50%); Spot has 50% of 96 vCPU\n$", " a month, not counting 2 nodes without a known price\n", "\nip-10-0-0-0 ", " 50%  20%     2\n",
		"  ! disrupted by Karpenter\n", "~ Spot prices: recorded until 2024-", "no AWS credentials were found", "On-demand prices: AWS, catalog of ",
		"2 nodes without a capacity type, counted as on demand\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing", want)
		}
	}
	code, text = call(t, "--kubeconfig", reader, "-o", "json")
	var table Table
	if err := json.Unmarshal([]byte(text), &table); err != nil || code != cli.ExitOK {
		t.Fatalf("exit %d, %v\n%s", code, err, text)
	}
	if x := table.Totals; x.Nodes != 12 || x.Spot != 6 || x.Priced != 10 || x.PerHour < 4*0.384 || len(table.Nodes) != 12 {
		t.Errorf("the totals are %+v", x)
	}

	prices := httptest.NewServer(fake.New(fake.Draw(fake.Shape{
		Regions: []string{"us-east-2"}, Zones: 3, Types: []string{"m5.2xlarge"}, From: time.Now().Add(-48 * time.Hour), Until: time.Now(), PerDay: 4,
	}), fake.Faults{}))
	defer prices.Close()
	t.Setenv("AWS_ENDPOINT_URL", prices.URL)
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	code, text = call(t, "--kubeconfig", reader, "--sort", "price")
	t.Log("\n" + text)
	if code != cli.ExitOK || strings.Contains(text, "~") || !strings.Contains(text, "Spot prices: live from AWS, read 0s ago") {
		t.Errorf("with live prices: exit %d", code)
	}

	code, text = call(t, "--kubeconfig", kubeconfigOf(t, env, "look-at-nodes-only", "nodes"))
	if code != cli.ExitOK || !strings.Contains(text, "use is unknown: the right to list pods is missing") ||
		!strings.Contains(text, "–    –     –\n") {
		t.Errorf("without pods: exit %d\n%s", code, text)
	}
	code, text = call(t, "--kubeconfig", kubeconfigOf(t, env, "look-at-pods-only", "pods"))
	if code != cli.ExitInvalid || !strings.Contains(text, "the right to list nodes is missing") {
		t.Errorf("without nodes: exit %d\n%s", code, text)
	}
}

// TestPages: a list of several pages is read whole.
func TestPages(t *testing.T) {
	env := testenv.Start(t, testenv.Options{})
	for i := range 5 {
		place(t, env, 100+i, nil)
	}
	var list corev1.NodeList
	seen := map[string]bool{}
	err := pages(t.Context(), env.Client, &list, func() {
		for i := range list.Items {
			seen[list.Items[i].Name] = true
		}
	}, client.Limit(2))
	if err != nil || len(seen) < 5 {
		t.Errorf("%d nodes, %v", len(seen), err)
	}
}

// TestWrongCalls: a call that cannot work ends with 2 and one clear line.
func TestWrongCalls(t *testing.T) {
	away := filepath.Join(t.TempDir(), "away")
	if err := os.WriteFile(away, []byte(`{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}],
clusters: [{name: a, cluster: {server: "https://127.0.0.1:1"}}], users: [{name: a}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"the API server at https://127.0.0.1:1 does not answer: connection refused": {"--kubeconfig", away},
		`--sort: "prise" is unknown`:   {"--kubeconfig", away, "--sort", "prise"},
		"--watch: it needs a terminal": {"--kubeconfig", away, "--watch"},
		"no cluster":                   {"--kubeconfig", "/no/such/file"},
	} {
		code, text := call(t, args...)
		if code != cli.ExitInvalid || !strings.Contains(text, want) {
			t.Errorf("%v: exit %d, want %q in\n%s", args, code, want, text)
		}
	}
}
