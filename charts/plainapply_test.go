package charts

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/test/testenv"
)

// TestPlainApply: what `helm template` prints can be applied as it is. Nothing in it
// stops the controller again, since only Helm knows when a release is uninstalled; what
// Helm installs itself has the hook that cleans up.
func TestPlainApply(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an API server")
	}
	env := testenv.New(t, testenv.Options{})
	if out, err := env.Kubectl("create", "namespace", namespace); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	h := newHelm(t, testenv.Kubeconfig(t, env.Config))
	file := filepath.Join(t.TempDir(), "all.yaml")
	if err := os.WriteFile(file, []byte(h.must(t, "template", release, "spotter", "--namespace", namespace)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := env.Kubectl("apply", "--server-side", "-f", file); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var jobs batchv1.JobList
	var roles rbacv1.ClusterRoleList
	for _, list := range []client.ObjectList{&jobs, &roles} {
		if err := env.Client.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
	}
	for i := range jobs.Items {
		if strings.HasSuffix(jobs.Items[i].Name, "-cleanup") {
			t.Error("the Job that stops the controller is started")
		}
	}
	for i := range roles.Items {
		if strings.HasSuffix(roles.Items[i].Name, "-cleanup") {
			t.Error("the rights to clean up are granted to somebody who is not uninstalling")
		}
	}
	for set, want := range map[string]bool{"auto": true, "true": true, "false": false} {
		text := h.must(t, "install", "other", "spotter", "--namespace", namespace, "--dry-run=server", "--set",
			"crds.install=false,budgetGate.install=false,admission.install=false,cleanup.enabled="+set)
		if has := strings.Contains(text, "helm.sh/hook: pre-delete"); has != want {
			t.Errorf("cleanup.enabled=%s: Helm installs the hook: %t", set, has)
		}
	}
	if text := h.must(t, "template", release, "spotter", "--set", "cleanup.enabled=true"); !strings.Contains(text,
		"helm.sh/hook: pre-delete") {
		t.Error("cleanup.enabled=true: who renders for Argo CD has no hook")
	}
}
