package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/cmd/spotter/config"
	"github.com/spotter-dev/spotter/live"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/test/testenv"
)

// shadowRules are what the controller may do in shadow: read, and write what rule 13
// lists.
var shadowRules = []rbacv1.PolicyRule{
	{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"}},
	{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"create", "update", "patch"}},
	{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create", "update", "patch", "delete"}},
	{APIGroups: []string{"spotter.dev"}, Resources: []string{"capacitypools/status", "gpubudgets/status",
		"spotnodes/status"}, Verbs: []string{"update", "patch"}},
	{APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "update", "patch"}},
	{APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"tokenreviews"}, Verbs: []string{"create"}},
	{APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"subjectaccessreviews"}, Verbs: []string{"create"}},
}

// shadowWrites is rule 13 as the audit log shows it: resource, and for objects that
// others have too, whose they are.
var shadowWrites = regexp.MustCompile(`^(` + strings.Join([]string{
	`leases \S+/spotter-leader`,
	`configmaps \S+/(spotter-memory-\S*|spotter-ledger-\S*)`,
	`(capacitypools|gpubudgets|spotnodes)/status \S+`,
	`events \S+`,
	`(tokenreviews|subjectaccessreviews) \S*`,
}, "|") + `)$`)

// asProcess is the variable that makes this test binary run as the program itself, with its
// signals.
const asProcess = "SPOTTER_TEST_PROCESS"

func init() {
	if os.Getenv(asProcess) != "" {
		main()
	}
}

// A replica is a process of the controller, as a user runs it.
type replica struct {
	*testenv.Process
	metric string // where its metrics are
}

// A stage is a namespace with one pool, and what replicas are started with.
type stage struct {
	env        *testenv.Env
	namespace  string
	binary     string
	kubeconfig string
}

func newStage(t *testing.T, rules []rbacv1.PolicyRule) *stage {
	t.Helper()
	if testing.Short() {
		t.Skip("starts an API server and processes")
	}
	env := testenv.Start(t, testenv.Options{})
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{env: env, namespace: env.Namespace(t), binary: binary}
	s.kubeconfig = testenv.Kubeconfig(t, env.User(t, "spotter", rules...))
	pool := &v1alpha1.CapacityPool{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: v1alpha1.CapacityPoolSpec{
		Backend: v1alpha1.Backend{Karpenter: &v1alpha1.KarpenterBackend{NodeClassName: "default"}}, Mode: v1alpha1.ModeActive,
		Template: v1alpha1.NodeTemplate{Labels: map[string]string{"pool": "web"}},
		Markets:  v1alpha1.Markets{Regions: []string{"us-east-1"}, InstanceTypes: []string{"m5.large"}},
	}}
	createForTest(t, env, pool)
	return s
}

// createForTest makes an object on the control plane that tests share, until the test ends.
func createForTest(t *testing.T, env *testenv.Env, o client.Object) {
	t.Helper()
	if err := env.Client.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = env.Client.Delete(context.Background(), o) })
}

// configured writes a file for --config: the settings, each a line or a part of the file,
// over those that every test wants. A setting of the same name replaces one of these.
func configured(t testing.TB, settings ...string) string {
	t.Helper()
	common := []string{"policies: static:share=0.5", `health: {bindAddress: "0"}`, "logging: {format: text}", "panicDir: " + t.TempDir()}
	text := "apiVersion: " + config.APIVersion + "\nkind: " + config.Kind + "\n"
	for _, line := range common {
		name, _, _ := strings.Cut(line, " ")
		if !slices.ContainsFunc(settings, func(s string) bool { return strings.HasPrefix(s, name) }) {
			text += line + "\n"
		}
	}
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(text+strings.Join(settings, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// start starts a replica with settings, which ends with the test.
func (s *stage) start(t *testing.T, settings ...string) *replica {
	t.Helper()
	address := testenv.FreeAddress(t)
	at, metrics := "metrics: {bindAddress: '"+address+"', ", "secure: false}"
	settings = slices.DeleteFunc(slices.Clone(settings), func(s string) bool {
		given, is := strings.CutPrefix(s, "metrics: {")
		if is {
			metrics = given
		}
		return is
	})
	settings = append(settings, at+metrics)
	c := exec.Command(s.binary, "run", "--kubeconfig", s.kubeconfig, "--namespace", s.namespace, "--config", configured(t, settings...))
	c.Env = append(os.Environ(), asProcess+"=1", "GOMAXPROCS=1")
	return &replica{testenv.Run(t, c), "http://" + address + "/metrics"}
}

// leader returns who holds the lease, and who has written the head of the memory last,
// which each leader does at its first step and before it acts.
func (s *stage) leader(ctx context.Context) (holder, writer string, err error) {
	var lease coordinationv1.Lease
	if err := s.env.Client.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: live.LeaseName}, &lease); err != nil {
		return "", "", err
	}
	if lease.Spec.HolderIdentity != nil {
		holder = *lease.Spec.HolderIdentity
	}
	var object corev1.ConfigMap
	if err := s.env.Client.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: "spotter-memory-head"}, &object); err != nil {
		return holder, "", err
	}
	plain, err := gzip.NewReader(bytes.NewReader(object.BinaryData["memory"]))
	if err != nil {
		return holder, "", err
	}
	var head struct{ Writer string }
	err = json.NewDecoder(plain).Decode(&head)
	return holder, head.Writer, err
}

// stepping returns nil once the replica leads and has taken a step.
func (s *stage) stepping(ctx context.Context, r *replica) error {
	pid := fmt.Sprintf("_%d_", r.Cmd.Process.Pid)
	switch holder, writer, err := s.leader(ctx); {
	case err != nil:
		return err
	case !strings.Contains(holder, pid):
		return fmt.Errorf("%s leads", holder)
	case !strings.Contains(writer, pid):
		return fmt.Errorf("it has taken no step yet, and %s the last one", writer)
	}
	return nil
}

// leads waits until the replica leads and has taken a step.
func (s *stage) leads(t *testing.T, r *replica) {
	t.Helper()
	testenv.Eventually(t, "the replica leads and steps", func() error { return s.stepping(t.Context(), r) })
}

// TestRule13ShadowAudit runs the controller in shadow on a pool that asks to be
// active, and finds nothing in the audit log but what rule 13 lists.
func TestRule13ShadowAudit(t *testing.T) {
	s := newStage(t, shadowRules)
	mark := s.env.Mark()
	r := s.start(t, "mode: shadow")
	s.leads(t, r)
	testenv.Eventually(t, "the pool is ready in shadow", func() error {
		var p v1alpha1.CapacityPool
		if err := s.env.Client.Get(t.Context(), client.ObjectKey{Name: "web"}, &p); err != nil {
			return err
		}
		if p.Status.Mode != v1alpha1.ModeShadow || p.Status.LastDecisionID == "" {
			return fmt.Errorf("status %+v", p.Status)
		}
		return nil
	})
	testenv.Eventually(t, "the metrics tell of it", func() error { // what a step did is counted at its end
		body := get(t, r.metric)
		for _, want := range []string{`spotter_leader 1`, `spotter_active 0`,
			`spotter_plan_entries_total{kind="steer",outcome="shadow",pool="web"}`, `spotter_api_writes_total{verb="lease"}`} {
			if !strings.Contains(body, want) {
				return fmt.Errorf("they lack %s", want)
			}
		}
		return nil
	})
	if err := r.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-r.End; err != nil {
		t.Errorf("asked to end it says %v", err)
	}
	writes := s.env.Audit(t, mark, func(e testenv.AuditEvent) bool { return e.User == "spotter" && e.Writes() })
	seen := map[string]bool{}
	for _, e := range writes {
		what := e.Resource
		if e.Subresource != "" {
			what += "/" + e.Subresource
		}
		seen[what] = true
		what += " " + strings.TrimPrefix(e.Namespace+"/", "/") + e.Name
		if !shadowWrites.MatchString(what) {
			t.Errorf("in shadow it wrote %s: %v", what, e)
		}
	}
	for _, want := range []string{"leases", "configmaps", "capacitypools/status"} {
		if !seen[want] {
			t.Errorf("the audit log shows no write of %s, so that it proves nothing: %v", want, seen)
		}
	}
}

func get(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestRule14HandOver runs two replicas and measures how long it takes until the other
// leads and has taken its first step: after a kill, which it learns of when the lease
// runs out, and after SIGTERM, when the lease is given up before the process ends.
func TestRule14HandOver(t *testing.T) {
	s := newStage(t, shadowRules)
	a := s.start(t)
	s.leads(t, a)
	b := s.start(t)
	testenv.Eventually(t, "the second replica waits", func() error {
		if !strings.Contains(b.Said(), "lease") {
			return errors.New("it has not tried to lead")
		}
		return nil
	})
	begun := time.Now()
	if err := a.Cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-a.End
	s.leads(t, b)
	killed := time.Since(begun)
	c := s.start(t)
	testenv.Eventually(t, "the third replica waits", func() error {
		if !strings.Contains(c.Said(), "lease") {
			return errors.New("it has not tried to lead")
		}
		return nil
	})
	begun = time.Now()
	if err := b.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-b.End; err != nil {
		t.Errorf("asked to end it says %v", err)
	}
	if holder, _, err := s.leader(t.Context()); err != nil || strings.Contains(holder, fmt.Sprintf("_%d_", b.Cmd.Process.Pid)) {
		t.Errorf("after SIGTERM the lease is not given up: %q holds it, %v", holder, err)
	}
	s.leads(t, c)
	asked := time.Since(begun)
	t.Logf("hand-over: %v after a kill, %v after SIGTERM", killed.Round(10*time.Millisecond), asked.Round(10*time.Millisecond))
	if both := strings.Count(a.Said(), "msg=leading") + strings.Count(b.Said(), "msg=leading") +
		strings.Count(c.Said(), "msg=leading"); both != 3 {
		t.Errorf("three replicas led %d times in all", both)
	}
}
