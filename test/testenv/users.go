package testenv

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// User returns the configuration of a user who may do what the rules say, in all
// namespaces, and nothing else. A name that was used before gets the new rules.
func (e *Env) User(t testing.TB, name string, rules ...rbacv1.PolicyRule) *rest.Config {
	t.Helper()
	base := &rest.Config{QPS: 1000, Burst: 2000}
	u, err := e.control.ControlPlane.AddUser(envtest.User{Name: name}, base)
	if err != nil {
		t.Fatalf("testenv: adding user %s: %v", name, err)
	}
	e.grant(t, name, rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}, rules)
	return u.Config()
}

// ServiceAccount makes a service account unless it exists, and returns the configuration of a
// client with its token. Without rules it may do what others have granted it, such as the manifests
// of a chart.
func (e *Env) ServiceAccount(t testing.TB, namespace, name string, rules ...rbacv1.PolicyRule) *rest.Config {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if err := e.Client.Create(t.Context(), account); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatalf("testenv: making service account %s/%s: %v", namespace, name, err)
	}
	if len(rules) > 0 {
		e.grant(t, namespace+":"+name, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace,
			Name: name}, rules)
	}
	hours := int64(24 * 3600)
	token := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &hours}}
	if err := e.Client.SubResource("token").Create(t.Context(), account, token); err != nil {
		t.Fatalf("testenv: asking for the token of %s/%s: %v", namespace, name, err)
	}
	cfg := rest.AnonymousClientConfig(e.Config)
	cfg.BearerToken, cfg.QPS, cfg.Burst = token.Status.Token, 1000, 2000
	return cfg
}

// granted counts the calls of grant.
var granted atomic.Int64

// grant lets subject do what rules say, and waits until the API server knows it.
func (e *Env) grant(t testing.TB, name string, subject rbacv1.Subject, rules []rbacv1.PolicyRule) {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "testenv:" + name}, Rules: rules}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{subject},
	}
	// A rule that nothing else gives shows when the rules hold.
	path := fmt.Sprintf("/testenv/%d", granted.Add(1))
	seen := rbacv1.PolicyRule{NonResourceURLs: []string{path}, Verbs: []string{"get"}}
	role.Rules = append([]rbacv1.PolicyRule{seen}, rules...)
	for _, o := range []client.Object{role, binding} {
		err := e.Client.Create(t.Context(), o)
		if apierrors.IsAlreadyExists(err) {
			err = e.Client.Update(t.Context(), o)
		}
		if err != nil {
			t.Fatalf("testenv: granting %s: %v", name, err)
		}
	}
	t.Cleanup(func() {
		_ = e.Client.Delete(context.Background(), binding)
		_ = e.Client.Delete(context.Background(), role)
	})
	Eventually(t, "the rules of "+name+" hold", func() error { return e.allowed(t.Context(), subject, path) })
}

// allowed returns nil once subject may get path.
func (e *Env) allowed(ctx context.Context, subject rbacv1.Subject, path string) error {
	user := subject.Name
	if subject.Kind == rbacv1.ServiceAccountKind {
		user = "system:serviceaccount:" + subject.Namespace + ":" + subject.Name
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user, NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: "get"},
	}}
	if err := e.Client.Create(ctx, review); err != nil {
		return err
	}
	if !review.Status.Allowed {
		return fmt.Errorf("%s may not yet: %s", user, review.Status.Reason)
	}
	return nil
}
