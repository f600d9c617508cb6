package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpenterapis "sigs.k8s.io/karpenter/pkg/apis"

	"github.com/spotter-dev/spotter/live/aws/fake"
	"github.com/spotter-dev/spotter/live/crd"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/test/testenv"
)

// recentPrices has what asks AWS ask a server that plays it, with the prices of the
// last 90 days. They end where the clock of the machine is, since AWS's do.
func recentPrices(t *testing.T) {
	t.Helper()
	now := time.Now().UTC().Truncate(time.Hour)
	server := httptest.NewServer(fake.New(fake.Draw(fake.Shape{
		Seed: 1, Regions: []string{"us-east-1"}, Zones: 2, Types: []string{"m5.large", "m5.xlarge", "c6i.xlarge", "r5.large"},
		From: now.Add(-91 * 24 * time.Hour), Until: now.Add(time.Hour), PerDay: 3, Repeats: 0.3,
	}), fake.Faults{}))
	t.Cleanup(server.Close)
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_PROFILE": "", "AWS_ENDPOINT_URL": server.URL,
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull, "AWS_EC2_METADATA_DISABLED": "true",
	} {
		t.Setenv(name, value)
	}
}

// TestCommandsOfPagesOnCluster runs the commands of the pages that need a cluster: one
// whose nodes carry the labels that Karpenter gives them, with pods on them.
func TestCommandsOfPagesOnCluster(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a cluster, builds the program and runs it")
	}
	env := testenv.New(t, testenv.Options{ControllerManager: true, Scheduler: true, Kwok: true, CRDs: karpenterapis.CRDs})
	recentPrices(t)
	ordinary(t, env)
	for _, d := range crd.Objects() { // which the quickstart installs
		if err := env.Client.Delete(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	program, ran := built(t), 0
	// The last but one leaves a pool behind that names a bundle, and the last nothing.
	for _, name := range []string{"docs/quickstart.md", "README.md", "docs/capture.md", "docs/rackspace.md",
		"docs/migration.md", "docs/run.md", "docs/install.md"} {
		for i := range pagesRun {
			if p := &pagesRun[i]; p.name == name {
				t.Run(filepath.Base(name), func(t *testing.T) { ran += onCluster(t, env, p, program) })
			}
		}
	}
	if !t.Failed() && ran < 25 {
		t.Errorf("%d commands were run", ran)
	}
}

// ordinary fills a cluster with two nodes of a NodePool and a Deployment.
func ordinary(t *testing.T, env *testenv.Env) {
	t.Helper()
	for i, zone := range []string{"us-east-1a", "us-east-1b"} {
		n := testenv.Node(fmt.Sprintf("general-%d", i), "4", "8Gi")
		n.Labels = map[string]string{
			"karpenter.sh/nodepool": "general", "karpenter.sh/capacity-type": "on-demand", corev1.LabelInstanceTypeStable: "c6i.xlarge",
			corev1.LabelTopologyRegion: "us-east-1", corev1.LabelTopologyZone: zone, corev1.LabelArchStable: "amd64", corev1.LabelOSStable: "linux",
		}
		n.Spec.ProviderID = "aws:///" + zone + "/i-0123456789abcde0" + fmt.Sprint(i)
		env.AddNode(t, n)
	}
	replicas, labels := int32(3), map[string]string{"app": "web"}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: appsv1.DeploymentSpec{
		Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "c", Image: "i", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("500m"), corev1.ResourceMemory: resource.MustParse("512Mi"),
			}},
		}}}},
	}}
	if err := env.Client.Create(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, "the Deployment is ready", func() error {
		if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(d), d); err != nil {
			return err
		}
		if d.Status.ReadyReplicas != replicas {
			return fmt.Errorf("%d of %d replicas are", d.Status.ReadyReplicas, replicas)
		}
		return nil
	})
}

// onCluster runs the commands of one page. All pages but the quickstart run on a cluster where
// the steps of the quickstart were done.
func onCluster(t *testing.T, env *testenv.Env, p *page, program string) int {
	t.Helper()
	x := newClone(t, program)
	home := filepath.Join(x.dir, ".kube")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	config, err := os.ReadFile(env.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "config"), config, 0o600); err != nil {
		t.Fatal(err)
	}
	kubectl := filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl")
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		if kubectl, err = filepath.Abs(filepath.Join("..", "..", "bin", "testenv", "kubectl")); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(kubectl, filepath.Join(x.dir, "bin", "kubectl")); err != nil {
		t.Fatal(err)
	}
	x.environment = append(x.environment, "KUBECONFIG=")
	address := testenv.FreeAddress(t)
	x.environment = append(x.environment, "METRICS="+address)
	if p.name != "docs/quickstart.md" { // which has a configuration of its own
		x.flags = " --config " + configured(t, "policies: manifest", "metrics: {bindAddress: '"+address+"', secure: false}")
	}
	x.decided = func() {
		testenv.Eventually(t, "a decision is shown, and counted by this process", func() error {
			var pool v1alpha1.CapacityPool
			if err := env.Client.Get(t.Context(), client.ObjectKey{Name: "general"}, &pool); err != nil {
				return err
			}
			if pool.Status.LastDecisionID == "" {
				return fmt.Errorf("the status is %+v", pool.Status)
			}
			return metricsAreKnown(t, "http://"+address+"/metrics")
		})
	}
	if p.name != "docs/quickstart.md" {
		for _, command := range commandsOf(t, "docs/quickstart.md")[2:6] {
			if strings.HasPrefix(command, "kubectl create namespace") {
				command += " --dry-run=client -o yaml | kubectl apply -f -"
			}
			if code, out := x.shell(command); code != 0 {
				t.Fatalf("%s: exit %d\n%s", command, code, out)
			}
		}
	}
	return x.run(p, true)
}

var servedType = regexp.MustCompile(`(?m)^# TYPE (spotter_[a-z_]+) (\w+)$`)

// metricsAreKnown returns an error where metrics are not served yet, or say nothing of
// steps, and fails the test for one that the reference has not, or has as of another
// type.
func metricsAreKnown(t *testing.T, url string) error {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if !strings.Contains(string(body), `spotter_decisions_total{result="done"}`) {
		return errors.New("no step is counted")
	}
	reference := document(t, "reference-metrics.md")
	for _, m := range servedType.FindAllStringSubmatch(string(body), -1) {
		if row := fmt.Sprintf("| `%s` | %s |", m[1], m[2]); !strings.Contains(reference, row) {
			t.Errorf("docs/reference-metrics.md lacks the row %s", row)
		}
	}
	return nil
}
