package testenv

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// rule lets verbs be done to a resource of no group.
func rule(resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{resource}, Verbs: verbs}
}

// TestUse: for each user, the actions that were allowed are collected under the rules in
// force at the time; actions of users with other names are ignored, and so are actions
// before the test.
func TestUse(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, UseBegun), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	early := Start(t, all)
	acts(t, early, early.Namespace(t), "spotter-early", "list", rule("pods", "list"))
	t.Setenv(UseVariable, dir)
	t.Run("within", func(t *testing.T) {
		env := Start(t, all)
		home, away := env.Namespace(t), env.Namespace(t)
		bindRole(t, env, home, "spotter-a", rule("secrets", "list"))
		acts(t, env, home, "spotter-a", "list", rule("pods", "list"))
		acts(t, env, home, "somebody", "list", rule("pods", "list"))
		acts(t, env, away, "spotter-a", "create", rule("pods", "list"), rule("configmaps", "create"))
	})
	text, err := os.ReadFile(filepath.Join(dir, "test.testenv.TestUse.within.json"))
	if err != nil {
		t.Fatal(err)
	}
	var got UseReport
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if got.Package != "test/testenv" || got.Test != "TestUse/within" || len(got.Users) != 2 {
		t.Fatalf("collected is %s", text)
	}
	pods := Use{Verb: "list", Resource: "pods", Home: true}
	maps := Use{Verb: "create", Resource: "configmaps", Away: true}
	for i, want := range []struct {
		rules int
		uses  []Use
	}{{2, []Use{pods}}, {3, []Use{maps}}} {
		u := got.Users[i]
		if u.User != "spotter-a" || len(u.Grants) != want.rules || !slices.Equal(u.Uses, want.uses) {
			t.Errorf("user %d: %+v, want %+v", i, u, want)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("in the folder are %v, %v", entries, err)
	}
}

// bindRole lets a user do something in a namespace.
func bindRole(t *testing.T, env *Env, namespace, user string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	for _, o := range []client.Object{
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "r"}, Rules: rules},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "r"},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "r"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}}},
	} {
		if err := env.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

// acts has a user do what one of the rules lets, and what none does: read ConfigMaps.
func acts(t *testing.T, env *Env, namespace, user, verb string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	c, err := client.New(env.User(t, user, rules...), client.Options{Scheme: env.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	if verb == "list" {
		err = c.List(t.Context(), &corev1.PodList{}, client.InNamespace(namespace))
	} else {
		err = c.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "m"}})
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := c.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(namespace)); !apierrors.IsForbidden(err) {
		t.Fatalf("%s reads ConfigMaps: %v", user, err)
	}
}
