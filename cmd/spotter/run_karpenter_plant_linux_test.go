package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kwokapis "sigs.k8s.io/karpenter/kwok/apis"
	karpenterapis "sigs.k8s.io/karpenter/pkg/apis"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/live/karpenter"
	"github.com/spotter-dev/spotter/live/rights"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/test/testenv"
)

// karpenterRights are those of a controller that acts on Karpenter.
var karpenterRights = rights.Setup{Active: true, Parts: []rights.Part{rights.LeaderElection, rights.Karpenter}}

// A plant is a cluster in which Karpenter makes the nodes and `spotter run` decides.
type plant struct {
	stage
	client  client.WithWatch
	trace   string
	record  string
	refused string // file of the markets that refuse
	types   string // file of what Karpenter's provider sells

	karpenter *exec.Cmd
	access    *rest.Config // of the controller

	// meanwhile is called while something is waited for; it may be nil.
	meanwhile func(*testing.T)

	// lead is the controller that runs; nil when none is to.
	lead *replica

	mu     sync.Mutex
	broken []string         // the disruption budgets that were seen broken, with how
	wanted map[string]int32 // the number of pods that each workload must have
	whole  map[string]bool  // the workloads that had enough pods since they were to have as many
	twice  []string         // launches that were seen twice
}

func newPlant(t *testing.T) *plant {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	options := testenv.Options{ControllerManager: true, Scheduler: true, Kwok: true, PodDelete: 300 * time.Millisecond}
	// As OpenShift has it: who makes an object that its owner has to wait for must be let
	// write the owner's finalizers.
	options.Args = map[string][]string{testenv.APIServer: {"enable-admission-plugins=OwnerReferencesPermissionEnforcement"}}
	options.CRDs = append(slices.Clone(karpenterapis.CRDs), kwokapis.CRDs...)
	env := testenv.New(t, options)
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme), karpenter.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	p := &plant{stage: stage{env: env, namespace: env.Namespace(t), binary: binary},
		record: filepath.Join(t.TempDir(), "steps"), wanted: map[string]int32{},
		whole: map[string]bool{}, refused: filepath.Join(t.TempDir(), "refused")}
	if p.client, err = client.NewWithWatch(env.Config, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	p.access = bind(t, env, "spotter", p.namespace, karpenterRights)
	p.kubeconfig = testenv.Kubeconfig(t, p.access)
	p.importPrices(t)
	p.makeClass(t)
	p.types = writeTypes(t)
	p.startKarpenter(t)
	p.watchBudgets(t)
	p.watchLaunches(t)
	return p
}

// spotter runs the program to its end and returns what it says.
func (p *plant) spotter(t *testing.T, args ...string) string {
	t.Helper()
	c := exec.Command(p.binary, args...)
	c.Env = append(os.Environ(), asProcess+"=1")
	var said bytes.Buffer
	c.Stdout, c.Stderr = &said, &said
	if err := c.Run(); err != nil {
		t.Fatalf("spotter %s: %v\n%s", strings.Join(args, " "), err, said.String())
	}
	return said.String()
}

// makeClass makes the class of Karpenter's nodes.
func (p *plant) makeClass(t *testing.T) {
	t.Helper()
	class := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{map[string]any{
		"type": "Ready", "status": "True", "reason": "Test", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
	}}}}}
	class.SetGroupVersionKind(schema.GroupVersionKind{Group: "karpenter.kwok.sh", Version: "v1alpha1", Kind: "KWOKNodeClass"})
	class.SetName("default")
	if err := p.client.Create(t.Context(), class); err != nil {
		t.Fatal(err)
	}
}

// startKarpenter runs Karpenter, with the test's own instance types and prices, until the test
// ends.
func (p *plant) startKarpenter(t *testing.T) {
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
	log, err := os.Create(filepath.Join(t.TempDir(), "karpenter.log"))
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(binary)
	c.Stdout, c.Stderr = log, log
	c.Env = append(os.Environ(), "KUBECONFIG="+p.env.Kubeconfig, "DISABLE_LEADER_ELECTION=true", "METRICS_PORT=0", "HEALTH_PROBE_PORT=0",
		"SYSTEM_NAMESPACE=kube-system", "BATCH_IDLE_DURATION=300ms", "BATCH_MAX_DURATION=2s", "INSTANCE_TYPES_FILE_PATH="+p.types,
		"REFUSED_MARKETS_FILE="+p.refused, "REFUSED_FOR=20s")
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	p.karpenter = c
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("Karpenter said at the end:\n%s", text[max(0, len(text)-3000):])
		}
		log.Close()
	})
}

// expect sets the number of pods that a workload must have from now on.
func (p *plant) expect(workload string, pods int32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.wanted[workload] != pods {
		p.wanted[workload], p.whole[workload] = pods, false
	}
}

// watchBudgets records every disruption budget that has fewer healthy pods than it requires after
// it once had enough. The status of a budget is ignored while it counts another number of pods
// than the workload must have.
func (p *plant) watchBudgets(t *testing.T) {
	t.Helper()
	w, err := p.client.Watch(t.Context(), &policyv1.PodDisruptionBudgetList{})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for e := range w.ResultChan() {
			b, ok := e.Object.(*policyv1.PodDisruptionBudget)
			if !ok || b.Status.ObservedGeneration != b.Generation {
				continue
			}
			p.mu.Lock()
			switch {
			case b.Status.ExpectedPods != p.wanted[b.Name]:
			case b.Status.CurrentHealthy >= b.Status.DesiredHealthy:
				p.whole[b.Name] = true
			case p.whole[b.Name]:
				p.broken = append(p.broken, fmt.Sprintf("%s has %d healthy pods of %d", b.Name, b.Status.CurrentHealthy, b.Status.DesiredHealthy))
			}
			p.mu.Unlock()
		}
	}()
}

// watchLaunches records every launch of Spotter that resulted in two NodeClaims, and every node
// that launches of two decisions replace at the same time.
func (p *plant) watchLaunches(t *testing.T) {
	t.Helper()
	w, err := p.client.Watch(t.Context(), &karpv1.NodeClaimList{})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		made := map[string]types.UID{}           // by token
		coming := map[string]*karpv1.NodeClaim{} // by name
		for e := range w.ResultChan() {
			c, ok := e.Object.(*karpv1.NodeClaim)
			if !ok || c.Annotations[karpenter.TokenAnnotation] == "" {
				continue
			}
			token := c.Annotations[karpenter.TokenAnnotation]
			p.mu.Lock()
			if was, there := made[token]; there && was != c.UID {
				p.twice = append(p.twice, "two NodeClaims came of the launch "+token)
			}
			made[token] = c.UID
			delete(coming, c.Name)
			if e.Type != watch.Deleted && c.DeletionTimestamp == nil && c.Annotations[karpenter.ProtectedAnnotation] != "" {
				for _, x := range coming {
					if node := x.Annotations[karpenter.ReplacesAnnotation]; node != "" &&
						node == c.Annotations[karpenter.ReplacesAnnotation] && decision(x) != decision(c) {
						p.twice = append(p.twice, fmt.Sprintf("%s and %s both come for node %s", x.Name, c.Name, node))
					}
				}
				coming[c.Name] = c
			}
			p.mu.Unlock()
		}
	}()
}

// decision returns that part of the token of a launch that those of one decision for
// one node share.
func decision(c *karpv1.NodeClaim) string {
	token := c.Annotations[karpenter.TokenAnnotation]
	return token[:max(0, strings.LastIndexByte(token, '-'))]
}

// pool makes a CapacityPool for nodes of the given types with the label team.
func (p *plant) pool(t *testing.T, name string, sold []string, policyName string, parameters map[string]string) {
	t.Helper()
	half, soon, cooldown := intstr.FromString("50%"), metav1.Duration{}, metav1.Duration{Duration: 5 * time.Second}
	if err := p.client.Create(t.Context(), &v1alpha1.CapacityPool{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.CapacityPoolSpec{
			Backend:  v1alpha1.Backend{Karpenter: &v1alpha1.KarpenterBackend{NodeClassName: "default"}},
			Markets:  v1alpha1.Markets{Regions: []string{"us-east-1"}, InstanceTypes: sold},
			Template: v1alpha1.NodeTemplate{Labels: map[string]string{"team": name}},
			Policy:   &v1alpha1.PolicyRef{Name: policyName, Parameters: parameters},
			Disruption: v1alpha1.Disruption{Budget: &half, ConsolidateAfter: &soon,
				ConsolidationPolicy: v1alpha1.ConsolidateWhenEmpty, Cooldown: &cooldown},
			Mode: v1alpha1.ModeActive,
		},
	}); err != nil {
		t.Fatal(err)
	}
}

// deploy makes a Deployment of pods that each fill a node of two vCPUs, and a
// disruption budget that lets one of them go at a time.
func (p *plant) deploy(t *testing.T, name string, replicas int32, annotations map[string]string) {
	t.Helper()
	labels := map[string]string{"app": name}
	one := intstr.FromInt32(1)
	p.expect(name, replicas)
	for _, o := range []client.Object{
		&policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
			Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &one, Selector: &metav1.LabelSelector{MatchLabels: labels}},
		},
		&appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
			Spec: appsv1.DeploymentSpec{
				Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: annotations},
					Spec: corev1.PodSpec{
						NodeSelector: map[string]string{"team": name},
						Containers: []corev1.Container{{Name: "c", Image: "i", Resources: corev1.ResourceRequirements{
							Requests: corev1.ResourceList{"cpu": resource.MustParse("1500m"), "memory": resource.MustParse("1Gi")},
						}}},
					},
				},
			},
		},
	} {
		if err := p.client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

// within waits until f returns nil, and keeps a controller running meanwhile.
func (p *plant) within(t *testing.T, limit time.Duration, what string, f func() error) {
	t.Helper()
	err := f()
	for end := time.Now().Add(limit); err != nil && time.Now().Before(end); err = f() {
		time.Sleep(100 * time.Millisecond)
		if p.meanwhile != nil {
			p.meanwhile(t)
		}
		p.revive(t)
	}
	if err != nil {
		t.Fatalf("waited %v in vain until %s: %v", limit, what, err)
	}
}

// revive starts the controller again, as Kubernetes does, where it ended since the
// machine was too busy for it to renew its lease in time.
func (p *plant) revive(t *testing.T) {
	t.Helper()
	if p.lead == nil {
		return
	}
	select {
	case err := <-p.lead.End:
		if !strings.Contains(p.lead.Said(), "leader election lost") {
			t.Fatalf("the controller ended by itself: %v", err)
		}
		t.Log("the controller lost its lease, since the machine is busy, and is started again")
		p.run(t)
	default:
	}
}

// run starts `spotter run` as a user does who wants it to act.
func (p *plant) run(t *testing.T) {
	t.Helper()
	p.lead = p.start(t, "policies: manifest", "mode: active", "prices: {trace: "+p.trace+", regions: [us-east-1]}",
		"recording: {dir: "+p.record+"}", "stepInterval: 5s")
}

// stop ends the controller by a signal.
func (p *plant) stop(t *testing.T, by syscall.Signal) {
	t.Helper()
	r := p.lead
	p.lead = nil
	if err := r.Cmd.Process.Signal(by); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	if err := <-r.End; err != nil && by == syscall.SIGTERM && !strings.Contains(r.Said(), "leader election lost") {
		t.Errorf("asked to end it says %v", err)
	}
}

// stepped waits until the controller leads and has taken a step.
func (p *plant) stepped(t *testing.T) {
	t.Helper()
	p.within(t, patience, "the controller leads and steps", func() error { return p.stepping(t.Context(), p.lead) })
}

// takeOver starts another controller, which within a minute of its first step has
// settled the drains that were begun before.
func (p *plant) takeOver(t *testing.T, begun map[string]string) {
	t.Helper()
	p.run(t)
	p.stepped(t)
	p.settled(t, begun, time.Now().Add(time.Minute))
}

// patience is how long a test waits for what takes seconds on an idle machine.
const patience = 4 * time.Minute

// running waits until n pods run, each ready.
func (p *plant) running(t *testing.T, name string, n int) {
	t.Helper()
	p.within(t, patience, fmt.Sprintf("%d pods of %s run", n, name), func() error {
		var pods corev1.PodList
		if err := p.client.List(t.Context(), &pods, client.InNamespace("default"), client.MatchingLabels{"app": name}); err != nil {
			return err
		}
		run := 0
		for i := range pods.Items {
			if x := &pods.Items[i]; x.Status.Phase == corev1.PodRunning && x.DeletionTimestamp.IsZero() {
				run++
			}
		}
		if run != n {
			return fmt.Errorf("%d of %d run", run, len(pods.Items))
		}
		return nil
	})
}

// nodes returns the nodes of a pool by capacity type, those that are going left out.
func (p *plant) nodes(ctx context.Context, pool string) (map[string][]corev1.Node, error) {
	var all corev1.NodeList
	if err := p.client.List(ctx, &all, client.MatchingLabels{"team": pool}); err != nil {
		return nil, err
	}
	by := map[string][]corev1.Node{}
	for _, n := range all.Items {
		if n.DeletionTimestamp.IsZero() {
			kind := n.Labels[karpv1.CapacityTypeLabelKey]
			by[kind] = append(by[kind], n)
		}
	}
	return by, nil
}

// kubectl returns what kubectl says.
func (p *plant) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := p.env.Kubectl(args...)
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}
