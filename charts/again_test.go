package charts

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/test/testenv"
)

// passing makes a budget with a gate and deletes it: it is counted, and its ledger goes
// with it.
func (s *site) passing(t *testing.T) {
	t.Helper()
	hours := 1.0
	b := &v1alpha1.GPUBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "passing"}, Spec: v1alpha1.GPUBudgetSpec{
		Quota: v1alpha1.Quota{GPUHours: &hours, WindowHours: 24}, Gate: true,
	}}
	if err := s.env.Client.Create(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	ledgers := func(want int) func() error {
		return func() error {
			s.revive(t)
			var all corev1.ConfigMapList
			if err := s.env.Client.List(t.Context(), &all, client.InNamespace(namespace)); err != nil {
				return err
			}
			n := 0
			for i := range all.Items {
				if strings.HasPrefix(all.Items[i].Name, "spotter-ledger-") {
					n++
				}
			}
			if n != want {
				return fmt.Errorf("there are %d ledgers, want %d", n, want)
			}
			return nil
		}
	}
	testenv.Eventually(t, "the budget has its ledger", ledgers(2))
	if err := s.env.Client.Delete(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, "the ledger is gone with its budget", ledgers(1))
}

// before lives through a release once more, shorter and with Helm 3.
func (s *site) before(t *testing.T, kept map[string]string) {
	t.Helper()
	s.helm.must(t, "uninstall", "other", "--namespace", namespace, "--no-hooks", "--wait", "--timeout", "4m")
	s.helm = newHelmOf(t, helm3, s.env.Kubeconfig)
	head := s.head(t.Context())
	s.helm.must(t, append([]string{"install", release, "spotter", "--take-ownership"}, installed...)...)
	s.helm.must(t, append([]string{"upgrade", release, "spotter", "--set", "mode=active"}, installed...)...)
	c := s.controller(t)
	s.decided(t, head, v1alpha1.ModeActive)
	c.stop(t)
	head = s.head(t.Context())
	s.helm.must(t, "rollback", release, "1", "--namespace", namespace, "--wait", "--timeout", "4m")
	c = s.controller(t)
	s.decided(t, head, v1alpha1.ModeShadow)
	s.uninstall(t, c)
	s.left(t)
	s.same(t, "a life with Helm 3", kept)
}
