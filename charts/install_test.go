package charts

import (
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/live"
	"github.com/spotter-dev/spotter/live/drain"
	"github.com/spotter-dev/spotter/live/gpubudget"
	"github.com/spotter-dev/spotter/live/karpenter"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/test/testenv"
)

// installed is how the release is installed here.
var installed = []string{"--namespace", namespace, "--wait", "--timeout", "4m", "--set",
	"karpenter.nodeClassGroups={karpenter.kwok.sh}", "--set", "policies=static:share=0.5", "--set", "step=5s"}

// TestLifeOfARelease installs the chart on a real API server, tests, upgrades, rolls
// back, uninstalls and installs it under another name, with the controller run as the
// chart's service account. No request is denied, and what is to stay stays.
func TestLifeOfARelease(t *testing.T) {
	s := newSite(t)
	mark := s.env.Mark()
	s.helm.must(t, append([]string{"install", release, "spotter", "--create-namespace"}, installed...)...)
	var d appsv1.Deployment
	s.get(t, release, &d)
	if d.Status.AvailableReplicas != 2 {
		t.Errorf("after --wait %d of 2 replicas are available", d.Status.AvailableReplicas)
	}
	s.makePool(t)
	c := s.controller(t)
	s.decided(t, "", v1alpha1.ModeShadow)
	s.scrape(t, c)
	s.passing(t)
	s.helmTest(t)
	kept, err := s.kept(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.awaitUse(t, mark)
	c.stop(t)
	s.report(t, "shadow", s.uses(t, mark, release))

	head, mark := s.head(t.Context()), s.env.Mark()
	s.helm.must(t, append([]string{"upgrade", release, "spotter", "--set", "mode=active"}, installed...)...)
	c = s.controller(t)
	s.decided(t, head, v1alpha1.ModeActive)
	s.scrape(t, c)
	s.passing(t)
	s.awaitUse(t, mark)
	c.stop(t)
	s.report(t, "active", s.uses(t, mark, release))
	s.same(t, "the upgrade", kept)

	s.newer(t)
	s.same(t, "the upgrade to newer definitions", kept)

	head = s.head(t.Context())
	s.helm.must(t, "rollback", release, "1", "--namespace", namespace, "--wait", "--timeout", "4m")
	c = s.controller(t)
	s.decided(t, head, v1alpha1.ModeShadow)
	s.same(t, "the rollback", kept)
	s.later(t, "")

	s.mark(t)
	mark = s.env.Mark()
	s.uninstall(t, c)
	s.uses(t, mark, release+"-cleanup")
	s.unmarked(t)
	s.left(t)
	s.same(t, "the uninstallation", kept)
	s.again(t, kept)
	s.before(t, kept)
}

// makePool makes what the controller is to decide for.
func (s *site) makePool(t *testing.T) {
	t.Helper()
	hours := 10.0
	for _, o := range []client.Object{
		&v1alpha1.CapacityPool{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: v1alpha1.CapacityPoolSpec{
			Backend: v1alpha1.Backend{Karpenter: &v1alpha1.KarpenterBackend{NodeClassName: "default"}}, Mode: v1alpha1.ModeActive,
			Template: v1alpha1.NodeTemplate{Labels: map[string]string{"pool": "web"}},
			Markets:  v1alpha1.Markets{Regions: []string{"us-east-1"}, InstanceTypes: []string{"m5.large"}},
		}},
		&v1alpha1.GPUBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "notebooks"}, Spec: v1alpha1.GPUBudgetSpec{
			Quota: v1alpha1.Quota{GPUHours: &hours, WindowHours: 24},
		}},
	} {
		if err := s.env.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

// decided waits until a step was taken after the version of the memory, in a mode.
func (s *site) decided(t *testing.T, after string, mode v1alpha1.Mode) {
	t.Helper()
	testenv.Eventually(t, "the controller decides", func() error {
		s.revive(t)
		var p v1alpha1.CapacityPool
		if err := s.env.Client.Get(t.Context(), client.ObjectKey{Name: "web"}, &p); err != nil {
			return err
		}
		if now := s.head(t.Context()); now == "" || now == after || p.Status.LastDecisionID == "" || p.Status.Mode != mode {
			return fmt.Errorf("memory %q after %q, status %+v", now, after, p.Status)
		}
		return nil
	})
}

// scrape reads the metrics with an account that has the chart's role for metrics, and with one
// that lacks it.
func (s *site) scrape(t *testing.T, c *process) {
	t.Helper()
	role := &rbacv1.ClusterRole{}
	if err := s.env.Client.Get(t.Context(), client.ObjectKey{Name: namespace + ":" + release + "-metrics-reader"}, role); err != nil {
		t.Fatal(err)
	}
	for want, rules := range map[int][]rbacv1.PolicyRule{http.StatusOK: role.Rules,
		http.StatusForbidden: {{NonResourceURLs: []string{"/other"}, Verbs: []string{"get"}}}} {
		reader := s.env.ServiceAccount(t, namespace, fmt.Sprintf("reader-%d", want), rules...)
		h := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // the certificate is of the process's own making
		var body []byte
		testenv.Eventually(t, "the metrics are answered", func() error {
			s.revive(t)
			q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+c.metrics+"/metrics", nil)
			if err != nil {
				return err
			}
			q.Header.Set("Authorization", "Bearer "+reader.BearerToken)
			a, err := h.Do(q)
			if err != nil {
				return err // it makes its certificate first
			}
			defer a.Body.Close()
			if body, err = io.ReadAll(a.Body); err == nil && a.StatusCode != want {
				err = fmt.Errorf("%d, want %d: %s", a.StatusCode, want, body)
			}
			return err
		})
		if want == http.StatusOK && !strings.Contains(string(body), "spotter_leader 1") {
			t.Error("the metrics do not say that it leads")
		}
	}
}

// helmTest runs `helm test` and, as its pod, what that would run.
func (s *site) helmTest(t *testing.T) {
	t.Helper()
	mark := s.env.Mark()
	end := s.inBackground("test", release, "--namespace", namespace, "--timeout", "4m")
	p, pod := s.job(t, release+"-test")
	if err := <-p.End; err != nil {
		t.Errorf("helm test: %v\n%s", err, p.Said())
	}
	if !strings.Contains(p.Said(), " leads\n") || !strings.Contains(p.Said(), "web") {
		t.Errorf("helm test says\n%s", p.Said())
	}
	s.ended(t, pod)
	if err := <-end; err != nil {
		t.Error(err)
	}
	s.uses(t, mark, release+"-test")
}

// rules returns what the release is granted.
func (s *site) rules(t *testing.T) []rbacv1.PolicyRule {
	t.Helper()
	var role rbacv1.ClusterRole
	if err := s.env.Client.Get(t.Context(), client.ObjectKey{Name: namespace + ":" + release}, &role); err != nil {
		t.Fatal(err)
	}
	var own rbacv1.Role
	s.get(t, release, &own)
	return append(role.Rules, own.Rules...)
}

// awaitUse waits until the controller watches every resource that it may watch: it starts some
// watches only after its first decision.
func (s *site) awaitUse(t *testing.T, since testenv.Mark) {
	t.Helper()
	rules := s.rules(t)
	testenv.Eventually(t, "all that may be watched is", func() error {
		s.revive(t)
		if left := unwatched(rules, s.uses(t, since, release)); len(left) > 0 {
			return fmt.Errorf("not watched: %v", left)
		}
		return nil
	})
}

// report holds the rights of the release against what it has used.
func (s *site) report(t *testing.T, profile string, used map[grant]bool) {
	t.Helper()
	within(t, profile, s.rules(t), used)
}

// same sees that what was remembered still is.
func (s *site) same(t *testing.T, after string, want map[string]string) {
	t.Helper()
	got, err := s.kept(t.Context())
	if err != nil {
		t.Fatalf("after %s: %v", after, err)
	}
	for name, uid := range want {
		if got[name] != uid {
			t.Errorf("after %s %s is another: %q, was %q", after, name, got[name], uid)
		}
	}
}

// mark leaves the marks that a killed controller leaves, and marks of other owners.
func (s *site) mark(t *testing.T) {
	t.Helper()
	var a, b corev1.Node
	for name, n := range map[string]*corev1.Node{"chart-a": &a, "chart-b": &b} {
		if err := s.env.Client.Get(t.Context(), client.ObjectKey{Name: name}, n); err != nil {
			t.Fatal(err)
		}
	}
	before := a.DeepCopy()
	a.Spec.Unschedulable = true
	a.Spec.Taints = append(a.Spec.Taints, corev1.Taint{Key: drain.TaintDraining, Effect: corev1.TaintEffectNoSchedule},
		corev1.Taint{Key: "mine", Effect: corev1.TaintEffectNoSchedule})
	for key, value := range map[string]string{
		drain.AnnotationCordon: "consolidation: x", drain.AnnotationDrain: `{"phase":"evicting"}`,
		karpenter.ProtectedAnnotation: "drain 2026-01-02T15:04:05Z", "karpenter.sh/do-not-disrupt": "true", "mine": "yes",
	} {
		a.Annotations[key] = value
	}
	if err := s.env.Client.Patch(t.Context(), &a, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	before = b.DeepCopy()
	b.Spec.Unschedulable = true
	b.Annotations["karpenter.sh/do-not-disrupt"] = "true"
	b.Spec.Taints = append(b.Spec.Taints, corev1.Taint{Key: drain.TaintDraining, Effect: corev1.TaintEffectNoSchedule})
	if err := s.env.Client.Patch(t.Context(), &b, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	s.claim(t)
	suspended := true
	pod := corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever,
		Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
	for name, annotations := range map[string]map[string]string{"ours": {gpubudget.PausedBy: "default/notebooks"}, "theirs": nil} {
		j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Annotations: annotations},
			Spec: batchv1.JobSpec{Suspend: &suspended, Template: pod}}
		if err := s.env.Client.Create(t.Context(), j); err != nil {
			t.Fatal(err)
		}
	}
	for name, owner := range map[string]string{"ranked": "-10", "changed": "-20"} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name,
			Annotations: map[string]string{drain.AnnotationCost: "-10", drain.AnnotationCostOwner: owner}}, Spec: pod.Spec}
		if err := s.env.Client.Create(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
}

// claim makes a NodeClaim that a controller kept from being disrupted.
func (s *site) claim(t *testing.T) {
	t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"nodeClassRef": map[string]any{"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
		"requirements": []any{map[string]any{"key": "karpenter.sh/capacity-type", "operator": "In", "values": []any{"spot"}}},
	}}}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: "karpenter.sh", Version: "v1", Kind: "NodeClaim"})
	o.SetName("kept")
	o.SetAnnotations(map[string]string{"karpenter.sh/do-not-disrupt": "true", karpenter.ProtectedAnnotation: "n", "mine": "yes"})
	if err := s.env.Client.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

// uninstall uninstalls the release while the controller runs. That ends when its
// Deployment is scaled to none, as its kubelet would have it.
func (s *site) uninstall(t *testing.T, c *process) {
	t.Helper()
	end := s.inBackground("uninstall", release, "--namespace", namespace, "--wait", "--timeout", "6m")
	p, pod := s.job(t, release+"-cleanup")
	testenv.Eventually(t, "the Deployment is scaled to none", func() error {
		var d appsv1.Deployment
		if err := s.env.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: release}, &d); err != nil {
			return err
		}
		if *d.Spec.Replicas != 0 {
			return fmt.Errorf("%d replicas are wanted", *d.Spec.Replicas)
		}
		return nil
	})
	c.stop(t)
	if err := <-p.End; err != nil {
		t.Fatalf("cleaning up: %v\n%s", err, p.Said())
	}
	t.Logf("cleaning up said:\n%s", p.Said())
	s.ended(t, pod)
	if err := <-end; err != nil {
		t.Fatal(err)
	}
}

// unmarked sees that our marks are gone and those of others are not.
func (s *site) unmarked(t *testing.T) {
	t.Helper()
	var a, b corev1.Node
	for name, n := range map[string]*corev1.Node{"chart-a": &a, "chart-b": &b} {
		if err := s.env.Client.Get(t.Context(), client.ObjectKey{Name: name}, n); err != nil {
			t.Fatal(err)
		}
		for key := range n.Annotations {
			if strings.HasPrefix(key, "spotter.dev/") {
				t.Errorf("node %s has the annotation %s", name, key)
			}
		}
		if slices.ContainsFunc(n.Spec.Taints, func(x corev1.Taint) bool { return x.Key == drain.TaintDraining }) {
			t.Errorf("node %s has our taint", name)
		}
	}
	if a.Spec.Unschedulable || a.Annotations["karpenter.sh/do-not-disrupt"] != "" || a.Annotations["mine"] != "yes" ||
		!slices.ContainsFunc(a.Spec.Taints, func(x corev1.Taint) bool { return x.Key == "mine" }) {
		t.Errorf("node chart-a: cordoned %t, %v, %v", a.Spec.Unschedulable, a.Annotations, a.Spec.Taints)
	}
	if !b.Spec.Unschedulable || b.Annotations["karpenter.sh/do-not-disrupt"] != "true" {
		t.Errorf("what somebody else did to node chart-b was taken away: cordoned %t, %v", b.Spec.Unschedulable, b.Annotations)
	}
	claim := &unstructured.Unstructured{}
	claim.SetGroupVersionKind(schema.GroupVersionKind{Group: "karpenter.sh", Version: "v1", Kind: "NodeClaim"})
	if err := s.env.Client.Get(t.Context(), client.ObjectKey{Name: "kept"}, claim); err != nil ||
		!maps.Equal(claim.GetAnnotations(), map[string]string{"mine": "yes"}) {
		t.Errorf("the NodeClaim has the annotations %v: %v", claim.GetAnnotations(), err)
	}
	for name, want := range map[string]bool{"ours": false, "theirs": true} {
		var j batchv1.Job
		if err := s.env.Client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, &j); err != nil {
			t.Fatal(err)
		}
		if *j.Spec.Suspend != want || j.Annotations[gpubudget.PausedBy] != "" {
			t.Errorf("job %s: suspended %t, %v", name, *j.Spec.Suspend, j.Annotations)
		}
	}
	for name, want := range map[string]string{"ranked": "", "changed": "-10"} {
		var p corev1.Pod
		if err := s.env.Client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, &p); err != nil {
			t.Fatal(err)
		}
		if p.Annotations[drain.AnnotationCost] != want || p.Annotations[drain.AnnotationCostOwner] != "" {
			t.Errorf("pod %s: %v", name, p.Annotations)
		}
	}
}

// freed lets pods onto the nodes again.
func (s *site) freed(t *testing.T) {
	t.Helper()
	for _, name := range []string{"chart-a", "chart-b"} {
		var n corev1.Node
		if err := s.env.Client.Get(t.Context(), client.ObjectKey{Name: name}, &n); err != nil {
			t.Fatal(err)
		}
		before := n.DeepCopy()
		n.Spec.Unschedulable, n.Spec.Taints = false, nil
		if err := s.env.Client.Patch(t.Context(), &n, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
	}
}

// left sees that of the release nothing is left but the definitions, and of what is
// not the release's everything.
func (s *site) left(t *testing.T) {
	t.Helper()
	var p v1alpha1.CapacityPool
	if err := s.env.Client.Get(t.Context(), client.ObjectKey{Name: "web"}, &p); err != nil {
		t.Errorf("the pool is gone with the release: %v", err)
	}
	var nodes corev1.NodeList
	if err := s.env.Client.List(t.Context(), &nodes); err != nil || len(nodes.Items) != 2 {
		t.Errorf("%d nodes are left of 2: %v", len(nodes.Items), err)
	}
	for _, list := range []client.ObjectList{
		&rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{}, &rbacv1.RoleList{}, &rbacv1.RoleBindingList{}, &corev1.ServiceAccountList{}, &appsv1.DeploymentList{}, &batchv1.JobList{}, &corev1.ServiceList{},
	} {
		if err := s.env.Client.List(t.Context(), list, client.MatchingLabels{"app.kubernetes.io/instance": release}); err != nil {
			t.Fatal(err)
		}
		if n := meta.LenList(list); n > 0 {
			t.Errorf("%d objects are left of %T", n, list)
		}
	}
}

// again installs the chart under another name: Helm takes over definitions that another release
// owns only with --take-ownership.
func (s *site) again(t *testing.T, kept map[string]string) {
	t.Helper()
	args := append([]string{"install", "other", "spotter", "--set", "fullnameOverride=" + release}, installed...)
	if _, err := s.helm.run(args...); err == nil || !strings.Contains(err.Error(), "ownership") {
		t.Errorf("installing over definitions of another release: %v", err)
	}
	_, _ = s.helm.run("uninstall", "other", "--namespace", namespace, "--no-hooks") // a failed release may be left
	s.freed(t)
	s.helm.must(t, append(args, "--take-ownership")...)
	head := s.head(t.Context())
	c := s.controller(t)
	s.decided(t, head, v1alpha1.ModeShadow)
	c.stop(t)
	s.same(t, "installing again", kept)
	var x corev1.ConfigMap
	if err := s.env.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace,
		Name: live.DefaultConfig().KillSwitch}, &x); !apierrors.IsNotFound(err) {
		t.Errorf("somebody made the ConfigMap of the kill switch: %v", err)
	}
}
