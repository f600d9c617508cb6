package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/internal/objects"
	"github.com/spotter-dev/spotter/internal/objects/objectstest"
	"github.com/spotter-dev/spotter/test/testenv"
)

// evaluatorRules are those of the Role that the chart makes for who compares in a cluster.
var evaluatorRules = []rbacv1.PolicyRule{
	{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create", "delete", "get"}},
	{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}},
	{APIGroups: []string{"batch"}, Resources: []string{"jobs"}, Verbs: []string{"create", "list"}},
}

// A damager changes a byte of an object when it is put for the first time.
type damager struct {
	mu   sync.Mutex
	part string
	done bool
}

func (d *damager) around(inner http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.mu.Lock()
		hit := !d.done && r.Method == http.MethodPut && strings.Contains(r.URL.Path, d.part)
		d.done = d.done || hit
		d.mu.Unlock()
		if hit {
			body, err := io.ReadAll(r.Body)
			if err == nil && len(body) > 2000 {
				body[2000] ^= 4
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		inner.ServeHTTP(w, r)
	})
}

// TestShardsOnKubernetes makes a comparison as an Indexed Job of 40 on the real control plane,
// with workers as processes: three are killed, a node is drained, a part arrives damaged, and
// who follows it goes away and comes back. What comes of it is what one call makes, to the
// byte, and nothing is left.
func TestShardsOnKubernetes(t *testing.T) {
	if os.Getenv(wanted) == "" {
		t.Skipf("it takes minutes: set %s, or run make e2e", wanted)
	}
	env := testenv.New(t, testenv.Options{ControllerManager: true, Scheduler: true})
	ns, dir, binary := env.Namespace(t), t.TempDir(), program(t)
	damaged := &damager{part: "part-00007-of-00040"}
	url := objectstest.Serve(t, damaged.around, "evals")
	objectstest.Use(t, url)
	store := objectstest.Env(url)
	delete(store, "AWS_ENDPOINT_URL_S3") // which the Job is to know from who began it
	var secrets []string
	for name, value := range store {
		secrets = append(secrets, name+"="+value)
	}
	workers := newAgent(t, env.Client, binary, secrets, "3", "worker-a", "worker-b")
	scenario, err := os.ReadFile(filepath.Join("..", "..", "scenarios", "library", "tiny.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	shop := strings.Replace(string(scenario), "duration: 168h", "duration: 48h", 1)
	if err := os.WriteFile(filepath.Join(dir, "shop.yaml"), []byte(shop), 0o600); err != nil || shop == string(scenario) {
		t.Fatalf("%v, or the scenario has another duration", err)
	}
	kubeconfig := testenv.Kubeconfig(t, env.ServiceAccount(t, ns, "evaluator", evaluatorRules...))
	spotter := func(args ...string) *testenv.Process {
		cmd := exec.Command(binary, args...)
		cmd.Dir = dir
		return testenv.Run(t, cmd)
	}
	outputs := func(who string) (flags []string) {
		for _, kind := range []string{"json", "parquet", "txt"} {
			flags = append(flags, "--out", who+"."+kind)
		}
		return append(flags, "--report", who+".html")
	}
	plan := []string{"eval", "shop.yaml", "--policies", "static,spot", "--baseline", "static", "--windows", "1",
		"--seeds", "20", "--gate", "spot:net_savings_pct.median >= 99"}
	local := spotter(append(plan, outputs("local")...)...)
	<-local.End
	if code := local.Cmd.ProcessState.ExitCode(); code != 1 {
		t.Fatalf("the local run ended with %d:\n%s", code, local.Said())
	}

	cluster := []string{"--kubeconfig", kubeconfig, "--namespace", ns}
	workers.kill(3)
	first := spotter(append(append(append(plan, "--on", "kubernetes", "--parts", "s3://evals/main", "--image", "spotter",
		"--parallelism", "4"), cluster...), outputs("merged")...)...)
	var objs objects.Store
	testenv.Eventually(t, "there are some parts", func() error {
		all, err := objs.List(t.Context(), "s3://evals/main")
		if err == nil && len(all) < 8 {
			err = fmt.Errorf("%d parts: %s", len(all), first.Said())
		}
		return err
	})
	if err := first.Cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	<-first.End
	name := regexp.MustCompile(`--attach (spotter-eval-[0-9a-f]+)`).FindStringSubmatch(first.Said())
	if code := first.Cmd.ProcessState.ExitCode(); code != 3 || name == nil {
		t.Fatalf("who was stopped ended with %d:\n%s", code, first.Said())
	}
	drainWorker(t, env.Client, workers, "worker-b")

	second := spotter(append(append([]string{"eval", "--attach", name[1]}, cluster...), outputs("merged")...)...)
	<-second.End
	if code := second.Cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(first.Said()+second.Said(),
		"part-00007-of-00040.parquet: it is damaged") {
		t.Errorf("who came back ended with %d:\n%s", code, second.Said())
	}
	for _, kind := range []string{"json", "parquet", "txt", "html"} {
		want, errWant := os.ReadFile(filepath.Join(dir, "local."+kind))
		got, errGot := os.ReadFile(filepath.Join(dir, "merged."+kind))
		if errWant != nil || errGot != nil || !bytes.Equal(want, got) {
			t.Errorf("the merged %s is not the local one: %d and %d bytes, %v, %v", kind, len(got), len(want), errGot, errWant)
		}
	}
	if killed, disrupted := workers.counts(); killed != 3 || disrupted == 0 {
		t.Errorf("%d workers were killed and %d evicted", killed, disrupted)
	}
	testenv.Eventually(t, "nothing is left", func() error {
		all, err := objs.List(t.Context(), "s3://evals/main")
		var jobs batchv1.JobList
		if err == nil {
			err = env.Client.List(t.Context(), &jobs, client.InNamespace(ns))
		}
		if err == nil && len(all)+len(jobs.Items) > 0 {
			err = fmt.Errorf("%d objects and %d Jobs", len(all), len(jobs.Items))
		}
		return err
	})
}

// drainWorker evicts what runs on a node, until a worker is taken from its work, and cordons it.
func drainWorker(t *testing.T, c client.Client, a *agent, node string) {
	t.Helper()
	testenv.Eventually(t, "a worker is evicted", func() error {
		pods, err := a.busy(node)
		if err != nil {
			return err
		}
		for _, p := range pods {
			if err := c.SubResource("eviction").Create(t.Context(), p, &policyv1.Eviction{}); client.IgnoreNotFound(err) != nil {
				return err
			}
		}
		if _, disrupted := a.counts(); disrupted == 0 {
			return fmt.Errorf("all of %d pods had ended their work", len(pods))
		}
		return nil
	})
	n := &corev1.Node{}
	n.Name = node
	if err := c.Patch(t.Context(), n, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"unschedulable":true}}`))); err != nil {
		t.Fatal(err)
	}
}
