package live

import (
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/test/testenv"
)

// approvalRights are those that plans need, and the memory of a step.
var approvalRights = []rbacv1.PolicyRule{
	{APIGroups: []string{"spotter.dev"}, Resources: []string{"capacitypools", "gpubudgets"}, Verbs: []string{"get", "list"}},
	{APIGroups: []string{"spotter.dev"}, Resources: []string{"capacitypools/status", "spotplans/status"}, Verbs: []string{"update"}},
	{APIGroups: []string{"spotter.dev"}, Resources: []string{"spotplans"}, Verbs: []string{"create", "get", "list"}},
	{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create", "delete", "get", "list", "update"}},
}

// TestApprovalAtServer: a real API server keeps a plan so that its digest stays, and takes the
// patch that approves it.
func TestApprovalAtServer(t *testing.T) {
	var watch approvalWatch
	env := testenv.Start(t, testenv.Options{})
	w := newFixture(t, 3, interceptor.Funcs{})
	pool := &v1alpha1.CapacityPool{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: v1alpha1.CapacityPoolSpec{
		Mode: v1alpha1.ModeApprove, Backend: v1alpha1.Backend{Karpenter: &v1alpha1.KarpenterBackend{NodeClassName: "default"}},
	}}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.cfg.Namespace}}
	if err := errors.Join(env.Client.Create(t.Context(), namespace), env.Client.Create(t.Context(), pool)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = env.Client.Delete(t.Context(), pool) })
	user, err := client.New(env.User(t, "spotter-approvals", approvalRights...), client.Options{Scheme: env.Client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	w.parts.Client, w.parts.Reader = user, user
	w.decide = func(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
		p, m := drains(s, m)
		p.Drains = p.Drains[:1]
		return p, m
	}
	c := w.controller(t)
	step(t, c)
	step(t, c)
	plan := &v1alpha1.SpotPlan{}
	if err := env.Client.Get(t.Context(), client.ObjectKey{Name: "web"}, plan); err != nil {
		t.Fatal(err)
	}
	if said := w.take(); len(said) > 0 || plan.Status.State != v1alpha1.PlanPending ||
		plan.Status.Digest != plan.Sum() || len(plan.Status.Changes) != 1 {
		t.Fatalf("%q, plan %+v", said, plan.Status)
	}
	if watch.changed(t.Context(), user) {
		t.Error("a person is said to have approved before one has")
	}
	patch := `{"spec":{"approved":true,"digest":"` + plan.Sum() + `"}}`
	if err := env.Client.Patch(t.Context(), plan, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
	if !watch.changed(t.Context(), user) {
		t.Error("the approval is not seen")
	}
	step(t, c)
	if said := w.take(); !slices.Equal(said, []string{"drain n000"}) {
		t.Errorf("%q once approved", said)
	}
	if err := env.Client.Get(t.Context(), client.ObjectKey{Name: "web"}, plan); err != nil || plan.Status.State != v1alpha1.PlanApproved {
		t.Errorf("state %s, %v", plan.Status.State, err)
	}
}
