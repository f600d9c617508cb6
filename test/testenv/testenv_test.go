package testenv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

var all = Options{ControllerManager: true, Scheduler: true, Kwok: true, PodDelete: 300 * time.Millisecond}

func deployment(ns string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": "web"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"},
		Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "none"}}},
		}},
	}
}

// TestRule15Parts walks a pod through all parts: the controller manager makes it,
// the scheduler binds it, kwok runs it, a disruption budget guards it, it goes
// after its time, and another comes.
func TestRule15Parts(t *testing.T) {
	env := Start(t, all)
	ns := env.Namespace(t)
	env.AddNode(t, Node("parts-1", "4", "16Gi"))
	env.AddNode(t, Node("parts-2", "4", "16Gi"))
	pdb := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"}, Spec: policyv1.PodDisruptionBudgetSpec{
		MinAvailable: new(intstr.IntOrString), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
	}}
	*pdb.Spec.MinAvailable = intstr.FromInt32(2)
	for _, o := range []client.Object{deployment(ns, 3), pdb} {
		if err := env.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	var pods corev1.PodList
	running := func() error {
		if err := env.Client.List(t.Context(), &pods, client.InNamespace(ns)); err != nil {
			return err
		}
		n := 0
		for i := range pods.Items {
			if p := &pods.Items[i]; p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil && p.Spec.NodeName != "" {
				n++
			}
		}
		if n != 3 {
			return fmt.Errorf("%d pods run", n)
		}
		return nil
	}
	Eventually(t, "three pods run", running)
	Eventually(t, "the budget allows one", func() error {
		if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(pdb), pdb); err != nil {
			return err
		}
		if pdb.Status.DisruptionsAllowed != 1 {
			return fmt.Errorf("it allows %d", pdb.Status.DisruptionsAllowed)
		}
		return nil
	})
	env.Freeze(t, ControllerManager) // the budget is not renewed, and no pod is made
	evict := func(i int) error {
		return env.Client.SubResource("eviction").Create(t.Context(), &pods.Items[i], &policyv1.Eviction{})
	}
	if err := evict(0); err != nil {
		t.Fatalf("the first eviction: %v", err)
	}
	if err := evict(1); !apierrors.IsTooManyRequests(err) {
		t.Errorf("the second eviction: %v", err)
	}
	Eventually(t, "the pod is gone", func() error {
		err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(&pods.Items[0]), &corev1.Pod{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is there: %w", err)
	})
	if err := env.signal(ControllerManager, false); err != nil {
		t.Fatal(err)
	}
	Eventually(t, "another pod has come", running)
}

// TestUsers grants a user one thing and sees others refused, and all of it in the
// audit log.
func TestUsers(t *testing.T) {
	env := Start(t, all)
	ns := env.Namespace(t)
	rule := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create"}}
	mark := env.Mark()
	for name, cfg := range map[string]func() (client.Client, error){
		"alice": func() (client.Client, error) {
			return client.New(env.User(t, "alice", rule), client.Options{Scheme: env.Scheme})
		},
		"system:serviceaccount:" + ns + ":bob": func() (client.Client, error) {
			return client.New(env.ServiceAccount(t, ns, "bob", rule), client.Options{Scheme: env.Scheme})
		},
	} {
		c, err := cfg()
		if err != nil {
			t.Fatal(err)
		}
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, GenerateName: "m-"}, Data: map[string]string{"k": "v"}}
		if err := c.Create(t.Context(), m); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		dry := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, GenerateName: "d-"}}
		if err := c.Create(t.Context(), dry, client.DryRunAll); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := c.Delete(t.Context(), m); !apierrors.IsForbidden(err) {
			t.Fatalf("%s deletes: %v", name, err)
		}
		got := env.Audit(t, mark, func(e AuditEvent) bool { return e.User == name && e.Resource == "configmaps" })
		if len(got) != 3 {
			t.Fatalf("%s: %v", name, got)
		}
		if e := got[0]; e.Verb != "create" || e.Code != 201 || e.Namespace != ns || !e.Writes() ||
			!strings.Contains(string(e.Request), `"k":"v"`) {
			t.Errorf("%s: %v %s", name, e, e.Request)
		}
		if e := got[1]; !e.DryRun || e.Writes() {
			t.Errorf("%s: a dry run writes: %v", name, e)
		}
		if e := got[2]; e.Code != 403 || e.Name != m.Name || e.Verb != "delete" {
			t.Errorf("%s: %v", name, e)
		}
	}
}

// TestKinds finds our kinds by their short names.
func TestKinds(t *testing.T) {
	env := Start(t, all)
	for _, name := range []string{"cpool", "gpub", "snode"} {
		if out, err := env.Kubectl("get", name, "-A"); err != nil || !strings.Contains(out, "No resources found") {
			t.Errorf("kubectl get %s: %v: %s", name, err, out)
		}
	}
	if err := env.Client.List(t.Context(), &v1alpha1.SpotNodeList{}); err != nil {
		t.Error(err)
	}
}

// TestGuard has a process start a server and die without a word. No server and no
// file is left.
func TestGuard(t *testing.T) {
	if dir := os.Getenv("TESTENV_DIE"); dir != "" {
		env := New(t, Options{})
		if err := os.WriteFile(dir, []byte(env.Dir+"\n"+env.Config.Host), 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := os.FindProcess(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		_ = p.Kill()
		time.Sleep(time.Minute)
		t.Fatal("it lives")
	}
	binaries(t, Options{})
	note := t.TempDir() + "/note"
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestGuard$")
	cmd.Env = append(os.Environ(), "TESTENV_DIE="+note)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != -1 {
		t.Fatalf("it was not killed: %v: %s", err, out)
	}
	said, err := os.ReadFile(note)
	if err != nil {
		t.Fatal(err)
	}
	dir, host, _ := strings.Cut(string(said), "\n")
	Eventually(t, "nothing is left", func() error {
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			return fmt.Errorf("%s is there: %w", dir, err)
		}
		if out, err := exec.CommandContext(context.Background(), "pgrep", "-f", dir).Output(); err == nil {
			return fmt.Errorf("of %s processes are left: %s", host, out)
		}
		return nil
	})
}

// TestRestart: what was written is there after the API server was killed and started
// again, and once more.
func TestRestart(t *testing.T) {
	env := New(t, Options{})
	ns := env.Namespace(t)
	for range 2 {
		before, err := env.pid(APIServer)
		if err != nil {
			t.Fatal(err)
		}
		env.Restart(t, APIServer)
		Eventually(t, "the API server answers", func() error {
			if now, err := env.pid(APIServer); err != nil || now == before {
				return fmt.Errorf("process %d: %w", now, err)
			}
			return env.Client.Get(t.Context(), client.ObjectKey{Name: ns}, &corev1.Namespace{})
		})
	}
}
