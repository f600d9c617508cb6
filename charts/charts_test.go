package charts

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// TestGenerated holds the files that are made against what the program says now.
func TestGenerated(t *testing.T) {
	values, err := os.ReadFile(filepath.Join("spotter", "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	schema, err := os.ReadFile(filepath.Join("spotter", "values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	all, err := Files(values, schema)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		got, err := os.ReadFile(f.Path)
		if err != nil {
			t.Error(err)
		} else if !bytes.Equal(got, f.Data) {
			t.Errorf("%s is not what the program says: run make generate", f.Path)
		}
	}
}

// tool returns the path of a program that `make charttools` builds.
func tool(t testing.TB, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "bin", name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		if os.Getenv("SPOTTER_TESTENV") == "required" {
			t.Fatalf("%v; run make charttools", err)
		}
		t.Skipf("%v; run make charttools", err)
	}
	return path
}

// A helm runs Helm with folders of its own.
type helm struct {
	path, home, kubeconfig string
}

// The names of the programs: Helm of today, and that of the major version before.
const (
	helm4 = "helm"
	helm3 = "helm3"
)

func newHelm(t testing.TB, kubeconfig string) *helm {
	t.Helper()
	return newHelmOf(t, helm4, kubeconfig)
}

func newHelmOf(t testing.TB, version, kubeconfig string) *helm {
	t.Helper()
	return &helm{path: tool(t, version), home: t.TempDir(), kubeconfig: kubeconfig}
}

// run returns what Helm prints, and what it says where it fails.
func (h *helm) run(args ...string) (string, error) {
	cmd := exec.Command(h.path, args...)
	cmd.Env = append(os.Environ(), "HELM_CACHE_HOME="+h.home, "HELM_CONFIG_HOME="+h.home, "HELM_DATA_HOME="+h.home, "KUBECONFIG="+h.kubeconfig)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("helm %s: %w\n%s%s", strings.Join(args, " "), err, out.String(), said.String())
	}
	return out.String(), nil
}

// must is run, but fails the test on an error.
func (h *helm) must(t testing.TB, args ...string) string {
	t.Helper()
	out, err := h.run(args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// The name and the namespace under which charts are rendered.
const (
	release   = "spotter"
	namespace = "spot-system"
)

// render returns what a chart makes with values, as text and as objects.
func (h *helm) render(t testing.TB, chart string, set ...string) (string, []*unstructured.Unstructured) {
	t.Helper()
	out := h.must(t, append([]string{"template", release, chart, "--namespace", namespace}, set...)...)
	return out, objects(t, out)
}

// objects reads manifests.
func objects(t testing.TB, text string) []*unstructured.Unstructured {
	t.Helper()
	var all []*unstructured.Unstructured
	for d := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096); ; {
		o := &unstructured.Unstructured{}
		err := d.Decode(&o.Object)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if len(o.Object) > 0 {
			all = append(all, o)
		}
	}
}

// find returns the object of a kind, by the end of its name.
func find(t testing.TB, all []*unstructured.Unstructured, kind, suffix string) *unstructured.Unstructured {
	t.Helper()
	for _, o := range all {
		if o.GetKind() == kind && strings.HasSuffix(o.GetName(), suffix) {
			return o
		}
	}
	t.Fatalf("there is no %s …%s among %d objects", kind, suffix, len(all))
	return nil
}

// A profile is a set of values that a user may install the chart with.
type profile struct {
	name string
	set  []string
}

// What each backend needs, so that it may be chosen at all.
var backendValues = map[string][]string{
	"karpenter": {"--set", "backends={karpenter}"},
	"asg":       {"--set", "backends={asg}", "--set", "aws.regions={us-east-1}"},
	"rackspace": {"--set", "backends={rackspace}", "--set",
		"rackspace.credentialsSecrets[0].name=rackspace-spot,rackspace.credentialsSecrets[0].namespace=vault"},
	"prometheus": {"--set", "usage.prometheus.url=http://prometheus.monitoring:9090"},
	"all": {"--set", "backends={karpenter,asg,rackspace}", "--set", "aws.regions={us-east-1,eu-west-1}",
		"--set", "rackspace.credentialsSecrets[0].name=rackspace-spot", "--set", "aws.queueURL=https://sqs.us-east-1.amazonaws.com/123456789012/spotter"},
}

// switches are turned one at a time on what stands by default.
var switches = []profile{
	{"defaults", nil},
	{"no-crds", []string{"--set", "crds.install=false"}},
	{"no-gate", []string{"--set", "budgetGate.install=false"}},
	{"irsa", []string{"--set", "aws.regions={us-east-1}", "--set", "aws.credentials.method=irsa", "--set",
		"aws.credentials.roleARN=arn:aws:iam::123456789012:role/spotter"}},
	{"pod-identity", []string{"--set", "aws.regions={us-east-1}", "--set", "aws.credentials.method=podIdentity"}},
	{"secret", []string{"--set", "aws.regions={us-east-1}", "--set", "aws.credentials.method=secret", "--set",
		"aws.credentials.secretName=aws"}},
	{"trace", []string{"--set", "prices.traceClaim=prices", "--set", "prices.tracePath=us", "--set", "prices.interval=2m"}},
	{"recorder", []string{"--set", "prices.recorder.enabled=true", "--set", "aws.regions={us-east-1,eu-west-1}", "--set",
		"aws.families={m5}", "--set", "aws.credentials.method=secret", "--set", "aws.credentials.secretName=aws"}},
	{"recorder-claim", []string{"--set", "prices.recorder.enabled=true", "--set", "prices.recorder.regions={us-east-1}",
		"--set", "prices.recorder.types={p5.48xlarge,m5.large}", "--set", "prices.recorder.extraArgs={--score-quota=20}",
		"--set", "prices.traceClaim=prices", "--set", "prices.tracePath=us", "--set", "aws.credentials.method=irsa", "--set", "aws.credentials.roleARN=arn:aws:iam::123456789012:role/spotter", "--set", "prices.recorder.roleARN=arn:aws:iam::123456789012:role/recorder"}},
	{"models-claim", []string{"--set", "models.claim=bundles", "--set",
		"policies=model:bundle=/var/lib/spotter/models/a", "--set", "models.onnxRuntime=/var/lib/spotter/models/libonnxruntime.so.1"}},
	{"models-image", []string{"--set", "models.image.name=registry.example.com/bundles:1", "--set",
		"models.image.path=/b/", "--set", "models.timeout=2s"}},
	{"prometheus", []string{"--set", "usage.prometheus.url=https://thanos.monitoring:9091/x", "--set",
		"usage.prometheus.cpuQuery=sum by (node) (cores)", "--set", "usage.prometheus.memoryQuery=bytes",
		"--set", "usage.prometheus.tokenSecret.name=prom", "--set", "usage.prometheus.caConfigMap.name=ca", "--set", "networkPolicy.egress.enabled=true"}},
	{"prometheus-account", []string{"--set", "usage.prometheus.url=http://prometheus", "--set",
		"usage.prometheus.serviceAccountToken=true", "--set", "networkPolicy.egress.enabled=true"}},
	{"notifications", []string{"--set", "notifications.url=https://hooks.example.com:8443/spotter", "--set",
		"notifications.source=/clusters/a", "--set", "notifications.header=X-Token",
		"--set", "notifications.headerSecret.name=hook", "--set", "networkPolicy.egress.enabled=true"}},
	{"gcp", []string{"--set", "gcp.regions={us-central1,europe-west12}", "--set", "gcp.apiKeySecret.name=prices", "--set",
		"gcp.apiKeySecret.key=key", "--set", "provider=gcp", "--set", "karpenter.nodeClassGroups={karpenter.k8s.gcp}"}},
	{"no-record", []string{"--set", "record.enabled=false"}},
	{"volume", []string{"--set", "record.persistence.enabled=true"}},
	{"volume-one", []string{"--set", "record.persistence.enabled=true", "--set", "replicas=1", "--set",
		"record.persistence.accessModes={ReadWriteOnce}", "--set", "record.persistence.storageClass=fast"}},
	{"claim", []string{"--set", "record.persistence.enabled=true", "--set", "record.persistence.existingClaim=mine"}},
	{"bucket", []string{"--set", "record.bucket.url=s3://records/a", "--set", "record.bucket.region=us-east-1", "--set",
		"record.bucket.encryption=aws:kms", "--set", "record.bucket.kmsKey=alias/k"}},
	{"plain-metrics", []string{"--set", "metrics.secure=false", "--set", "metrics.compat={spotvortex,rescheduler}"}},
	{"monitoring", []string{"--set", "metrics.serviceMonitor.enabled=true", "--set",
		"metrics.prometheusRule.enabled=true", "--set", "metrics.dashboards.enabled=true", "--set", "metrics.dashboards.annotations.folder=Spot"}},
	{"certificate", []string{"--set", "metrics.serviceMonitor.enabled=true", "--set", "metrics.certificate.secretName=metrics-tls"}},
	{"no-aggregate", []string{"--set", "rbac.aggregate=false"}},
	{"budgets-admin", []string{"--set", "rbac.budgetsFor=admin"}},
	{"no-rbac", []string{"--set", "rbac.create=false", "--set", "serviceAccount.create=false", "--set", "serviceAccount.name=mine"}},
	{"no-policies", []string{"--set", "networkPolicy.enabled=false", "--set", "podDisruptionBudget.enabled=false"}},
	{"egress", []string{"--set", "networkPolicy.egress.enabled=true", "--set",
		"networkPolicy.metricsFrom[0].namespaceSelector.matchLabels.a=b", "--set", "networkPolicy.egress.extra[0].ports[0].port=4318"}},
	{"cleanup", []string{"--set", "cleanup.enabled=true"}},
	{"cleanup-aws", []string{"--set", "cleanup.enabled=true,cleanup.aws.enabled=true,mode=active", "--set",
		"backends={karpenter,asg}", "--set", "aws.regions={us-east-1,eu-west-1}", "--set", "aws.credentials.method=irsa",
		"--set", "aws.credentials.roleARN=arn:aws:iam::123456789012:role/spotter", "--set", "cleanup.aws.roleARN=arn:aws:iam::123456789012:role/cleanup"}},
	{"cleanup-aws-secret", []string{"--set", "cleanup.enabled=true", "--set", "backends={asg}", "--set",
		"aws.regions={us-east-1}", "--set", "aws.credentials.method=secret", "--set", "aws.credentials.secretName=aws"}},
	{"cleanup-no-aws", []string{"--set", "cleanup.enabled=true", "--set", "backends={asg}", "--set",
		"aws.regions={us-east-1}", "--set", "aws.credentials.method=irsa", "--set", "aws.credentials.roleARN=arn:aws:iam::123456789012:role/spotter"}},
	{"evaluations", []string{"--set", "evaluations.create=true", "--set",
		"evaluations.subjects[0].kind=Group,evaluations.subjects[0].name=team,evaluations.subjects[0].apiGroup=rbac.authorization.k8s.io"}},
	{"no-cleanup", []string{"--set", "cleanup.enabled=false"}},
	{"openshift", []string{"--set", "podSecurity.runAsUser=null", "--set", "podSecurity.runAsGroup=null", "--set",
		"podSecurity.fsGroup=null"}},
	{"image", []string{"--set", "image.digest=sha256:" + strings.Repeat("a", 64), "--set", "image.pullSecrets={one}"}},
	{"names", []string{"--set", "fullnameOverride=engine", "--set", "serviceAccount.name=robot", "--set",
		"podLabels.team=a", "--set", "podAnnotations.x=y", "--set", "serviceAccount.annotations.x=y"}},
	{"pods", []string{"--set", "tolerations[0].key=a,tolerations[0].operator=Exists", "--set",
		"topologySpreadConstraints[0].maxSkew=1,topologySpreadConstraints[0].topologyKey=zone,topologySpreadConstraints[0].whenUnsatisfiable=DoNotSchedule", "--set", "priorityClassName=", "--set", "extraEnv[0].name=OTEL_EXPORTER_OTLP_ENDPOINT,extraEnv[0].value=http://c:4318", "--set", "spotLabels={a=b,c}",
		"--set", "extraVolumes[0].name=runtime,extraVolumes[0].configMap.name=runtime,extraVolumeMounts[0].name=runtime,extraVolumeMounts[0].mountPath=/etc/runtime", "--set", "extraArgs={--log-level=debug}", "--set", "writes.qps=20,leaderElection.leaseDuration=20s"}},
}

// profiles returns all that are rendered: modes by backends by replicas, and each switch.
func profiles() []profile {
	var all []profile
	for _, mode := range []string{"shadow", "active"} {
		for _, backend := range slices.Sorted(maps.Keys(backendValues)) {
			for _, replicas := range []string{"1", "2"} {
				set := append([]string{"--set", "mode=" + mode, "--set", "replicas=" + replicas}, backendValues[backend]...)
				all = append(all, profile{mode + "-" + backend + "-" + replicas, set})
			}
		}
	}
	return append(all, switches...)
}

// TestLint has both versions of Helm look at both charts.
func TestLint(t *testing.T) {
	for _, version := range []string{helm4, helm3} {
		h := newHelmOf(t, version, "")
		for _, chart := range []string{"spotter", "spotter-crds"} {
			if out, err := h.run("lint", "--strict", chart); err != nil {
				t.Error(err)
			} else if strings.Contains(out, "[WARNING]") {
				t.Errorf("%s: %s", version, out)
			}
		}
	}
}
