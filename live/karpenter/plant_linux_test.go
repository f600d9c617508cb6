package karpenter

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/awslabs/operatorpkg/status"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	backendfake "github.com/spotter-dev/spotter/live/backend/fake"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/test/testenv"
)

// A plant is a backend next to a running Karpenter.
type plant struct {
	*Backend
	t       testing.TB
	env     *testenv.Env
	client  client.WithWatch
	heard   *backendfake.Sink
	refused string // file of the markets that refuse

	mu     sync.Mutex
	drifts []string        // NodeClaims that were ever drifted
	seen   map[string]bool // NodeClaims that ever were
}

// newPlant starts Karpenter and a manager with a backend, for this test.
func newPlant(t *testing.T) *plant {
	t.Helper()
	binary := filepath.Join("..", "..", "bin", "testenv", "karpenter-kwok")
	if dir := os.Getenv("KUBEBUILDER_ASSETS"); dir != "" {
		binary = filepath.Join(dir, "karpenter-kwok")
	}
	if _, err := os.Stat(binary); err != nil {
		if os.Getenv("SPOTTER_TESTENV") == "required" {
			t.Fatalf("%v; run make testenv", err)
		}
		t.Skipf("%v; run make testenv", err)
	}
	p := &plant{t: t, env: testenv.Start(t, testOptions()), heard: backendfake.NewSink(), seen: map[string]bool{}}
	p.refused = filepath.Join(t.TempDir(), "refused")
	var err error
	if p.client, err = client.NewWithWatch(p.env.Config, client.Options{Scheme: testScheme(t)}); err != nil {
		t.Fatal(err)
	}
	wipe(t, p.client)
	for _, o := range []client.Object{capacityPool(), nodeClass(true)} {
		if err := p.client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	p.startKarpenter(binary)
	p.startManager()
	p.watch()
	return p
}

// startKarpenter runs the binary until the test ends.
func (p *plant) startKarpenter(binary string) {
	p.t.Helper()
	out, err := os.Create(filepath.Join(p.t.TempDir(), "karpenter.log"))
	if err != nil {
		p.t.Fatal(err)
	}
	cmd := exec.Command(binary)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Env = append(os.Environ(), "KUBECONFIG="+p.env.Kubeconfig, "DISABLE_LEADER_ELECTION=true", "METRICS_PORT=0", "HEALTH_PROBE_PORT=0",
		"SYSTEM_NAMESPACE=kube-system", "BATCH_IDLE_DURATION=300ms", "BATCH_MAX_DURATION=2s", "REFUSED_MARKETS_FILE="+p.refused, "REFUSED_FOR=20s")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if p.t.Failed() {
			text, _ := os.ReadFile(out.Name())
			p.t.Logf("Karpenter said at the end:\n%s", text[max(0, len(text)-4000):])
		}
		out.Close()
		wipe(p.t, p.client)
	})
}

// startManager runs the backend's watches until the test ends.
func (p *plant) startManager() {
	p.t.Helper()
	mgr, err := manager.New(p.env.Config, manager.Options{Scheme: testScheme(p.t), Metrics: server.Options{BindAddress: "0"}})
	if err != nil {
		p.t.Fatal(err)
	}
	cfg := DefaultConfig()
	cfg.Clock, cfg.Regions, cfg.WriteEvery = clock.RealClock{}, []string{"test"}, time.Millisecond
	cfg.NarrowAfter = 4 * time.Second // Karpenter collects pods for 2 s here
	if p.Backend, err = New(cfg, mgr.GetClient(), mgr.GetAPIReader(), p.heard); err != nil {
		p.t.Fatal(err)
	}
	if err := p.SetupWithManager(mgr); err != nil {
		p.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	p.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			p.t.Errorf("the manager ended: %v", err)
		}
	})
}

// watch notes every NodeClaim that there ever is, and those that are ever drifted.
func (p *plant) watch() {
	p.t.Helper()
	w, err := p.client.Watch(p.t.Context(), &karpv1.NodeClaimList{})
	if err != nil {
		p.t.Fatal(err)
	}
	go func() {
		for e := range w.ResultChan() {
			c, ok := e.Object.(*karpv1.NodeClaim)
			if !ok {
				continue
			}
			p.mu.Lock()
			p.seen[c.Name] = true
			if claimIs(c, karpv1.ConditionTypeDrifted) && !slices.Contains(p.drifts, c.Name) {
				p.drifts = append(p.drifts, c.Name)
			}
			p.mu.Unlock()
		}
	}()
}

func (p *plant) claimsSeen() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.seen))
}

func (p *plant) drifted() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.drifts)
}

// snapshot returns a snapshot with the nodes that the backend has reported.
func (p *plant) snapshot() *policy.Snapshot {
	s := newSnapshot(policy.TimeOf(time.Now()))
	for _, m := range p.heard.All() {
		id := slices.IndexFunc(s.Markets, func(x policy.Market) bool { return x.Name == m.Market })
		if id < 0 || m.Phase == policy.NodeDeleting {
			continue
		}
		n := withNode(s, m.Name, policy.MarketID(id))
		s.Nodes[n].Phase, s.Nodes[n].Token = m.Phase, m.Token
	}
	return s
}

// steer steers until it is in force: other writers may come in between.
func (p *plant) steer(x policy.Steer) {
	p.t.Helper()
	testenv.Eventually(p.t, "the steer is in force", func() error { return p.Steer(p.t.Context(), p.snapshot(), &x) })
	testenv.Eventually(p.t, "Karpenter takes the NodePools", func() error {
		var all karpv1.NodePoolList
		if err := p.client.List(p.t.Context(), &all); err != nil {
			return err
		}
		for i := range all.Items {
			if !poolIs(&all.Items[i], "Ready") {
				return fmt.Errorf("NodePool %s is not ready", all.Items[i].Name)
			}
		}
		return nil
	})
}

func (p *plant) nodePool(name string) *karpv1.NodePool {
	p.t.Helper()
	n := &karpv1.NodePool{}
	if err := p.client.Get(p.t.Context(), client.ObjectKey{Name: name}, n); err != nil {
		p.t.Fatal(err)
	}
	return n
}

func poolIs(n *karpv1.NodePool, kind string) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c status.Condition) bool { return c.Type == kind && c.IsTrue() })
}

// deploy makes a Deployment whose pods request cpu.
func (p *plant) deploy(name, cpu string, replicas int32) {
	p.t.Helper()
	labels := map[string]string{"app": name}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					Containers: []corev1.Container{{Name: "c", Image: "i", Resources: corev1.ResourceRequirements{
						Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)},
					}}},
					NodeSelector: map[string]string{"team": "shop"},
				},
			},
		},
	}
	if err := p.client.Create(p.t.Context(), d); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = p.client.Delete(context.Background(), d) })
}

func (p *plant) scale(name string, replicas int32) {
	p.t.Helper()
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	patch := fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas)
	if err := p.client.Patch(p.t.Context(), d, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		p.t.Fatal(err)
	}
}

// running waits until n pods of a Deployment run, and returns them.
func (p *plant) running(name string, n int) []corev1.Pod {
	p.t.Helper()
	var running []corev1.Pod
	testenv.Eventually(p.t, fmt.Sprintf("%d pods of %s run", n, name), func() error {
		var pods corev1.PodList
		if err := p.client.List(p.t.Context(), &pods, client.InNamespace("default"), client.MatchingLabels{"app": name}); err != nil {
			return err
		}
		running = nil
		for _, x := range pods.Items {
			if x.Status.Phase == corev1.PodRunning && x.DeletionTimestamp.IsZero() {
				running = append(running, x)
			}
		}
		if len(running) != n || len(pods.Items) != n {
			return fmt.Errorf("%d of %d pods run", len(running), len(pods.Items))
		}
		return nil
	})
	return running
}

// vcpu returns what the nodes of each capacity type have, by what was reported to the sink.
func (p *plant) vcpu() (spot, onDemand int64) {
	s := p.snapshot()
	for i := range s.Nodes {
		if m := s.Nodes[i].Market; s.Markets[m].Capacity == policy.Spot {
			spot += s.Types[s.Markets[m].Type].VCPU
		} else {
			onDemand += s.Types[s.Markets[m].Type].VCPU
		}
	}
	return spot, onDemand
}

func (p *plant) node(name string) *corev1.Node {
	p.t.Helper()
	n := &corev1.Node{}
	if err := p.client.Get(p.t.Context(), client.ObjectKey{Name: name}, n); err != nil {
		p.t.Fatal(err)
	}
	return n
}

// quiet fails the test if f returns an error within d.
func quiet(t testing.TB, d time.Duration, f func() error) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		if err := f(); err != nil {
			t.Fatal(err)
		}
	}
}
