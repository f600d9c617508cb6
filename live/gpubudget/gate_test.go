package gpubudget

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/live/crd"
	"github.com/spotter-dev/spotter/live/rights/rightstest"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/test/testenv"
)

const gpu = "nvidia.com/gpu"

// gatedNamespace returns a namespace in which gates hold.
func gatedNamespace(t *testing.T, env *testenv.Env) string {
	t.Helper()
	name := env.Namespace(t)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"`+GateLabel+`":"`+GateEnabled+`"}}}`))
	if err := env.Client.Patch(t.Context(), ns, patch); err != nil {
		t.Fatal(err)
	}
	return name
}

// installGate installs the admission policy.
func installGate(t *testing.T, env *testenv.Env) {
	t.Helper()
	for _, o := range rightstest.Admission(t, crd.GateFile()) {
		if err := env.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = env.Client.Delete(context.Background(), o) })
	}
}

// newBudget makes a budget that selects the label team=ml.
func newBudget(t *testing.T, env *testenv.Env, namespace, name string, selector metav1.LabelSelector) *v1alpha1.GPUBudget {
	t.Helper()
	ten := 10.0
	b := &v1alpha1.GPUBudget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: v1alpha1.GPUBudgetSpec{
		Selector: selector, Quota: v1alpha1.Quota{GPUHours: &ten,
			WindowHours: 24}, Enforcement: v1alpha1.Enforcement{Action: v1alpha1.EnforceEvict},
	}}
	if err := env.Client.Create(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = env.Client.Delete(context.Background(), b) })
	return b
}

// setAction changes what is done when a budget is spent.
func setAction(t *testing.T, env *testenv.Env, b *v1alpha1.GPUBudget, action v1alpha1.EnforcementAction) {
	t.Helper()
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"enforcement":{"action":"`+string(action)+`"}}}`))
	if err := env.Client.Patch(t.Context(), b, patch); err != nil {
		t.Fatal(err)
	}
}

// setGate writes the status as the controller does.
func setGate(t *testing.T, env *testenv.Env, b *v1alpha1.GPUBudget, gate v1alpha1.GateState, counted, reopens time.Time) {
	t.Helper()
	b.Status.Gate = gate
	b.Status.CountedAt, b.Status.ReopensAt = nil, nil
	if !counted.IsZero() {
		b.Status.CountedAt = &metav1.Time{Time: counted}
	}
	if !reopens.IsZero() {
		b.Status.ReopensAt = &metav1.Time{Time: reopens}
	}
	if err := env.Client.Status().Update(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

// gpuPod returns a pod with labels that requests one device.
func gpuPod(namespace string, labels map[string]string) *corev1.Pod {
	one := corev1.ResourceList{gpu: resource.MustParse("1")}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "p-", Labels: labels},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "none",
			Resources: corev1.ResourceRequirements{Requests: one, Limits: one}}}},
	}
}

// try makes a pod without keeping it, and returns why it was refused.
func try(t *testing.T, env *testenv.Env, pod *corev1.Pod) error {
	return env.Client.Create(t.Context(), pod.DeepCopy(), client.DryRunAll)
}

// refused waits until a pod is refused, since the API server learns of gates by and
// by, and returns the text.
func refused(t *testing.T, env *testenv.Env, pod *corev1.Pod) string {
	t.Helper()
	text := ""
	testenv.Eventually(t, "the pod is refused", func() error {
		err := try(t, env, pod)
		if err == nil || !strings.Contains(err.Error(), "budget-gate") {
			return fmt.Errorf("the answer is %w", err)
		}
		text = err.Error()
		return nil
	})
	return text
}

func admitted(t *testing.T, env *testenv.Env, pod *corev1.Pod) {
	t.Helper()
	testenv.Eventually(t, "the pod is admitted", func() error { return try(t, env, pod) })
}

func label(key, value string) map[string]string { return map[string]string{key: value} }

// TestRule12Gate shows every pod that a closed gate keeps out and every one that it
// lets in.
func TestRule12Gate(t *testing.T) {
	env := testenv.Start(t, testenv.Options{})
	installGate(t, env)
	ns := gatedNamespace(t, env)
	ml := metav1.LabelSelector{MatchLabels: label("team", "ml")}
	b := newBudget(t, env, ns, "notebooks", ml)
	pod := gpuPod(ns, label("team", "ml"))
	if err := try(t, env, pod); err != nil {
		t.Fatalf("the gate of a new budget: %v", err)
	}
	reopens := time.Now().Add(3 * time.Hour).UTC().Truncate(time.Second)
	setGate(t, env, b, v1alpha1.GateClosed, time.Now(), reopens)
	for _, words := range []string{"GPUBudget " + ns + "/notebooks is spent", gpu, reopens.Format(time.RFC3339)} {
		if text := refused(t, env, pod); !strings.Contains(text, words) {
			t.Errorf("%q does not say %q", text, words)
		}
	}
	zero := corev1.ResourceList{gpu: resource.MustParse("0")}
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		in     bool
	}{
		"as it is":     {func(*corev1.Pod) {}, false},
		"other labels": {func(p *corev1.Pod) { p.Labels = label("team", "web") }, true},
		"no labels":    {func(p *corev1.Pod) { p.Labels = nil }, true},
		"no device":    {func(p *corev1.Pod) { p.Spec.Containers[0].Resources = corev1.ResourceRequirements{} }, true},
		"no resources": {func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests, p.Spec.Containers[0].Resources.Limits = zero, zero
		}, true},
		"by limits only": {func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = nil }, false},
		"in an init container": {func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "i", Image: "none", Resources: p.Spec.Containers[0].Resources}}
			p.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
		}, false},
		"of a DaemonSet that is invented": {func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "d", UID: "u"}}
		}, false},
		"of a Node that is invented": {func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n", UID: "u"}}
		}, false},
		"called a mirror pod": {func(p *corev1.Pod) {
			p.Annotations, p.Spec.NodeName = map[string]string{corev1.MirrorPodAnnotationKey: "x"}, "n"
		}, false},
		"of a Job": {func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "d", UID: "u"}}
		}, false},
	} {
		x := pod.DeepCopy()
		c.change(x)
		if err := try(t, env, x); (err == nil) != c.in {
			t.Errorf("%s: %v", name, err)
		}
	}
	kubelet := rest.CopyConfig(env.Config)
	kubelet.Impersonate = rest.ImpersonationConfig{UserName: "system:node:n", Groups: []string{"system:nodes", "system:masters"}}
	static := pod.DeepCopy()
	static.Annotations, static.Spec.NodeName = map[string]string{corev1.MirrorPodAnnotationKey: "x"}, "n"
	if c, err := client.New(kubelet, client.Options{}); err != nil {
		t.Fatal(err)
	} else if err := c.Create(t.Context(), static, client.DryRunAll); err != nil {
		t.Errorf("a static pod that the kubelet shows: %v", err)
	}
	elsewhere := pod.DeepCopy()
	elsewhere.Namespace = env.Namespace(t) // without the label
	other := newBudget(t, env, elsewhere.Namespace, "notebooks", ml)
	setGate(t, env, other, v1alpha1.GateClosed, time.Now(), reopens)
	refused(t, env, pod)
	if err := try(t, env, elsewhere); err != nil {
		t.Errorf("in a namespace without the label: %v", err)
	}
	setGate(t, env, b, v1alpha1.GateWouldClose, time.Now(), reopens)
	admitted(t, env, pod)
	setGate(t, env, b, v1alpha1.GateClosed, time.Now(), time.Time{})
	if text := refused(t, env, pod); !strings.Contains(text, "until less of it is used") {
		t.Error(text)
	}
	setGate(t, env, b, v1alpha1.GateOpen, time.Now(), time.Time{})
	admitted(t, env, pod)
}

// TestRule12Operators shows each operator of a selector a pod that it selects and
// pods that it does not; none of the budgets spares what another one selects.
func TestRule12Operators(t *testing.T) {
	env := testenv.Start(t, testenv.Options{})
	installGate(t, env)
	for _, c := range []struct {
		op       metav1.LabelSelectorOperator
		values   []string
		in, outs []map[string]string
	}{
		{metav1.LabelSelectorOpIn, []string{"a", "b"}, []map[string]string{label("k", "c"), label("x", "a"), nil},
			[]map[string]string{label("k", "a"), label("k", "b")}},
		{metav1.LabelSelectorOpNotIn, []string{"a", "b"}, []map[string]string{label("k", "a"), label("k", "b")},
			[]map[string]string{label("k", "c"), label("x", "a"), nil}},
		{metav1.LabelSelectorOpExists, nil, []map[string]string{label("x", "a"), nil}, []map[string]string{label("k", "")}},
		{metav1.LabelSelectorOpDoesNotExist, nil, []map[string]string{label("k", "a"), label("k", "")},
			[]map[string]string{label("x", "a"), nil}},
	} {
		ns := gatedNamespace(t, env)
		b := newBudget(t, env, ns, strings.ToLower(string(c.op)),
			metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "k", Operator: c.op, Values: c.values}}})
		setGate(t, env, b, v1alpha1.GateClosed, time.Now(), time.Time{})
		refused(t, env, gpuPod(ns, c.outs[0]))
		for _, l := range c.outs {
			if err := try(t, env, gpuPod(ns, l)); err == nil {
				t.Errorf("%s: a pod with %v is admitted", c.op, l)
			}
		}
		for _, l := range c.in {
			if err := try(t, env, gpuPod(ns, l)); err != nil {
				t.Errorf("%s: a pod with %v: %v", c.op, l, err)
			}
		}
		all := newBudget(t, env, ns, "all", metav1.LabelSelector{})
		setGate(t, env, all, v1alpha1.GateClosed, time.Now(), time.Time{})
		if text := refused(t, env, gpuPod(ns, c.in[0])); !strings.Contains(text, ns+"/all is spent") {
			t.Error(text)
		}
	}
}

// TestRule12KubeSystem labels kube-system, closes a gate in it, and sees its pods
// admitted.
func TestRule12KubeSystem(t *testing.T) {
	env := testenv.New(t, testenv.Options{})
	installGate(t, env)
	ns := gatedNamespace(t, env)
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system"}}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"`+GateLabel+`":"`+GateEnabled+`"}}}`))
	if err := env.Client.Patch(t.Context(), system, patch); err != nil {
		t.Fatal(err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "default"}}
	if err := env.Client.Create(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	setGate(t, env, newBudget(t, env, "kube-system", "all", metav1.LabelSelector{}), v1alpha1.GateClosed, time.Now(), time.Time{})
	b := newBudget(t, env, ns, "all", metav1.LabelSelector{})
	setGate(t, env, b, v1alpha1.GateClosed, time.Now(), time.Time{})
	refused(t, env, gpuPod(ns, nil)) // the gate works by now
	if err := try(t, env, gpuPod("kube-system", nil)); err != nil {
		t.Errorf("in kube-system: %v", err)
	}

	// A controller that died leaves the gate closed, and confirms it no more.
	setGate(t, env, b, v1alpha1.GateClosed, time.Now().Add(-29*time.Minute), time.Time{})
	refused(t, env, gpuPod(ns, nil))
	setGate(t, env, b, v1alpha1.GateClosed, time.Now().Add(-31*time.Minute), time.Time{})
	admitted(t, env, gpuPod(ns, nil))

	// The budget goes.
	setGate(t, env, b, v1alpha1.GateClosed, time.Now(), time.Time{})
	refused(t, env, gpuPod(ns, nil))
	if err := env.Client.Delete(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	admitted(t, env, gpuPod(ns, nil))

	// The definitions go, with all budgets.
	b = newBudget(t, env, ns, "again", metav1.LabelSelector{})
	setGate(t, env, b, v1alpha1.GateClosed, time.Now(), time.Time{})
	refused(t, env, gpuPod(ns, nil))
	for _, d := range crd.Objects() {
		if err := env.Client.Delete(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	admitted(t, env, gpuPod(ns, nil))
}

// TestRule12Relabel: no running pod that a budget counts is relabelled out of it, whether or
// not its gate is closed, and other changes of labels are as ever.
func TestRule12Relabel(t *testing.T) {
	env := testenv.Start(t, testenv.Options{})
	installGate(t, env)
	ns := gatedNamespace(t, env)
	newBudget(t, env, ns, "b", metav1.LabelSelector{MatchLabels: label("team", "ml"),
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "test", Operator: metav1.LabelSelectorOpDoesNotExist}}})
	made := func(change func(*corev1.Pod)) *corev1.Pod {
		p := gpuPod(ns, map[string]string{"team": "ml", "app": "a"})
		change(p)
		if err := env.Client.Create(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		return p
	}
	relabel := func(p *corev1.Pod, labels string) error {
		return env.Client.Patch(t.Context(), p.DeepCopy(), client.RawPatch("application/merge-patch+json",
			[]byte(`{"metadata":{"labels":`+labels+`}}`)), client.DryRunAll)
	}
	counted := made(func(*corev1.Pod) {})
	testenv.Eventually(t, "the pod keeps its label", func() error {
		if err := relabel(counted, `{"team":"web"}`); err == nil || !strings.Contains(err.Error(), "GPUBudget "+ns+"/b counts this pod") {
			return fmt.Errorf("the answer is %w", err)
		}
		return nil
	})
	for _, labels := range []string{`null`, `{"team":null}`, `{"test":"yes"}`} {
		if relabel(counted, labels) == nil {
			t.Errorf("%s is taken", labels)
		}
	}
	for _, labels := range []string{`{"app":"b"}`, `{"other":"x"}`, `{"app":null}`} {
		if err := relabel(counted, labels); err != nil {
			t.Errorf("%s: %v", labels, err)
		}
	}
	for name, change := range map[string]func(*corev1.Pod){
		"another team": func(p *corev1.Pod) { p.Labels["team"] = "web" },
		"no device":    func(p *corev1.Pod) { p.Spec.Containers[0].Resources = corev1.ResourceRequirements{} },
	} {
		if err := relabel(made(change), `{"team":"x"}`); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	over := made(func(*corev1.Pod) {})
	over.Status.Phase = corev1.PodSucceeded
	if err := env.Client.Status().Update(t.Context(), over); err != nil {
		t.Fatal(err)
	}
	if err := relabel(over, `{"team":"x"}`); err != nil {
		t.Errorf("a pod that has ended: %v", err)
	}
}

// TestRule12OtherNames keeps out pods that would hold devices under other names than that of
// the budget: slices, replicas, and resource claims, of which it is not known what they hold.
func TestRule12OtherNames(t *testing.T) {
	env := testenv.Start(t, testenv.Options{})
	installGate(t, env)
	ns := gatedNamespace(t, env)
	b := newBudget(t, env, ns, "b", metav1.LabelSelector{})
	setGate(t, env, b, v1alpha1.GateClosed, time.Now(), time.Time{})
	refused(t, env, gpuPod(ns, nil))
	requesting := func(name, n string) *corev1.Pod {
		p, l := gpuPod(ns, nil), corev1.ResourceList{corev1.ResourceName(name): resource.MustParse(n)}
		p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: l, Limits: l}
		return p
	}
	claims := gpuPod(ns, nil)
	claims.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
	claims.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "c", ResourceClaimTemplateName: ptr.To("t")}}
	before := requesting("nvidia.com/mig-1g.5gb", "1")
	before.Spec.InitContainers, before.Spec.Containers = before.Spec.Containers, []corev1.Container{{Name: "main", Image: "none"}}
	check := func(pods map[string]*corev1.Pod, admitted bool) {
		t.Helper()
		for name, p := range pods {
			if err := try(t, env, p); (err == nil) != admitted {
				t.Errorf("%s: %v, want admitted: %t", name, err, admitted)
			}
		}
	}
	check(map[string]*corev1.Pod{
		"slice": requesting("nvidia.com/mig-3g.20gb",
			"1"), "slice before": before, "shared slice": requesting("nvidia.com/mig-1g.5gb.shared", "2"),
		"replica": requesting("nvidia.com/gpu.shared", "1"), "claim": claims,
	}, false)
	check(map[string]*corev1.Pod{"no slice": requesting("nvidia.com/mig-3g.20gb", "0"),
		"other": requesting("example.com/mig-3g.20gb", "1")}, true)
	for _, resource := range []string{"amd.com/gpu", "cpu"} {
		patch := `[{"op":"replace","path":"/spec/resourceName","value":"` + resource + `"}]`
		if err := env.Client.Patch(t.Context(), b, client.RawPatch("application/json-patch+json", []byte(patch))); err != nil {
			t.Fatal(err)
		}
		testenv.Eventually(t, "the budget is of "+resource, func() error { return try(t, env, requesting("nvidia.com/mig-3g.20gb", "1")) })
		check(map[string]*corev1.Pod{"claim": claims}, resource == "cpu")
	}
}
