package charts

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/spotter-dev/spotter/cmd/spotter/config"
	"github.com/spotter-dev/spotter/live/crd"
	"github.com/spotter-dev/spotter/live/rights"
	"github.com/spotter-dev/spotter/live/rights/rightstest"
)

// as turns an object into one of a type, and refuses fields that the type lacks.
func as[T any](t testing.TB, o *unstructured.Unstructured) *T {
	t.Helper()
	x := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, x, true); err != nil {
		t.Fatalf("%s %s: %v", o.GetKind(), o.GetName(), err)
	}
	return x
}

// clusterKinds are those of the charts that have no namespace.
var clusterKinds = []string{"ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition",
	"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}

// TestRender renders every profile and looks at what holds for all of them. Helm 3
// makes the same objects.
func TestRender(t *testing.T) {
	h, before := newHelm(t, ""), newHelmOf(t, helm3, "")
	for _, p := range profiles() {
		t.Run(p.name, func(t *testing.T) {
			_, all := h.render(t, "spotter", p.set...)
			_, same := before.render(t, "spotter", p.set...)
			sameObjects(t, all, same)
			seen := map[string]bool{}
			for _, o := range all {
				id := fmt.Sprintf("%s %s/%s", o.GetKind(), o.GetNamespace(), o.GetName())
				if seen[id] {
					t.Errorf("%s is made twice", id)
				}
				seen[id] = true
				if slices.Contains(clusterKinds, o.GetKind()) != (o.GetNamespace() == "") {
					t.Errorf("%s is in the wrong namespace", id)
				}
				if o.GetLabels()["app.kubernetes.io/instance"] != release {
					t.Errorf("%s has the labels %v", id, o.GetLabels())
				}
				if strings.HasPrefix(o.GetAPIVersion(), "spotter.dev/") {
					t.Errorf("%s: the chart makes no object of ours", id)
				}
				if o.GetKind() == "CustomResourceDefinition" && o.GetAnnotations()["helm.sh/resource-policy"] != "keep" {
					t.Errorf("%s would go with the release, and all objects with it", id)
				}
			}
			checkPods(t, all)
			checkSelectors(t, all)
		})
	}
}

// sameObjects holds what two versions of Helm make against each other, in any order.
func sameObjects(t *testing.T, all, others []*unstructured.Unstructured) {
	t.Helper()
	byName := func(list []*unstructured.Unstructured) []*unstructured.Unstructured {
		list = slices.Clone(list)
		slices.SortFunc(list, func(a, b *unstructured.Unstructured) int {
			return cmp.Or(cmp.Compare(a.GetKind(), b.GetKind()), cmp.Compare(a.GetNamespace(), b.GetNamespace()),
				cmp.Compare(a.GetName(), b.GetName()))
		})
		return list
	}
	if len(all) != len(others) {
		t.Fatalf("Helm 4 makes %d objects, and Helm 3 %d", len(all), len(others))
	}
	all, others = byName(all), byName(others)
	for i := range all {
		if !equality.Semantic.DeepEqual(all[i], others[i]) {
			t.Errorf("Helm 4 makes\n%v\nand Helm 3\n%v", all[i].Object, others[i].Object)
		}
	}
}

// checkPods holds all pods to what keeps a process from doing harm.
func checkPods(t *testing.T, all []*unstructured.Unstructured) {
	t.Helper()
	n := 0
	for _, o := range all {
		var pod corev1.PodSpec
		switch o.GetKind() {
		case "Deployment":
			pod = as[appsv1.Deployment](t, o).Spec.Template.Spec
		case "CronJob":
			pod = as[batchv1.CronJob](t, o).Spec.JobTemplate.Spec.Template.Spec
		case "Job":
			spec, _, _ := unstructured.NestedMap(o.Object, "spec", "template", "spec")
			pod = *as[corev1.PodSpec](t, &unstructured.Unstructured{Object: spec})
		default:
			continue
		}
		n++
		if s := pod.SecurityContext; s == nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot || s.SeccompProfile == nil ||
			s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
			t.Errorf("%s %s runs as %+v", o.GetKind(), o.GetName(), s)
		}
		for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
			s := c.SecurityContext
			if s == nil || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem ||
				s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation ||
				s.Capabilities == nil || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) || len(s.Capabilities.Add) > 0 {
				t.Errorf("%s %s: container %s runs as %+v", o.GetKind(), o.GetName(), c.Name, s)
			}
			for _, m := range c.VolumeMounts {
				if !slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name }) {
					t.Errorf("%s mounts the volume %s, which is not there", o.GetName(), m.Name)
				}
			}
		}
	}
	if n < 2 {
		t.Errorf("%d objects have pods, want at least the controller and the test", n)
	}
}

// checkSelectors sees that what selects pods selects those of the controller, and no
// pod of a hook.
func checkSelectors(t *testing.T, all []*unstructured.Unstructured) {
	t.Helper()
	pods := map[string]labels.Set{}
	for _, o := range all {
		if o.GetKind() == "Deployment" || o.GetKind() == "Job" {
			l, _, _ := unstructured.NestedStringMap(o.Object, "spec", "template", "metadata", "labels")
			pods[o.GetKind()+" "+o.GetName()] = l
		}
	}
	for _, o := range all {
		var selector *metav1.LabelSelector
		switch o.GetKind() {
		case "Deployment":
			selector = as[appsv1.Deployment](t, o).Spec.Selector
		case "PodDisruptionBudget":
			selector = as[policyv1.PodDisruptionBudget](t, o).Spec.Selector
		case "NetworkPolicy":
			selector = &as[networkingv1.NetworkPolicy](t, o).Spec.PodSelector
		case "Service":
			selector = &metav1.LabelSelector{MatchLabels: as[corev1.Service](t, o).Spec.Selector}
		default:
			continue
		}
		s, err := metav1.LabelSelectorAsSelector(selector)
		if err != nil {
			t.Fatal(err)
		}
		for who, set := range pods {
			if s.Matches(set) != strings.HasPrefix(who, "Deployment ") {
				t.Errorf("%s %s and the pods of %s: selected %v", o.GetKind(), o.GetName(), who, s.Matches(set))
			}
		}
	}
}

// A grant is one verb on one resource.
type grant struct{ group, resource, name, verb string }

func (g grant) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s %s.%s %s", g.verb, g.resource, g.group, g.name))
}

// grants returns what rules let do, one by one.
func grants(rules []rbacv1.PolicyRule) map[grant]bool {
	all := map[grant]bool{}
	for _, r := range rules {
		names := r.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range r.APIGroups {
			for _, resource := range r.Resources {
				for _, name := range names {
					for _, verb := range r.Verbs {
						all[grant{group, resource, name, verb}] = true
					}
				}
			}
		}
	}
	return all
}

// TestRights compares the roles of each mode and backend with the permissions that the controller
// requires, one by one: none is missing, and none is granted needlessly.
func TestRights(t *testing.T) {
	h := newHelm(t, "")
	for backend, parts := range map[string][]rights.Part{
		"karpenter": {rights.Karpenter}, "asg": {rights.Groups, rights.Prices}, "rackspace": {rights.Rackspace},
		"all": {rights.Karpenter, rights.Groups, rights.Rackspace, rights.Prices,
			rights.Queue}, "prometheus": {rights.Karpenter, rights.Prometheus},
	} {
		for _, mode := range []string{"shadow", "approve", "active"} {
			for _, secure := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s-%s-%t", mode, backend, secure), func(t *testing.T) {
					setup := rights.Setup{Active: mode != "shadow", Parts: append([]rights.Part{rights.LeaderElection}, parts...)}
					if secure {
						setup.Parts = append(setup.Parts, rights.SecureMetrics)
					}
					set := append([]string{"--set", "mode=" + mode, "--set", fmt.Sprintf("metrics.secure=%t", secure)}, backendValues[backend]...)
					_, all := h.render(t, "spotter", set...)
					sameRights(t, grants(as[rbacv1.ClusterRole](t, find(t, all, "ClusterRole", ":"+release)).Rules),
						ofOneCloud(rightstest.Rules(setup, rights.Cluster)))
					sameRights(t, grants(as[rbacv1.Role](t, find(t, all, "Role", release)).Rules), grants(rightstest.Rules(setup, rights.OwnNamespace)))
					if slices.Contains(parts, rights.Rackspace) {
						want := map[grant]bool{{"", "secrets", "rackspace-spot", "get"}: true}
						sameRights(t, grants(as[rbacv1.Role](t, find(t, all, "Role", "-credentials-0")).Rules), want)
					}
				})
			}
		}
	}
}

// ofOneCloud leaves out the node classes of clouds that the chart does not grant by default.
func ofOneCloud(rules []rbacv1.PolicyRule) map[grant]bool {
	all := grants(rules)
	for g := range all {
		if strings.HasSuffix(g.resource, "nodeclasses") && g.group != "karpenter.k8s.aws" {
			delete(all, g)
		}
	}
	return all
}

func sameRights(t *testing.T, got, want map[grant]bool) {
	t.Helper()
	if len(want) == 0 {
		t.Error("nothing is wanted, so that nothing is shown")
	}
	for g := range want {
		if !got[g] {
			t.Errorf("not granted: %v", g)
		}
	}
	for g := range got {
		if !want[g] {
			t.Errorf("granted and not asked for: %v", g)
		}
	}
}

// forUsers reports whether a role is for users, and bound to no account of the chart's.
func forUsers(role string) bool {
	return strings.HasSuffix(role, "-view") || strings.HasSuffix(role, "-edit") ||
		strings.HasSuffix(role, "-pools-admin") || strings.HasSuffix(role, "-plans-approver")
}

// TestShadowWritesNothing: in shadow no role lets anything be changed but what rule 13
// names: the lease, memory, Events, status, and reviews.
func TestShadowWritesNothing(t *testing.T) {
	h := newHelm(t, "")
	_, all := h.render(t, "spotter", append([]string{"--set", "mode=shadow"}, backendValues["all"]...)...)
	may := map[string][]string{
		"ClusterRole": {"capacitypools/status", "gpubudgets/status", "spotnodes/status", "events", "tokenreviews", "subjectaccessreviews"},
		"Role":        {"configmaps", "leases"},
	}
	n := 0
	for _, o := range all {
		if o.GetAnnotations()["helm.sh/hook"] != "" || may[o.GetKind()] == nil || forUsers(o.GetName()) {
			continue
		}
		for g := range grants(as[rbacv1.ClusterRole](t, &unstructured.Unstructured{Object: map[string]any{"rules": o.Object["rules"]}}).Rules) {
			if slices.Contains([]string{"get", "list", "watch"}, g.verb) {
				continue
			}
			n++
			if !slices.Contains(may[o.GetKind()], g.resource) {
				t.Errorf("%s %s grants in shadow: %v", o.GetKind(), o.GetName(), g)
			}
		}
	}
	if n == 0 {
		t.Error("no write is granted at all, so that nothing is shown")
	}
}

// TestCRDChart: both charts make the same definitions.
func TestCRDChart(t *testing.T) {
	h := newHelm(t, "")
	_, both := h.render(t, "spotter")
	_, alone := h.render(t, "spotter-crds")
	if want := len(crd.Files()); len(alone) != want {
		t.Fatalf("the chart spotter-crds makes %d objects, want %d", len(alone), want)
	}
	for _, o := range alone {
		twin := find(t, both, "CustomResourceDefinition", o.GetName())
		if fmt.Sprint(twin.Object["spec"]) != fmt.Sprint(o.Object["spec"]) {
			t.Errorf("%s differs between the charts", o.GetName())
		}
		if o.GetAnnotations()["helm.sh/resource-policy"] != "keep" {
			t.Errorf("%s would go with the release", o.GetName())
		}
	}
	_, none := h.render(t, "spotter", "--set", "crds.install=false")
	for _, o := range none {
		if o.GetKind() == "CustomResourceDefinition" {
			t.Errorf("crds.install=false makes %s", o.GetName())
		}
	}
}

// TestModelsAreMounted: bundles are in the folder that the configuration names, mounted from a
// claim or copied from an image, and the controller cannot write them.
func TestModelsAreMounted(t *testing.T) {
	h := newHelm(t, "")
	for _, p := range profiles() {
		if !strings.HasPrefix(p.name, "models-") {
			continue
		}
		_, all := h.render(t, "spotter", p.set...)
		pod := as[appsv1.Deployment](t, find(t, all, "Deployment", release)).Spec.Template.Spec
		var claim string
		for _, v := range pod.Volumes {
			if v.Name == "models" && v.PersistentVolumeClaim != nil {
				claim = v.PersistentVolumeClaim.ClaimName
			}
		}
		mount := corev1.VolumeMount{Name: "models", MountPath: "/var/lib/spotter/models", ReadOnly: true}
		if !slices.Contains(pod.Containers[0].VolumeMounts, mount) || configuration(t, all).Models.Dir != mount.MountPath {
			t.Errorf("%s: the controller mounts %v", p.name, pod.Containers[0].VolumeMounts)
		}
		switch p.name {
		case "models-claim":
			if claim != "bundles" || len(pod.InitContainers) > 0 || !slices.Contains(pod.Containers[0].Env,
				corev1.EnvVar{Name: "SPOTTER_ONNXRUNTIME", Value: "/var/lib/spotter/models/libonnxruntime.so.1"}) {
				t.Errorf("the claim is %q; environment %v", claim, pod.Containers[0].Env)
			}
		case "models-image":
			if claim != "" || len(pod.InitContainers) != 1 || !slices.Equal(pod.InitContainers[0].Command,
				[]string{"cp", "-R", "/b/.", "/var/lib/spotter/models/"}) ||
				configuration(t, all).Models.Timeout.Duration != 2*time.Second {
				t.Errorf("what copies them is %+v", pod.InitContainers)
			}
		}
	}
}

// configuration returns what the controller reads of what a chart makes, and sees that
// it can be meant.
func configuration(t testing.TB, all []*unstructured.Unstructured) *config.SpotterConfiguration {
	t.Helper()
	c, err := config.Parse([]byte(as[corev1.ConfigMap](t, find(t, all, "ConfigMap",
		find(t, all, "Deployment", "").GetName()+"-config")).Data["config.yaml"]))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Validate().ToAggregate(); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestConfiguration: for every profile, the controller reads the mounted configuration, which has
// the values of the profile. Without values it has the program's defaults, except for paths.
func TestConfiguration(t *testing.T) {
	h := newHelm(t, "")
	for _, p := range profiles() {
		t.Run(p.name, func(t *testing.T) {
			_, all := h.render(t, "spotter", p.set...)
			c := configuration(t, all)
			d := find(t, all, "Deployment", "")
			pod := as[appsv1.Deployment](t, d).Spec.Template.Spec
			if !slices.Equal(pod.Containers[0].Args[:2], []string{"run", "--config=/etc/spotter/config/config.yaml"}) {
				t.Errorf("the arguments are %v", pod.Containers[0].Args)
			}
			mount := corev1.VolumeMount{Name: "config", MountPath: "/etc/spotter/config", ReadOnly: true}
			if !slices.Contains(pod.Containers[0].VolumeMounts, mount) || pod.Volumes[0].Name != "config" ||
				pod.Volumes[0].ConfigMap.Name != d.GetName()+"-config" {
				t.Errorf("the configuration is not mounted: %v, %v", pod.Containers[0].VolumeMounts, pod.Volumes[0])
			}
			switch p.name {
			case "defaults":
				d := config.Default()
				d.Namespace, d.PanicDir, d.Recording.Dir = namespace, "/var/lib/spotter/panics", "/var/lib/spotter/record/steps"
				if _, differs := c.Reload(d); len(differs) > 0 {
					t.Errorf("without values these are not as by default: %v", differs)
				}
			case "bucket":
				if want := (config.Bucket{URL: "s3://records/a", Region: "us-east-1", Encryption: "aws:kms",
					KMSKey: "alias/k"}); c.Recording.Bucket != want {
					t.Errorf("the bucket is %+v", c.Recording.Bucket)
				}
			case "pods":
				if c.Writes.QPS != 20 || c.LeaderElection.LeaseDuration.Duration != 20*time.Second ||
					!slices.Equal(c.SpotLabels, []string{"a=b", "c"}) || !slices.Contains(pod.Containers[0].Args, "--log-level=debug") {
					t.Errorf("%+v, arguments %v", c, pod.Containers[0].Args)
				}
			case "active-all-2":
				if c.Mode != "active" || len(c.Backends) != 3 || !slices.Equal(c.Prices.Regions,
					[]string{"us-east-1", "eu-west-1"}) || c.Prices.CacheFile == "" || !strings.HasSuffix(c.Notices.QueueURL, "/spotter") {
					t.Errorf("%+v", c)
				}
			}
		})
	}
}

// TestRestart: pods are replaced for what takes a restart, and not for what the
// controller applies while it runs.
func TestRestart(t *testing.T) {
	h := newHelm(t, "")
	pods := func(set string) string {
		_, all := h.render(t, "spotter", "--set", set)
		return fmt.Sprint(find(t, all, "Deployment", release).Object)
	}
	before := pods("replicas=2")
	for set, replaced := range map[string]bool{
		"mode=active": true, "policies=spot": true, "log.format=text": true, "leaderElection.leaseDuration=9s": true, "killSwitch=other": true,
		"step=1m": false, "log.level=debug": false, "writes.qps=5": false, "writes.burst=5": false, "discounts.oneYear=0": false, "discounts.threeYears=1": false,
	} {
		if got := pods(set) != before; got != replaced {
			t.Errorf("%s: pods are replaced: %t", set, got)
		}
	}
	for _, f := range config.Fields() { // who adds one that is applied adds it to the chart, and here
		if f.Reload && !slices.Contains([]string{"stepInterval", "writes.qps", "writes.burst", "discounts.1y",
			"discounts.3y", "logging.level"}, f.Path) {
			t.Errorf("%s is applied while the controller runs, and the chart may not know it", f.Path)
		}
	}
}

// TestPrometheusIsReached: the configuration has the address of Prometheus and the credentials
// for it, and the network policy allows its port although it denies other egress.
func TestPrometheusIsReached(t *testing.T) {
	h := newHelm(t, "")
	asked := config.Default().Usage.Prometheus
	for name, want := range map[string]struct {
		port int
		says config.Prometheus
	}{
		"prometheus": {9091, config.Prometheus{URL: "https://thanos.monitoring:9091/x", CPUQuery: "sum by (node) (cores)", MemoryQuery: "bytes",
			TokenFile: "/etc/spotter/prometheus-token/token", CAFile: "/etc/spotter/prometheus-ca/ca.crt", Timeout: asked.Timeout}},
		"prometheus-account": {80, config.Prometheus{URL: "http://prometheus", TokenFile: "/var/run/secrets/kubernetes.io/serviceaccount/token",
			CPUQuery: asked.CPUQuery, MemoryQuery: asked.MemoryQuery, Timeout: asked.Timeout}},
		"defaults": {0, asked},
	} {
		all := profiles()
		p := all[slices.IndexFunc(all, func(p profile) bool { return p.name == name })]
		_, made := h.render(t, "spotter", p.set...)
		if got := configuration(t, made).Usage.Prometheus; got != want.says {
			t.Errorf("%s: the controller is told %+v", name, got)
		}
		if want.port == 0 {
			continue
		}
		var ports []int
		for _, r := range as[networkingv1.NetworkPolicy](t, find(t, made, "NetworkPolicy", release)).Spec.Egress {
			for _, x := range r.Ports {
				ports = append(ports, x.Port.IntValue())
			}
		}
		if !slices.Equal(ports, []int{53, 53, 443, 6443, want.port}) {
			t.Errorf("%s: out to the ports %v", name, ports)
		}
	}
}

// TestGooglesKeyIsMounted: the controller learns of the regions of Google Cloud and of the file with
// the key, which is the key of the secret; the key itself is no value.
func TestGooglesKeyIsMounted(t *testing.T) {
	h := newHelm(t, "")
	all := profiles()
	_, made := h.render(t, "spotter", all[slices.IndexFunc(all, func(p profile) bool { return p.name == "gcp" })].set...)
	p := configuration(t, made).Prices
	if !slices.Equal(p.GCPRegions, []string{"us-central1", "europe-west12"}) || p.GCPKeyFile != "/etc/spotter/gcp/key" ||
		p.CacheFile == "" {
		t.Errorf("the controller learns %+v", p)
	}
	pod := as[appsv1.Deployment](t, find(t, made, "Deployment", release)).Spec.Template.Spec
	if !slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool {
		return v.Secret != nil && v.Secret.SecretName == "prices" && v.Secret.Items[0].Path == "key"
	}) ||
		!slices.ContainsFunc(pod.Containers[0].VolumeMounts,
			func(m corev1.VolumeMount) bool { return m.MountPath == "/etc/spotter/gcp" && m.ReadOnly }) {
		t.Errorf("volumes %+v, mounts %+v", pod.Volumes, pod.Containers[0].VolumeMounts)
	}
}

// TestNotificationsAreSent: the controller learns of the webhook and of the header that lets
// it in, and may reach the port.
func TestNotificationsAreSent(t *testing.T) {
	h := newHelm(t, "")
	all := profiles()
	_, made := h.render(t, "spotter", all[slices.IndexFunc(all, func(p profile) bool { return p.name == "notifications" })].set...)
	want := config.Notifications{URL: "https://hooks.example.com:8443/spotter", Source: "/clusters/a", Header: "X-Token",
		HeaderFile: "/etc/spotter/notifications/header"}
	if got := configuration(t, made).Notifications; got != want {
		t.Errorf("the controller learns %+v", got)
	}
	pod := as[appsv1.Deployment](t, find(t, made, "Deployment", release)).Spec.Template.Spec
	if !slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool {
		return v.Secret != nil && v.Secret.SecretName == "hook" && v.Secret.Items[0].Path == "header"
	}) ||
		!slices.ContainsFunc(pod.Containers[0].VolumeMounts,
			func(m corev1.VolumeMount) bool { return m.MountPath == "/etc/spotter/notifications" && m.ReadOnly }) {
		t.Errorf("volumes %+v, mounts %+v", pod.Volumes, pod.Containers[0].VolumeMounts)
	}
	policy := as[networkingv1.NetworkPolicy](t, find(t, made, "NetworkPolicy", release))
	if !slices.ContainsFunc(policy.Spec.Egress, func(r networkingv1.NetworkPolicyEgressRule) bool {
		return slices.ContainsFunc(r.Ports, func(p networkingv1.NetworkPolicyPort) bool { return p.Port.IntValue() == 8443 })
	}) {
		t.Errorf("out to %+v", policy.Spec.Egress)
	}
}

// TestPricesAreRead: the configuration has the folder of a trace and the interval at which prices
// are read, where the values set them.
func TestPricesAreRead(t *testing.T) {
	h := newHelm(t, "")
	for name, want := range map[string]config.Prices{
		"trace":    {Trace: "/var/lib/spotter/trace/us", Interval: metav1.Duration{Duration: 2 * time.Minute}},
		"defaults": {},
	} {
		all := profiles()
		_, made := h.render(t, "spotter", all[slices.IndexFunc(all, func(p profile) bool { return p.name == name })].set...)
		if got := configuration(t, made).Prices; got.Trace != want.Trace || got.Interval != want.Interval {
			t.Errorf("%s: of prices it says %+v", name, got)
		}
	}
}

// TestRecorder: what keeps recording prices is off by default, never runs twice at a time, names
// what to record, and may do nothing in the cluster.
func TestRecorder(t *testing.T) {
	h := newHelm(t, "")
	for name, want := range map[string]struct {
		args, claim string
		env         int
		role        string
	}{
		"defaults":       {},
		"recorder":       {"trace record --region=us-east-1,eu-west-1 --families=m5 --out=/var/lib/spotter/trace", release + "-recorder", 3, ""},
		"recorder-claim": {"trace record --region=us-east-1 --types=p5.48xlarge,m5.large --out=/var/lib/spotter/trace/us --score-quota=20", "prices", 0, "arn:aws:iam::123456789012:role/recorder"},
	} {
		all := profiles()
		_, made := h.render(t, "spotter", all[slices.IndexFunc(all, func(p profile) bool { return p.name == name })].set...)
		var account *corev1.ServiceAccount
		jobs, claims := 0, 0
		for _, o := range made {
			switch {
			case o.GetKind() == "CronJob":
				jobs++
				job := as[batchv1.CronJob](t, o).Spec
				pod := job.JobTemplate.Spec.Template.Spec
				c := pod.Containers[0]
				if got := strings.Join(c.Args, " "); got != want.args || len(c.Env) != want.env ||
					pod.Volumes[0].PersistentVolumeClaim.ClaimName != want.claim {
					t.Errorf("%s: it runs %s with %d variables on %s, want %+v", name, got, len(c.Env),
						pod.Volumes[0].PersistentVolumeClaim.ClaimName, want)
				}
				if job.ConcurrencyPolicy != batchv1.ForbidConcurrent || pod.ServiceAccountName != release+"-recorder" ||
					*pod.AutomountServiceAccountToken {
					t.Errorf("%s: it may run twice at a time, or speak to the API server: %+v", name, job)
				}
			case o.GetKind() == "PersistentVolumeClaim":
				claims++
			case o.GetKind() == "ServiceAccount" && o.GetName() == release+"-recorder":
				account = as[corev1.ServiceAccount](t, o)
			case strings.HasSuffix(o.GetKind(), "RoleBinding"):
				subjects, _, _ := unstructured.NestedSlice(o.Object, "subjects")
				if strings.Contains(fmt.Sprint(subjects), release+"-recorder") {
					t.Errorf("%s: %s gives it rights", name, o.GetName())
				}
			}
		}
		if on := want.args != ""; jobs > 0 != on || (account != nil) != on || (claims > 0) != (want.claim == release+"-recorder") {
			t.Errorf("%s: %d jobs, %d claims, account %v", name, jobs, claims, account)
		}
		if account != nil && account.Annotations["eks.amazonaws.com/role-arn"] != want.role {
			t.Errorf("%s: its role is %v, want %q", name, account.Annotations, want.role)
		}
	}
}

// TestCleanupOfGroups: the hook restores Auto Scaling groups where it has credentials, and may
// then list the pools that name them.
func TestCleanupOfGroups(t *testing.T) {
	h := newHelm(t, "")
	for name, want := range map[string]struct {
		region string
		env    int
		role   string
	}{
		"cleanup":            {},
		"cleanup-no-aws":     {},
		"cleanup-aws":        {"us-east-1,eu-west-1", 0, "arn:aws:iam::123456789012:role/cleanup"},
		"cleanup-aws-secret": {"us-east-1", 3, ""},
	} {
		all := profiles()
		_, made := h.render(t, "spotter", all[slices.IndexFunc(all, func(p profile) bool { return p.name == name })].set...)
		seen := 0
		for _, o := range made {
			if o.GetName() != release+"-cleanup" && o.GetKind() != "ClusterRole" || !strings.HasSuffix(o.GetName(), release+"-cleanup") {
				continue
			}
			switch o.GetKind() {
			case "Job":
				seen++
				c := as[batchv1.Job](t, o).Spec.Template.Spec.Containers[0]
				got := strings.Join(c.Args, " ")
				if on := want.region != ""; strings.Contains(got, "--aws") != on ||
					on && !strings.HasSuffix(got, "--aws --region="+want.region) || len(c.Env) != want.env {
					t.Errorf("%s: it runs %s with %d variables, want %+v", name, got, len(c.Env), want)
				}
			case "ServiceAccount":
				seen++
				if got := o.GetAnnotations()["eks.amazonaws.com/role-arn"]; got != want.role {
					t.Errorf("%s: its role is %q, want %q", name, got, want.role)
				}
			case "ClusterRole":
				seen++
				if has := strings.Contains(fmt.Sprint(o.Object["rules"]), "capacitypools"); has != (want.region != "") {
					t.Errorf("%s: that it may list pools is %t", name, has)
				}
			}
		}
		if seen != 3 {
			t.Errorf("%s: %d of the 3 objects were seen", name, seen)
		}
	}
}
