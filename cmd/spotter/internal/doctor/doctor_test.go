package doctor

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	karpapis "sigs.k8s.io/karpenter/pkg/apis"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/access"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/live/aws/fake"
	"github.com/spotter-dev/spotter/live/crd"
	"github.com/spotter-dev/spotter/live/rights"
	"github.com/spotter-dev/spotter/live/rights/rightstest"
	"github.com/spotter-dev/spotter/test/testenv"
)

// call runs the command, without AWS, and returns its exit code and what it printed.
func call(t *testing.T, args ...string) (int, string) {
	t.Helper()
	var out bytes.Buffer
	p := cli.Program{Name: "spotter", Version: "test", Args: append([]string{"doctor"}, args...), Stdout: &out, Stderr: &out}
	code := p.Run(t.Context(), func(p *cli.Program) []*cobra.Command { return []*cobra.Command{Command(p)} })
	return code, out.String()
}

// withoutAWS keeps requests on this machine.
func withoutAWS(t *testing.T) {
	t.Helper()
	for name, value := range map[string]string{
		"AWS_EC2_METADATA_DISABLED": "true", "HOME": t.TempDir(), "AWS_PROFILE": "", "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "",
	} {
		t.Setenv(name, value)
	}
}

// kubeconfigOf writes the kubeconfig of a user.
func kubeconfigOf(t *testing.T, cfg *rest.Config) string {
	t.Helper()
	c, file := clientcmdapi.NewConfig(), filepath.Join(t.TempDir(), "kubeconfig")
	c.Clusters["a"] = &clientcmdapi.Cluster{Server: cfg.Host, CertificateAuthorityData: cfg.CAData}
	c.AuthInfos["a"] = &clientcmdapi.AuthInfo{ClientCertificateData: cfg.CertData, ClientKeyData: cfg.KeyData}
	c.Contexts["a"] = &clientcmdapi.Context{Cluster: "a", AuthInfo: "a"}
	c.CurrentContext = "a"
	if err := clientcmd.WriteToFile(*c, file); err != nil {
		t.Fatal(err)
	}
	return file
}

// expect fails unless a report has all of the texts.
func expect(t *testing.T, what string, code, want int, text string, has ...string) {
	t.Helper()
	if code != want {
		t.Errorf("%s: exit %d, want %d", what, code, want)
	}
	for _, x := range has {
		if !strings.Contains(text, x) {
			t.Errorf("%s: %q is missing", what, x)
		}
	}
	t.Logf("%s\n%s", what, text)
}

// TestDoctor: an administrator of a good cluster passes every check that applies, and each
// fault of the cluster or of the user shows in its line.
func TestDoctor(t *testing.T) {
	withoutAWS(t)
	env := testenv.Start(t, testenv.Options{})
	admin := []string{"--kubeconfig", env.Kubeconfig, "--namespace", "spotter"}
	code, text := call(t, admin...)
	expect(t, "without Karpenter", code, cli.ExitOK, text, "✓ kubeconfig", "✓ API server       Kubernetes v1.",
		"✓ clock            agrees", "– Karpenter        not installed",
		"✓ rights, shadow   all ", "✓ rights, active   all ", "✓ definitions      CapacityPool, GPUBudget, SpotNode and SpotPlan of this version", "– AWS credentials  no region")

	installKarpenter(t, env)
	code, text = call(t, admin...)
	expect(t, "with Karpenter", code, cli.ExitOK, text, "✓ Karpenter        1.14.1\n")

	shadowRules := append(rightstest.Rules(rights.Setup{Parts: []rights.Part{rights.LeaderElection, rights.Karpenter}}, rights.Cluster),
		rightstest.Rules(rights.Setup{Parts: []rights.Part{rights.LeaderElection, rights.Karpenter}}, rights.OwnNamespace)...)
	user := []string{"--kubeconfig", kubeconfigOf(t, env.User(t, "see-shadow", shadowRules...)), "--namespace", "spotter"}
	code, text = call(t, user...)
	expect(t, "the rights of shadow mode", code, cli.ExitOK, text, "✓ rights, shadow   all ", "– rights, active   ",
		"which shadow mode does not need", "– definitions      not checked")
	code, text = call(t, append(user, "--mode", "active")...)
	expect(t, "the rights of shadow mode for active mode", code, cli.ExitFailed, text, "✗ rights, active   ",
		"missing: ", "→ grant what docs/rights.md lists for active mode", "spotter: a check failed")
	some := []string{"--kubeconfig", kubeconfigOf(t, env.User(t, "see-some",
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes", "pods"}, Verbs: []string{"list"}})), "--namespace", "spotter"}
	code, text = call(t, some...)
	expect(t, "few rights", code, cli.ExitFailed, text, "✗ rights, shadow   ", "watch nodes, watch pods")

	definition := crd.Objects()[0]
	if err := env.Client.Get(t.Context(), keyOf(definition), definition); err != nil {
		t.Fatal(err)
	}
	delete(definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties, "mode")
	if err := env.Client.Update(t.Context(), definition); err != nil {
		t.Fatal(err)
	}
	code, text = call(t, admin...)
	expect(t, "another definition", code, cli.ExitFailed, text,
		"✗ definitions      of another version of Spotter: CapacityPool", "→ spotter crds | kubectl apply --server-side -f -")
	if err := env.Client.Delete(t.Context(), definition); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, "the missing definition is reported", func() error {
		_, text = call(t, append(admin, "-o", "json")...)
		if !strings.Contains(text, "not installed: CapacityPool") {
			return os.ErrNotExist
		}
		return nil
	})
	var r report
	if err := json.NewDecoder(strings.NewReader(text)).Decode(&r); err != nil || len(r.Checks) < 9 {
		t.Errorf("%d checks, %v", len(r.Checks), err)
	}
}

func keyOf(d *apiextensionsv1.CustomResourceDefinition) (key struct{ Namespace, Name string }) {
	key.Name = d.Name
	return key
}

// installKarpenter installs the definitions of Karpenter, and its Deployment without pods.
func installKarpenter(t *testing.T, env *testenv.Env) {
	t.Helper()
	for _, d := range karpapis.CRDs {
		if err := env.Client.Create(t.Context(), d.DeepCopy()); err != nil {
			t.Fatal(err)
		}
	}
	labels := map[string]string{"app.kubernetes.io/name": "karpenter"}
	err := env.Client.Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "karpenter", Labels: labels},
		Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "controller",
				Image: "example.com:5000/karpenter/controller:1.14.1@sha256:" + strings.Repeat("0", 64)}}},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, "Karpenter's API is served", func() error {
		served, err := karpenterAPIs(env.Config)
		if err == nil && !served["v1"] {
			return os.ErrNotExist
		}
		return err
	})
}

// TestUnreachable: a server that does not answer fails its check, leaves the others of the
// cluster unmade, and ends with 2.
func TestUnreachable(t *testing.T) {
	withoutAWS(t)
	file := kubeconfigOf(t, &rest.Config{Host: "https://127.0.0.1:1"})
	code, text := call(t, "--kubeconfig", file)
	expect(t, "no server", code, cli.ExitInvalid, text, "✓ kubeconfig",
		"✗ API server       the API server at https://127.0.0.1:1 does not answer: ", "– clock            not checked", "– definitions      not checked")
	code, text = call(t, "--kubeconfig", "/no/such/file")
	expect(t, "no kubeconfig", code, cli.ExitInvalid, text, "✗ kubeconfig", "– rights, shadow   not checked")
	code, text = call(t, "--kubeconfig", file, "--mode", "shadwo")
	expect(t, "an unknown mode", code, cli.ExitInvalid, text, "did you mean shadow?")
}

// TestAWS: credentials, permissions and prices are reported separately.
func TestAWS(t *testing.T) {
	shape := fake.Shape{Regions: []string{"us-east-1"}, Zones: 2, Types: []string{probeType},
		From: time.Now().Add(-96 * time.Hour), Until: time.Now().Add(-3 * time.Hour), PerDay: 24}
	for name, c := range map[string]struct {
		faults fake.Faults
		keys   bool
		code   error
		has    []string
	}{
		"all is well": {fake.Faults{}, true, nil, []string{
			"✓ AWS credentials  AWS answers for us-east-1", "✓ AWS permissions  ec2:DescribeSpotPriceHistory and 4 optional actions allowed\n", "✓ prices           Spot prices of m5.large in 2 zones of us-east-1, the newest ",
		}},
		"no price list": {fake.Faults{Deny: map[string]string{"GetProducts": "AccessDeniedException"}}, true, nil, []string{
			"✓ AWS permissions  ec2:DescribeSpotPriceHistory and 3 optional actions allowed; without pricing:GetProducts: On-demand prices come from the catalog\n",
		}},
		"no Spot prices": {fake.Faults{Deny: map[string]string{"DescribeSpotPriceHistory": "UnauthorizedOperation"}}, true,
			cli.ErrCheck, []string{
				"✓ AWS credentials", "✗ AWS permissions  ec2:DescribeSpotPriceHistory is denied", "→ give the role what `spotter run --print-iam-policy` prints", "✗ prices           no Spot price is known",
			}},
		"no credentials": {fake.Faults{}, false, cli.ErrCheck, []string{
			"✗ AWS credentials  no AWS credentials were found", "→ set AWS_PROFILE", "– AWS permissions  not checked", "✗ prices           no Spot price is known",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			withoutAWS(t)
			server := httptest.NewServer(fake.New(fake.Draw(shape), c.faults))
			defer server.Close()
			t.Setenv("AWS_ENDPOINT_URL", server.URL)
			if c.keys {
				t.Setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
				t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
			}
			var r report
			checkAWS(t.Context(), &r, shape.Regions, true)
			var out bytes.Buffer
			if err := r.write(&out, 0); err != nil || !errors.Is(r.err(), c.code) {
				t.Errorf("%v, and the command ends with %v, want %v", err, r.err(), c.code)
			}
			expect(t, name, 0, 0, out.String(), c.has...)
		})
	}
}

// TestClock: a clock that is far off fails, in either direction.
func TestClock(t *testing.T) {
	for want, s := range map[string]access.Server{
		"✓ clock  agrees with the API server's\n": {Dated: true, Ahead: time.Second},
		"✓ clock  the API server's clock is 9s behind this machine's\n": {Dated: true,
			Ahead: -9 * time.Second},
		"✗ clock  the API server's clock is 1m0s ahead of this machine's\n         → synchronise both clocks": {Dated: true, Ahead: time.Minute},
		"✗ clock  the API server's clock is 11s behind this machine's\n": {Dated: true,
			Ahead: -11 * time.Second},
		"– clock  the API server's answers have no date\n": {},
	} {
		var r report
		var out bytes.Buffer
		checkClock(&r, &s)
		if err := r.write(&out, 0); err != nil || !strings.HasPrefix(out.String(), want) {
			t.Errorf("%+v: %q, %v, want %q", s, out.String(), err, want)
		}
	}
}

// TestNeeds: active mode adds what shadow mode does not need, and Karpenter its own kinds.
func TestNeeds(t *testing.T) {
	has := func(all []need, text string) bool {
		for i := range all {
			if all[i].String() == text {
				return true
			}
		}
		return false
	}
	plain, full := needs(shadow, "ns", false), needs(active, "ns", true)
	for text, want := range map[string][2]bool{
		"list nodes": {true, false}, "create pods/eviction": {false, true}, "list nodepools.karpenter.sh": {false, false},
		"patch nodepools.karpenter.sh": {false, true}, "create leases.coordination.k8s.io in ns": {true, false}, "get secrets": {false, false},
	} {
		if got := [2]bool{has(plain, text), has(full, text)}; got != want {
			t.Errorf("%s: needed %v, want %v", text, got, want)
		}
	}
}
