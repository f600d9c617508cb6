//go:build linux

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	runcmd "github.com/spotter-dev/spotter/cmd/spotter/internal/run"
	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/live/cluster"
	"github.com/spotter-dev/spotter/live/keep"
	livemarket "github.com/spotter-dev/spotter/live/market"
	"github.com/spotter-dev/spotter/models"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/driver"
	"github.com/spotter-dev/spotter/policy/record"
	"github.com/spotter-dev/spotter/policy/registry"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/scenarios/catalog"
)

// stepRounds is how many steps a run at scale takes without an API server.
const stepRounds = 200

// BenchmarkStep takes steps of a cluster of a thousand nodes and ten thousand pods, and of five
// times as many, without an API server: the test adds the objects that informers would deliver,
// as the cache holds them. A step is observing, forecasting, deciding, saving and recording.
// Three seconds pass between two steps, in which one pod in a hundred is replaced per minute, and
// each node renews its status every five minutes. Aims: 100 ms (p99) at a thousand nodes, and 1 s
// at five thousand. Meanwhile the nodes under notice are requested, which must not wait for a
// step.
//
// MB-live is the memory in use after a garbage collection, including the cache; MB-resident is
// the resident size of the process, including the code of the benchmark. With
// SPOTTER_PROFILE=DIR, CPU and heap profiles are written to DIR.
func BenchmarkStep(b *testing.B) {
	for _, nodes := range []int{1000, 5000} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			for b.Loop() {
				newStepper(b, nodes).measure(b)
			}
		})
	}
}

// A stepper is a controller without an API server, and the cluster that it sees.
type stepper struct {
	clock    *clocktesting.FakeClock
	observer *cluster.Observer
	driver   *driver.Driver
	record   *keep.Recorder
	informer *informertest.FakeInformers
	strip    func(*corev1.Pod) any
	held     toolscache.Indexer // as the cache holds pods

	nodes    int
	apps     []*appsv1.ReplicaSet
	sets     []*appsv1.DaemonSet
	pods     []*corev1.Pod
	made     int
	observed time.Duration
}

func newStepper(b *testing.B, nodes int) *stepper {
	b.Helper()
	now := time.Now()
	s := &stepper{nodes: nodes, clock: clocktesting.NewFakeClock(now),
		held: toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{})}
	scheme := k8sruntime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		b.Fatal(err)
	}
	s.informer = &informertest.FakeInformers{Scheme: scheme}
	for like, by := range cluster.CacheOptions().ByObject {
		if _, is := like.(*corev1.Pod); is {
			s.strip = func(p *corev1.Pod) any { x, _ := by.Transform(p); return x }
		}
	}
	feed, err := livemarket.NewFolder(livemarket.FolderConfig{Path: scaleTrace(b), Every: time.Hour})
	if err != nil {
		b.Fatal(err)
	}
	bc := livemarket.DefaultConfig()
	bc.Clock, bc.Feeds = s.clock, []livemarket.Feed{feed}
	book, err := livemarket.New(bc)
	if err != nil {
		b.Fatal(err)
	}
	if err := book.Refresh(b.Context()); err != nil {
		b.Fatal(err)
	}
	oc := cluster.DefaultConfig()
	oc.Clock = s.clock
	if s.observer, err = cluster.New(oc, book); err != nil {
		b.Fatal(err)
	}
	if err := s.observer.Follow(b.Context(), s.informer); err != nil {
		b.Fatal(err)
	}
	s.drive(b)
	s.fill(b)
	return s
}

// drive makes the driver.
func (s *stepper) drive(b *testing.B) {
	b.Helper()
	p, err := registry.New("portfolio", registry.Options{})
	if err != nil {
		b.Fatal(err)
	}
	closed, err := models.NewClosedForm(models.DefaultConfig())
	if err != nil {
		b.Fatal(err)
	}
	kc := keep.DefaultConfig()
	kc.Dir = filepath.Join(b.TempDir(), "record")
	r, err := keep.New(kc, record.Meta{Version: "bench", Policy: "portfolio", Scenario: runcmd.RecordScenario})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = r.Close(context.Background()) })
	s.record = r
	s.driver = driver.New(driver.Dependencies{Observer: s, Forecaster: closed, Actuator: s, Store: s, Recorder: r}, p, policy.Memory{})
}

// Observe implements driver.Observer.
func (s *stepper) Observe(ctx context.Context) (*policy.Snapshot, error) {
	begun := time.Now()
	defer func() { s.observed = time.Since(begun) }()
	return s.observer.Observe(ctx)
}

// The actuator does nothing, as in shadow.
func (s *stepper) Steer(context.Context, *policy.Snapshot, *policy.Steer) error   { return nil }
func (s *stepper) Launch(context.Context, *policy.Snapshot, *policy.Launch) error { return nil }
func (s *stepper) Drain(context.Context, *policy.Snapshot, *policy.Drain) error   { return nil }

// Save implements driver.Store.
func (s *stepper) Save(_ context.Context, m *policy.Memory) error {
	_, err := json.Marshal(m)
	return err
}

func (s *stepper) put(b *testing.B, o client.Object) {
	b.Helper()
	if o.GetUID() == "" {
		o.SetUID(types.UID(fmt.Sprintf("%T-%s-%s-%d", o, o.GetNamespace(), o.GetName(), s.made)))
	}
	i, err := s.informer.FakeInformerFor(b.Context(), o)
	if err != nil {
		b.Fatal(err)
	}
	i.Add(o)
}

// fill makes the cluster of [newScaleCluster].
func (s *stepper) fill(b *testing.B) {
	b.Helper()
	replicas := int32(scaleReplicas)
	most := intstr.FromString("10%")
	for i := range scalePools {
		s.put(b, &v1alpha1.CapacityPool{ObjectMeta: metav1.ObjectMeta{Name: scalePool(i), Generation: 1}, Spec: v1alpha1.CapacityPoolSpec{
			Backend: v1alpha1.Backend{Karpenter: &v1alpha1.KarpenterBackend{NodeClassName: "default"}}, Mode: v1alpha1.ModeActive,
			Template: v1alpha1.NodeTemplate{Labels: map[string]string{"pool": scalePool(i)}}, Markets: v1alpha1.Markets{Regions: []string{scaleRegion}},
			Disruption: v1alpha1.Disruption{Cooldown: &metav1.Duration{Duration: scaleCooldown}}}})
	}
	for i := range s.nodes * scalePerNode / scaleReplicas {
		name := fmt.Sprintf("app-%d", i)
		t := scaleTemplate(name, scalePool(i), 450+100*int64(i%4), 1024+256*int64(i%3))
		meta := metav1.ObjectMeta{Namespace: scaleSpace(i), Name: name, Labels: t.Labels}
		selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
		d := &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: selector, Template: t}}
		s.put(b, d)
		meta.Name += "-5d"
		meta.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))}
		r := &appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Replicas: &replicas, Selector: selector, Template: t}}
		s.put(b, r)
		s.apps = append(s.apps, r)
		if i%2 == 0 {
			s.put(b, &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: meta.Namespace, Name: name, Generation: 1},
				Spec: policyv1.PodDisruptionBudgetSpec{Selector: selector,
					MaxUnavailable: &most}, Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: 5}})
		}
	}
	for i := range scaleDaemons {
		name := fmt.Sprintf("agent-%d", i)
		t := scaleTemplate(name, "", 50, 64)
		t.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		d := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name}, Spec: appsv1.DaemonSetSpec{Template: t}}
		s.put(b, d)
		s.sets = append(s.sets, d)
	}
	for i := range s.nodes {
		s.put(b, s.node(b, i))
		for _, d := range s.sets {
			owner := metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("DaemonSet"))
			s.pod(b, d.Namespace, d.Name, s.nodeName(i), owner, &d.Spec.Template)
		}
	}
	of := s.nodes / scalePools
	for i := range len(s.apps) * scaleReplicas {
		app := i / scaleReplicas
		k := (app/scalePools*scaleReplicas + i%scaleReplicas) % of
		s.pods = append(s.pods, s.run(b, app, s.nodeName(k*scalePools+app%scalePools)))
	}
}

func (s *stepper) nodeName(i int) string {
	return fmt.Sprintf("ip-10-0-%d-%d.ec2.internal", i/256, i%256)
}

// run runs a pod of an app on a node.
func (s *stepper) run(b *testing.B, app int, node string) *corev1.Pod {
	r := s.apps[app]
	return s.pod(b, r.Namespace, r.Name, node, metav1.NewControllerRef(r, appsv1.SchemeGroupVersion.WithKind("ReplicaSet")), &r.Spec.Template)
}

// node returns a node as it comes over the wire, half of them spot.
func (s *stepper) node(b *testing.B, i int) *corev1.Node {
	b.Helper()
	kind, zone, pool, capacity := scaleTypes[i%len(scaleTypes)], scaleZones[i%len(scaleZones)], scalePool(i), "spot"
	nodePool := pool + "-spot"
	if i/scalePools%2 == 0 {
		capacity, nodePool = "on-demand", pool+"-od"
	}
	t, known := catalog.Lookup(catalog.AWS, kind)
	if !known {
		b.Fatal(kind)
	}
	at := metav1.NewTime(s.clock.Now().Add(-time.Hour).Truncate(time.Second))
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.nodeName(i), UID: types.UID(fmt.Sprintf("node-%032d", i)),
		CreationTimestamp: at, Labels: map[string]string{
			corev1.LabelInstanceTypeStable: kind, corev1.LabelTopologyZone: zone, corev1.LabelTopologyRegion: scaleRegion, corev1.LabelHostname: s.nodeName(i),
			corev1.LabelArchStable: "amd64", corev1.LabelOSStable: "linux", "karpenter.sh/capacity-type": capacity, "pool": pool,
			"karpenter.sh/nodepool": nodePool, "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true",
		}}, Spec: corev1.NodeSpec{ProviderID: fmt.Sprintf("aws:///%s/i-%d", zone, i)}}
	n.Status.Capacity, n.Status.Allocatable = list(t.Capacity), list(t.Allocatable)
	for _, kind := range []corev1.NodeConditionType{corev1.NodeMemoryPressure, corev1.NodeDiskPressure,
		corev1.NodePIDPressure, corev1.NodeReady} {
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: kind, Status: corev1.ConditionTrue,
			LastHeartbeatTime: at, LastTransitionTime: at})
	}
	return n
}

// pod puts in a running pod as the cache holds it: every field has come over the wire.
func (s *stepper) pod(b *testing.B, namespace, name, node string, owner *metav1.OwnerReference, t *corev1.PodTemplateSpec) *corev1.Pod {
	b.Helper()
	s.made++
	at := metav1.NewTime(s.clock.Now().Add(-time.Minute).Truncate(time.Second))
	p := &corev1.Pod{ObjectMeta: *t.ObjectMeta.DeepCopy(), Spec: *t.Spec.DeepCopy()}
	p.Namespace, p.Name, p.UID, p.OwnerReferences = namespace, fmt.Sprintf("%s-%05d", name,
		s.made), types.UID(fmt.Sprintf("pod-%032d", s.made)), []metav1.OwnerReference{*owner}
	p.CreationTimestamp, p.Labels["pod-template-hash"], p.Spec.NodeName = at, "5d", node
	p.Spec.ServiceAccountName, p.Spec.SchedulerName, p.Spec.DNSPolicy = "default", "default-scheduler", corev1.DNSClusterFirst
	p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: "node.kubernetes.io/not-ready",
		Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
		corev1.Toleration{Key: "node.kubernetes.io/unreachable", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute})
	p.Status.Phase, p.Status.StartTime = corev1.PodRunning, &at
	for _, kind := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodReadyToStartContainers,
		corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: at})
	}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", Ready: true, Image: p.Spec.Containers[0].Image,
		ContainerID: "containerd://" + strings.Repeat("0", 64)}}
	wire, err := p.Marshal()
	if err != nil {
		b.Fatal(err)
	}
	q := &corev1.Pod{}
	if err := q.Unmarshal(wire); err != nil {
		b.Fatal(err)
	}
	s.strip(q)
	if err := s.held.Add(q); err != nil {
		b.Fatal(err)
	}
	s.put(b, q)
	return q
}

// pass lets three seconds pass: some pods are replaced, and some nodes say that they live.
func (s *stepper) pass(b *testing.B, round int) {
	b.Helper()
	s.clock.Step(scaleEvery)
	if err := s.record.Flush(b.Context()); err != nil { // concurrently with the steps, and here they come faster
		b.Fatal(err)
	}
	for i := range max(1, s.nodes*scalePerNode/100/20) {
		k := (round*7919 + i*104729) % len(s.pods)
		old := s.pods[k]
		informer, err := s.informer.FakeInformerFor(b.Context(), old)
		if err != nil {
			b.Fatal(err)
		}
		informer.Delete(old)
		if err := s.held.Delete(old); err != nil {
			b.Fatal(err)
		}
		s.pods[k] = s.run(b, k/scaleReplicas, old.Spec.NodeName)
	}
	for i := range s.nodes / 100 {
		s.put(b, s.node(b, (round*s.nodes/100+i)%s.nodes))
	}
}

// measure takes steps and reports what they took.
func (s *stepper) measure(b *testing.B) {
	runcmd.CollectSooner()
	debug.FreeOSMemory()
	asked := make(chan time.Duration)
	ctx, stop := context.WithCancel(b.Context())
	go s.ask(ctx, asked)
	begun := time.Now()
	if err := s.observer.Await(b.Context()); err != nil { // as the controller does before its first step
		b.Fatal(err)
	}
	awaited := time.Since(begun)
	var took, observed, used []time.Duration
	stopProfile := startStepProfile(b, s.nodes)
	for round := range stepRounds {
		if round > 0 {
			s.pass(b, round)
		}
		begun := time.Now()
		cpu, _ := processorTime()
		if _, err := s.driver.Step(b.Context()); err != nil {
			b.Fatal(err)
		}
		took, observed = append(took, time.Since(begun)), append(observed, s.observed)
		after, _ := processorTime()
		used = append(used, after-cpu)
	}
	stopProfile()
	stop()
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(ms(<-asked), "notices-max-ms")
	b.ReportMetric(ms(awaited), "await-ms")
	b.ReportMetric(ms(took[0]), "first-ms")
	b.ReportMetric(ms(observed[0]), "first-observe-ms")
	slices.Sort(took)
	slices.Sort(observed)
	slices.Sort(used)
	b.ReportMetric(ms(took[stepRounds/2]), "p50-ms")
	b.ReportMetric(ms(took[stepRounds*99/100-1]), "p99-ms")
	b.ReportMetric(ms(used[stepRounds*99/100-1]), "cpu-p99-ms")
	b.ReportMetric(ms(observed[stepRounds/2]), "observe-p50-ms")
	status := usageOf(b, os.Getpid())
	b.ReportMetric(status.resident, "MB-resident")
	b.ReportMetric(status.mapped, "MB-mapped")
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(m.HeapAlloc)/1e6, "MB-live")
	runtime.KeepAlive(s)
}

// ask requests the nodes under notice until ctx ends, and sends how long the slowest request
// took.
func (s *stepper) ask(ctx context.Context, worst chan<- time.Duration) {
	most := time.Duration(0)
	s.observer.Notice(backend.Notice{Machine: s.nodeName(0), At: policy.TimeOf(s.clock.Now()),
		ReclaimAt: policy.TimeOf(s.clock.Now().Add(2 * time.Minute))})
	for ctx.Err() == nil {
		begun := time.Now()
		if _, err := s.observer.Notices(ctx); err == nil {
			most = max(most, time.Since(begun))
		}
		time.Sleep(2 * time.Millisecond)
	}
	worst <- most
}

// startStepProfile starts a profile if SPOTTER_PROFILE is set, and returns a function that ends
// it.
func startStepProfile(b *testing.B, nodes int) func() {
	dir := os.Getenv("SPOTTER_PROFILE")
	if dir == "" {
		return func() {}
	}
	create := func(kind string) *os.File {
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("step-%d.%s", nodes, kind)))
		if err != nil {
			b.Fatal(err)
		}
		return f
	}
	processor := create("profile")
	if err := pprof.StartCPUProfile(processor); err != nil {
		b.Fatal(err)
	}
	return func() {
		pprof.StopCPUProfile()
		heap := create("heap")
		runtime.GC()
		err := cmp.Or(pprof.Lookup("heap").WriteTo(heap, 0), heap.Close(), processor.Close())
		if err != nil {
			b.Fatal(err)
		}
	}
}
