package whatif

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	backend "github.com/spotter-dev/spotter/live/karpenter"
	"github.com/spotter-dev/spotter/test/karpenter"
	"github.com/spotter-dev/spotter/test/testenv"
)

// A variant is a stack and the one setting in which its NodePool differs from the first's.
type variant struct {
	name string

	// set is that setting as `spotter whatif` takes it; empty for the first.
	set string

	// change makes it in the NodePool.
	change func(d *karpv1.Disruption)
}

// pool is the name of the NodePool.
const pool = "general"

var variants = []variant{
	{name: "base", change: func(*karpv1.Disruption) {}},
	{name: "later", set: "nodepool/" + pool + ".spec.disruption.consolidateAfter=10m", change: func(d *karpv1.Disruption) {
		d.ConsolidateAfter = karpv1.MustParseNillableDuration("10m")
	}},
	{name: "balanced", set: "nodepool/" + pool + ".spec.disruption.consolidationPolicy=Balanced", change: func(d *karpv1.Disruption) {
		d.ConsolidationPolicy = karpv1.ConsolidationPolicyBalanced
	}},
	{name: "narrow", set: "nodepool/" + pool + `.spec.disruption.budgets=[{"nodes":"1"}]`, change: func(d *karpv1.Disruption) {
		d.Budgets = []karpv1.Budget{{Nodes: "1"}}
	}},
}

// A stack is a running cluster with its Karpenter and kube-state-metrics.
type stack struct {
	variant
	dir       string // where it leaves its files
	env       *testenv.Env
	client    client.WithWatch
	state     string // address of the metrics of kube-state-metrics
	karpenter int    // port of those of Karpenter
}

// Nodes join as on EC2.
const (
	joinLeast, joinMost = 30 * time.Second, 60 * time.Second
	podDelete           = 5 * time.Second
)

// startStack brings up a stack in a folder of its own.
func startStack(t *testing.T, v variant, folder string, m *market) *stack {
	t.Helper()
	s := &stack{variant: v, dir: filepath.Join(folder, v.name), state: testenv.FreeAddress(t), karpenter: port(t, testenv.FreeAddress(t))}
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s.env = testenv.New(t, testenv.Options{ControllerManager: true, Scheduler: true, Kwok: true, PodDelete: podDelete, CRDs: karpenter.CRDs()})
	if err := errors.Join(os.Link(filepath.Join(s.env.Dir, "audit.log"), s.file("audit.log")),
		copyFile(s.file("kubeconfig"), s.env.Kubeconfig)); err != nil {
		t.Fatal(err) // the folder of the cluster is removed with it
	}
	scheme := runtime.NewScheme()
	err := errors.Join(clientgoscheme.AddToScheme(scheme), backend.AddToScheme(scheme))
	if err != nil {
		t.Fatal(err)
	}
	if s.client, err = client.NewWithWatch(s.env.Config, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	karpenter.Start(t, s.env, s.client, karpenter.Options{Dir: s.dir, Types: m.types, Prices: m.prices,
		JoinMin: joinLeast, JoinMax: joinMost, RefusedFor: time.Minute, MetricsPort: s.karpenter})
	s.startState(t)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	for _, o := range []client.Object{ns, daemon(), s.nodePool(m)} {
		if err := s.client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	testenv.Eventually(t, "the NodePool is ready", func() error {
		var p karpv1.NodePool
		if err := s.client.Get(t.Context(), client.ObjectKey{Name: pool}, &p); err != nil {
			return err
		}
		if !p.StatusConditions().Root().IsTrue() {
			return errors.New("it is not")
		}
		return nil
	})
	return s
}

func (s *stack) file(name string) string { return filepath.Join(s.dir, name) }

// startState runs kube-state-metrics.
func (s *stack) startState(t *testing.T) {
	t.Helper()
	const host = "127.0.0.1"
	testenv.Run(t, exec.Command(binary(t, "kube-state-metrics"), "--kubeconfig="+s.env.Kubeconfig, "--host="+host,
		fmt.Sprintf("--port=%d", port(t, s.state)),
		"--telemetry-host="+host, fmt.Sprintf("--telemetry-port=%d", port(t, testenv.FreeAddress(t))),
		"--resources=nodes,pods,deployments,replicasets,statefulsets,daemonsets,jobs,cronjobs,poddisruptionbudgets",
		"--metric-labels-allowlist=nodes=[node.kubernetes.io/instance-type,topology.kubernetes.io/zone,topology.kubernetes.io/region,karpenter.sh/capacity-type,karpenter.sh/nodepool]"))
}

// port returns the port of an address.
func port(t *testing.T, address string) int {
	t.Helper()
	_, text, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// binary returns the path of one of the binaries of make testenv.
func binary(t *testing.T, name string) string {
	t.Helper()
	dir := os.Getenv("KUBEBUILDER_ASSETS")
	if dir == "" {
		dir = filepath.Join("..", "..", "bin", "testenv")
	}
	path, err := filepath.Abs(filepath.Join(dir, name))
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Fatalf("%v; run make testenv", err)
	}
	return path
}

// nodePool returns the NodePool of the stack.
func (s *stack) nodePool(m *market) *karpv1.NodePool {
	n := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: pool}}
	n.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass",
		Name: karpenter.NodeClass}
	n.Spec.Template.Spec.ExpireAfter = karpv1.MustParseNillableDuration("Never")
	n.Spec.Template.Spec.Requirements = []karpv1.NodeSelectorRequirementWithMinValues{
		{Key: karpv1.CapacityTypeLabelKey, Operator: corev1.NodeSelectorOpIn, Values: []string{karpv1.CapacityTypeOnDemand}},
		{Key: corev1.LabelInstanceTypeStable, Operator: corev1.NodeSelectorOpIn, Values: m.names},
		{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: m.zones},
	}
	n.Spec.Disruption = karpv1.Disruption{
		ConsolidationPolicy: karpv1.ConsolidationPolicyWhenEmptyOrUnderutilized,
		ConsolidateAfter:    karpv1.MustParseNillableDuration("1m"),
		Budgets:             []karpv1.Budget{{Nodes: "100%"}},
	}
	s.change(&n.Spec.Disruption)
	return n
}

// play makes the changes of the script, each at its time from begin on, for a time. What
// was played is written to a file.
func (s *stack) play(ctx context.Context, t *testing.T, all []step, begin time.Time, for_ time.Duration) {
	t.Helper()
	there := map[string]bool{}
	latest := time.Duration(0)
	for i, x := range all {
		if x.at >= for_ {
			break
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Until(begin.Add(x.at))):
		}
		if err := s.do(ctx, &x, i, there); err != nil && ctx.Err() == nil {
			t.Errorf("%s: %s %s at %v: %v", s.name, x.do, x.name, x.at, err)
		}
		latest = max(latest, time.Since(begin.Add(x.at)))
	}
	select {
	case <-ctx.Done():
	case <-time.After(time.Until(begin.Add(for_))):
	}
	t.Logf("%s: the last of its changes came up to %v late", s.name, latest.Round(time.Millisecond))
}

// do makes one change.
func (s *stack) do(ctx context.Context, x *step, i int, there map[string]bool) error {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: x.name}}
	switch x.do {
	case submit:
		return s.client.Create(ctx, x.job())
	case remove:
		return s.client.Delete(ctx, d, client.PropagationPolicy(metav1.DeletePropagationBackground))
	case roll:
		if !there[x.name] {
			return nil
		}
		return s.client.Patch(ctx, d, client.RawPatch(types.StrategicMergePatchType,
			fmt.Appendf(nil, `{"spec":{"template":{"metadata":{"labels":{"version":"v%d"}}}}}`, i)))
	}
	if there[x.name] {
		return s.client.Patch(ctx, d, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, x.n)))
	}
	there[x.name] = true
	for k := range apps {
		if apps[k].name != x.name {
			continue
		}
		for _, o := range apps[k].objects(x.n) {
			if err := s.client.Create(ctx, o); err != nil {
				return err
			}
		}
	}
	return nil
}

func copyFile(to, from string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o600)
}
