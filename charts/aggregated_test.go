package charts

import (
	"errors"
	"fmt"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spotter-dev/spotter/test/testenv"
)

// TestAggregatedRoles has the real controllers aggregate the roles. In their own namespace, users
// with view read the GPUBudgets and users with edit write them, and they may use no other
// resource of Spotter. Users with view in the whole cluster read pools, and only the role for
// pools allows writing them.
func TestAggregatedRoles(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an API server")
	}
	env := testenv.New(t, testenv.Options{ControllerManager: true})
	h := newHelm(t, "")
	_, all := h.render(t, "spotter", "--set", "rbac.budgetsFor=edit")
	own := namespace + ":" + release
	for _, suffix := range []string{"-view", "-edit", "-pools-admin", "-plans-approver"} {
		if err := env.Client.Create(t.Context(), find(t, all, "ClusterRole", own+suffix)); err != nil {
			t.Fatal(err)
		}
	}
	team := env.Namespace(t)
	for user, role := range map[string]string{"viewer": "view", "editor": "edit", "admin": "admin"} {
		b := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: user},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}}
		b.Subjects = []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}}
		if err := env.Client.Create(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	for user, role := range map[string]string{"auditor": "view", "platform": own + "-pools-admin", "approver": own + "-plans-approver"} {
		b := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: user},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}}
		b.Subjects = []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}}
		if err := env.Client.Create(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	may := func(user, verb, resource, in string) error {
		r := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user,
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: verb, Group: "spotter.dev", Resource: resource, Namespace: in,
			}}}
		if err := env.Client.Create(t.Context(), r); err != nil {
			return err
		}
		if !r.Status.Allowed {
			return errors.New("it is not allowed")
		}
		return nil
	}
	for _, c := range []struct{ user, verb, resource, in string }{
		{"viewer", "list", "gpubudgets", team}, {"editor", "get", "gpubudgets", team}, {"editor", "create", "gpubudgets",
			team}, {"admin", "delete", "gpubudgets", team},
		{"auditor", "watch", "capacitypools", ""}, {"auditor", "list", "spotnodes", ""}, {"auditor", "list", "gpubudgets",
			"default"}, {"platform", "patch", "capacitypools", ""},
		{"approver", "patch", "spotplans", ""}, {"auditor", "get", "spotplans", ""},
	} {
		testenv.Eventually(t, fmt.Sprintf("%v is allowed", c), func() error { return may(c.user, c.verb, c.resource, c.in) })
	}
	for _, c := range []struct{ user, verb, resource, in string }{
		{"viewer", "create", "gpubudgets", team}, {"editor", "create", "gpubudgets", "default"}, {"editor", "update",
			"gpubudgets/status", team}, {"admin", "update", "gpubudgets/status", team},
		{"admin", "list", "capacitypools", ""}, {"admin", "patch", "capacitypools", ""}, {"admin", "get", "spotnodes", ""},
		{"auditor", "patch", "capacitypools", ""}, {"platform", "update", "capacitypools/status", ""}, {"platform",
			"create", "spotnodes", ""}, {"platform", "create", "gpubudgets", team},
		{"platform", "patch", "spotplans", ""}, {"auditor", "patch", "spotplans", ""}, {"approver", "update",
			"spotplans/status", ""}, {"approver", "patch", "capacitypools", ""},
	} {
		if err := may(c.user, c.verb, c.resource, c.in); err == nil {
			t.Errorf("%v is allowed", c)
		}
	}
}
