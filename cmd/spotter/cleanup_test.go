package main

import (
	"bytes"
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/live"
	"github.com/spotter-dev/spotter/live/asg"
	"github.com/spotter-dev/spotter/live/asg/fake"
	"github.com/spotter-dev/spotter/live/drain"
	"github.com/spotter-dev/spotter/live/karpenter"
	"github.com/spotter-dev/spotter/test/testenv"
)

// TestCleanupCall refuses what cannot be meant before it reaches for a cluster.
func TestCleanupCall(t *testing.T) {
	nowhere := filepath.Join(t.TempDir(), "nowhere")
	for want, args := range map[string][]string{
		`--timeout: 0s is not positive`: {"cleanup", "--timeout", "0s"},
		`--wait: -1s is negative`:       {"status", "--wait", "-1s"},
		`unexpected argument "x"`:       {"cleanup", "x"},
		`but --aws is not given`:        {"cleanup", "--region", "us-east-1"},
		`no cluster:`:                   {"cleanup", "--kubeconfig", nowhere},
	} {
		wrongCallIs(t, want, args...)
	}
}

// cleanupRules are the permissions that cleanup requires, except for scaling a Deployment.
var cleanupRules = []rbacv1.PolicyRule{
	{APIGroups: []string{""}, Resources: []string{"nodes", "pods"}, Verbs: []string{"get", "list", "patch"}},
	{APIGroups: []string{"batch"}, Resources: []string{"jobs"}, Verbs: []string{"get", "list", "patch"}},
	{APIGroups: []string{"karpenter.sh"}, Resources: []string{"nodeclaims"}, Verbs: []string{"get", "list", "patch"}},
	{APIGroups: []string{"karpenter.sh"}, Resources: []string{"nodepools"}, Verbs: []string{"list", "patch"}},
	{APIGroups: []string{"spotter.dev"}, Resources: []string{"capacitypools"}, Verbs: []string{"list"}},
	{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: []string{live.LeaseName},
		Verbs: []string{"get", "update"}},
}

// TestCleanup: nothing is touched while a controller leads or when it is only asked
// what would be done; then our marks go and no others, and a second run finds none.
// Karpenter's kinds are not known here.
func TestCleanup(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an API server")
	}
	env := testenv.Start(t, testenv.Options{})
	namespace := env.Namespace(t)
	kubeconfig := testenv.Kubeconfig(t, env.User(t, "cleaner", cleanupRules...))
	marked := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "marked", Annotations: map[string]string{
			drain.AnnotationCordon: "why", drain.AnnotationDrain: "{}", asg.AnnotationSwap: "source", asg.AnnotationKept: "spotter", asg.ScaleDownDisabled: "true", "mine": "1",
			karpenter.TokenAnnotation: "t", karpenter.MarketsAnnotation: "m", karpenter.ReplacesAnnotation: "n",
		}},
		Spec: corev1.NodeSpec{Unschedulable: true, Taints: []corev1.Taint{{Key: drain.TaintDraining,
			Effect: corev1.TaintEffectNoSchedule}, {Key: "mine", Effect: corev1.TaintEffectNoSchedule}}},
	}
	theirs := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "theirs", Annotations: map[string]string{asg.ScaleDownDisabled: "true"}},
		Spec:       corev1.NodeSpec{Unschedulable: true},
	}
	holder, lasts, now := "another_1_1", int32(8), metav1.NowMicro()
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: live.LeaseName},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &lasts, AcquireTime: &now, RenewTime: &now},
	}
	for _, o := range []client.Object{marked, theirs, lease} {
		createForTest(t, env, o)
	}
	clean := func(want int, args ...string) string {
		t.Helper()
		var out bytes.Buffer
		if code := spotter.Run(t.Context(), append([]string{"cleanup", "--kubeconfig", kubeconfig, "--namespace",
			namespace}, args...), &out, &out); code != want {
			t.Fatalf("exit code %d, want %d:\n%s", code, want, out.String())
		}
		return out.String()
	}
	node := func(name string) string {
		t.Helper()
		var n corev1.Node
		if err := env.Client.Get(t.Context(), client.ObjectKey{Name: name}, &n); err != nil {
			t.Fatal(err)
		}
		var taints []string
		for _, x := range n.Spec.Taints {
			if !strings.HasPrefix(x.Key, "node.kubernetes.io/") { // the API server's own
				taints = append(taints, x.Key)
			}
		}
		slices.Sort(taints)
		return fmt.Sprint(n.Spec.Unschedulable, n.Annotations, taints)
	}
	before, other := node("marked"), node("theirs")
	if said := clean(cli.ExitInvalid, "--timeout", "2s"); !strings.Contains(said, "another_1_1 still leads") {
		t.Errorf("while another leads it says %s", said)
	}
	if said := clean(cli.ExitOK, "--dry-run"); !strings.Contains(said, "node marked has: a cordon, the taint spotter.dev/draining") {
		t.Errorf("asked what it would do it says %s", said)
	}
	if said := clean(cli.ExitOK, "--dry-run", "-o", "json", "-q"); !strings.Contains(said, `"marks": [`) || !strings.HasPrefix(said, "{") {
		t.Errorf("asked for JSON it says %s", said)
	}
	if got := node("marked"); got != before {
		t.Errorf("something was done: %s, before %s", got, before)
	}
	clean(cli.ExitOK, "--timeout", "2m") // the lease runs out meanwhile
	if got, want := node("marked"), "false map[mine:1] [mine]"; got != want {
		t.Errorf("the node is %s, want %s", got, want)
	}
	if got := node("theirs"); got != other {
		t.Errorf("what somebody else did is %s, was %s", got, other)
	}
	begun := time.Now()
	if said := clean(cli.ExitOK); !strings.Contains(said, "no object carries a mark") {
		t.Errorf("the second time it says %s", said)
	}
	if took := time.Since(begun); took > time.Minute {
		t.Errorf("the lease was not given up: the second run took %v", took)
	}
}

// TestCleanupAWS: with --aws the groups of the cluster's nodes are restored, and without
// AWS's answer the rest is done and the error says what was not.
func TestCleanupAWS(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an API server")
	}
	env := testenv.Start(t, testenv.Options{})
	namespace := env.Namespace(t)
	kubeconfig := testenv.Kubeconfig(t, env.User(t, "cleaner-aws", cleanupRules...))
	cloud := fake.New("us-east-1", time.Now())
	cloud.AddGroup(fake.Group{Name: "workers", Max: 7, Desired: 1, Zones: []string{"us-east-1a"},
		Types: []string{"m5.large"}, OnDemandPercent: 100,
		Tags: map[string]string{asg.TagMax: "user=20 ours=7 was=20", "team": "shop"}})
	server := httptest.NewServer(cloud)
	defer server.Close()
	t.Setenv("AWS_ENDPOINT_URL", server.URL)
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	createForTest(t, env, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "of-group", Labels: map[string]string{corev1.LabelTopologyRegion: "us-east-1"},
			Annotations: map[string]string{drain.AnnotationDrain: "{}"}},
		Spec: corev1.NodeSpec{ProviderID: "aws:///us-east-1a/" + cloud.Group("workers").Instances[0].ID},
	})
	clean := func(want int, args ...string) string {
		t.Helper()
		var out bytes.Buffer
		if code := spotter.Run(t.Context(), append([]string{"cleanup", "--kubeconfig", kubeconfig, "--namespace",
			namespace}, args...), &out, &out); code != want {
			t.Fatalf("exit code %d, want %d:\n%s", code, want, out.String())
		}
		return out.String()
	}
	if said := clean(cli.ExitOK, "--aws", "--dry-run"); !strings.Contains(said,
		"Auto Scaling group us-east-1/workers has: maximum size 7 instead of 20") {
		t.Errorf("asked what it would do it says %s", said)
	}
	if said := clean(cli.ExitOK, "--dry-run"); strings.Contains(said, "workers") || len(cloud.Group("workers").Tags) != 2 {
		t.Errorf("without --aws it says %s", said)
	}
	cloud.SetFaults(fake.Faults{Deny: map[string]string{"autoscaling:UpdateAutoScalingGroup": "AccessDenied"}})
	if said := clean(cli.ExitInvalid, "--aws"); !strings.Contains(said, "node of-group had") ||
		!strings.Contains(said, "AccessDenied") || !strings.Contains(said, "credentials that are valid and allow it") {
		t.Errorf("where AWS denies it, it says %s", said)
	}
	cloud.SetFaults(fake.Faults{})
	clean(cli.ExitOK, "--aws")
	if g := cloud.Group("workers"); g.Max != 20 || len(g.Tags) != 1 {
		t.Errorf("the group has maximum %d and tags %v", g.Max, g.Tags)
	}
}
