package charts

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/test/testenv"
)

// warnings are those of an API server.
type warnings struct {
	mu   sync.Mutex
	text string
}

func (w *warnings) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text += text
}

// poolOn returns a pool on a backend, with labels.
func poolOn(name string, b v1alpha1.Backend, labels map[string]string) *v1alpha1.CapacityPool {
	return &v1alpha1.CapacityPool{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.CapacityPoolSpec{Backend: b, Template: v1alpha1.NodeTemplate{Labels: labels}}}
}

func groupsOf(tags ...string) v1alpha1.Backend {
	m := map[string]string{}
	for _, t := range tags {
		m[t] = "x"
	}
	return v1alpha1.Backend{AutoScalingGroups: &v1alpha1.AutoScalingGroupsBackend{DiscoveryTags: m}}
}

func rackspaceOf(namespace, secret string) v1alpha1.Backend {
	return v1alpha1.Backend{Rackspace: &v1alpha1.RackspaceBackend{Cloudspace: "c", Org: "o",
		CredentialsSecretRef: corev1.SecretReference{Namespace: namespace, Name: secret}}}
}

// installAdmission applies the admission policies of the chart and waits until they hold.
func installAdmission(t *testing.T, env *testenv.Env, set ...string) {
	t.Helper()
	_, all := newHelm(t, "").render(t, "spotter", set...)
	for _, o := range all {
		if name := o.GetName(); strings.HasPrefix(o.GetKind(), "ValidatingAdmissionPolicy") && name != "budget-gate.spotter.dev" {
			if err := env.Client.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
	}
	testenv.Eventually(t, "the policies hold", func() error {
		if err := env.Client.Create(t.Context(), poolOn("probe", rackspaceOf("nowhere", "none"), nil), client.DryRunAll); err == nil {
			return errors.New("a pool with a secret of others is taken")
		}
		return nil
	})
}

// TestAdmission: a pool is refused that names a secret of others, a backend that the
// controller has not, or the groups or labels of another pool; one that stands can be
// changed in all else.
func TestAdmission(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an API server")
	}
	env := testenv.New(t, testenv.Options{})
	installAdmission(t, env, "--set", "backends={asg,rackspace}", "--set", "aws.regions={us-east-1}",
		"--set", "rackspace.credentialsSecrets[0].name=token", "--set", "rackspace.credentialsSecrets[1].name=other,rackspace.credentialsSecrets[1].namespace=vault")
	first := poolOn("first", groupsOf("a", "b"), map[string]string{"team": "one"})
	if err := env.Client.Create(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	const same, labels, secret, backend = "CapacityPool first discover the same", "CapacityPool first give their nodes the same labels", "may not read", "without this backend"
	for _, c := range []struct {
		pool *v1alpha1.CapacityPool
		want string
	}{
		{poolOn("subset", groupsOf("a"), nil), same},
		{poolOn("superset", groupsOf("a", "b", "c"), nil), same},
		{poolOn("labels", groupsOf("c"), map[string]string{"team": "one"}), labels},
		{poolOn("apart", groupsOf("a", "c"), map[string]string{"team": "two"}), ""},
		{poolOn("ours", rackspaceOf(namespace, "token"), map[string]string{"team": "one"}), ""},
		{poolOn("named", rackspaceOf("vault", "other"), nil), ""},
		{poolOn("theirs", rackspaceOf("kube-system", "token"), nil), secret},
		{poolOn("nowhere", rackspaceOf("", "token"), nil), secret},
		{poolOn("karpenter", v1alpha1.Backend{Karpenter: &v1alpha1.KarpenterBackend{NodeClassName: "default"}}, nil), backend},
	} {
		check := func() error {
			err := env.Client.Create(t.Context(), c.pool.DeepCopy(), client.DryRunAll)
			if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) ||
				!apierrors.IsInvalid(err) && !apierrors.IsForbidden(err)) {
				return fmt.Errorf("want %q: %w", c.want, err)
			}
			return nil
		}
		testenv.Eventually(t, c.pool.Name, check) // the API server learns of the other pool by and by
	}
	first.Spec.Mode = v1alpha1.ModeOff
	if err := env.Client.Update(t.Context(), first); err != nil {
		t.Errorf("a pool cannot be switched off: %v", err)
	}
	budgetsWarn(t, env)
	ownWrites(t, env)
}

// ownWrites has the controller's account, here with all rights on these kinds, write
// what it writes and what it never does.
func ownWrites(t *testing.T, env *testenv.Env) {
	t.Helper()
	if err := env.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		t.Fatal(err)
	}
	all := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods", "configmaps"}, Verbs: []string{"*"}}
	c, err := client.New(env.ServiceAccount(t, namespace, release, all), client.Options{Scheme: env.Client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	named := func(name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	for _, o := range []*corev1.ConfigMap{named("theirs"), named("spotter-memory-head")} {
		if err := env.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	patch := func(text string) client.Patch { return client.RawPatch(types.MergePatchType, []byte(text)) }
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace(t), Name: "p",
		Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"mine": "1"}}}
	pod.Spec.Containers = []corev1.Container{{Name: "c", Image: "good"}}
	if err := env.Client.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	for what, try := range map[string]struct {
		write func() error
		taken bool
	}{
		"making a ledger":           {func() error { return c.Create(t.Context(), named("spotter-ledger-x")) }, true},
		"writing its memory":        {func() error { return c.Update(t.Context(), named("spotter-memory-head")) }, true},
		"deleting a ledger":         {func() error { return client.IgnoreNotFound(c.Delete(t.Context(), named("spotter-ledger-y"))) }, true},
		"making another ConfigMap":  {func() error { return c.Create(t.Context(), named("other")) }, false},
		"writing another ConfigMap": {func() error { return c.Update(t.Context(), named("theirs")) }, false},
		"deleting another":          {func() error { return c.Delete(t.Context(), named("theirs")) }, false},
		"ranking a pod": {func() error {
			return c.Patch(t.Context(), pod.DeepCopy(),
				patch(`{"metadata":{"annotations":{"controller.kubernetes.io/pod-deletion-cost":"5","spotter.dev/pod-deletion-cost":"5"}}}`))
		}, true},
		"an image": {func() error {
			return c.Patch(t.Context(), pod.DeepCopy(), client.RawPatch(types.StrategicMergePatchType,
				[]byte(`{"spec":{"containers":[{"name":"c","image":"bad"}]}}`)))
		}, false},
		"a label": {func() error { return c.Patch(t.Context(), pod.DeepCopy(), patch(`{"metadata":{"labels":{"a":"c"}}}`)) }, false},
		"another annotation": {func() error {
			return c.Patch(t.Context(), pod.DeepCopy(), patch(`{"metadata":{"annotations":{"x":"y"}}}`))
		}, false},
		"a user's annotation": {func() error {
			return c.Patch(t.Context(), pod.DeepCopy(), patch(`{"metadata":{"annotations":{"mine":null}}}`))
		}, false},
		"a finalizer": {func() error {
			return c.Patch(t.Context(), pod.DeepCopy(), patch(`{"metadata":{"finalizers":["x.io/y"]}}`))
		}, false},
	} {
		if err := try.write(); (err == nil) != try.taken || err != nil && !strings.Contains(err.Error(), "the controller writes") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := env.Client.Patch(t.Context(), pod.DeepCopy(), patch(`{"metadata":{"labels":{"a":"d"}}}`)); err != nil {
		t.Errorf("somebody else writes a label: %v", err)
	}
}

// budgetsWarn writes budgets where a gate holds and where it does not.
func budgetsWarn(t *testing.T, env *testenv.Env) {
	t.Helper()
	ns, hours := env.Namespace(t), 1.0
	write := func(action v1alpha1.EnforcementAction) string {
		w := &warnings{}
		cfg := rest.CopyConfig(env.Config)
		cfg.WarningHandler = w
		c, err := client.New(cfg, client.Options{Scheme: env.Client.Scheme()})
		if err != nil {
			t.Fatal(err)
		}
		b := &v1alpha1.GPUBudget{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "b"}, Spec: v1alpha1.GPUBudgetSpec{
			Quota: v1alpha1.Quota{GPUHours: &hours, WindowHours: 1}, Enforcement: v1alpha1.Enforcement{Action: action},
		}}
		if err := c.Create(t.Context(), b, client.DryRunAll); err != nil {
			t.Fatal(err)
		}
		return w.text
	}
	if text := write(v1alpha1.EnforceEvict); !strings.Contains(text, "spotter.dev/budget-gate=enabled") {
		t.Errorf("a budget that evicts where no gate holds is warned of by %q", text)
	}
	if text := write(v1alpha1.EnforceAlertOnly); text != "" {
		t.Errorf("a budget that keeps nobody out is warned of: %s", text)
	}
	if out, err := env.Kubectl("label", "namespace", ns, "spotter.dev/budget-gate=enabled"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	testenv.Eventually(t, "no warning where the gate holds", func() error {
		if text := write(v1alpha1.EnforceEvict); text != "" {
			return errors.New(text)
		}
		return nil
	})
}
