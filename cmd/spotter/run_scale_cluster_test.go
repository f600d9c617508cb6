//go:build linux

package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kwokapis "sigs.k8s.io/karpenter/kwok/apis"
	"sigs.k8s.io/karpenter/pkg/apis"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/live/karpenter"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/scenarios/catalog"
	"github.com/spotter-dev/spotter/scenarios/trace"
	"github.com/spotter-dev/spotter/test/testenv"
)

// What such a cluster is made of, whatever its size.
const (
	scalePools    = 4
	scaleSpaces   = 10
	scaleReplicas = 50 // pods of each Deployment
	scalePerNode  = 8  // pods of Deployments on each node
	scaleDaemons  = 2  // DaemonSets, with a pod on each node
	scaleRegion   = "us-east-1"

	// scaleCooldown keeps pools at work: ten minutes and more pass else from one round of
	// moves to the next.
	scaleCooldown = 30 * time.Second
)

var (
	scaleZones = []string{"us-east-1a", "us-east-1b", "us-east-1c"}
	scaleTypes = []string{"m5.2xlarge", "m5a.2xlarge", "m6i.2xlarge", "c5.2xlarge", "c6i.2xlarge", "r5.2xlarge", "r6i.2xlarge"}
)

// A scaleCluster has many nodes, and ten pods to a node. The test writes nodes, pods and
// NodeClaims as kubelets and Karpenter would, which are too slow for that many; the controllers
// that bind pods and maintain disruption budgets are real.
type scaleCluster struct {
	env    *testenv.Env
	config *rest.Config
	client client.Client
	size
	podCPU int64 // of the least pod, in milli-CPUs

	apps []*appsv1.ReplicaSet // by number; their pods carry the number
	sets []*appsv1.DaemonSet
}

// A size is how large a cluster is. perNode are its pods of Deployments on each node.
type size struct {
	nodes, perNode int
	spot           bool // all nodes are, else every second
	budgets        int  // GPUBudgets, all in one namespace
}

// allRules let a user do everything.
var allRules = rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}

// newScaleCluster starts a cluster and fills it.
func newScaleCluster(b *testing.B, of size) *scaleCluster {
	b.Helper()
	c := &scaleCluster{size: of, podCPU: int64(450 * scalePerNode / of.perNode), env: testenv.New(b, testenv.Options{
		ControllerManager: true, Scheduler: true, CRDs: append(slices.Clone(apis.CRDs), kwokapis.CRDs...),
		Args: map[string][]string{
			testenv.ControllerManager: {"--controllers=disruption-controller,serviceaccount-controller"},
			testenv.Etcd:              {"--quota-backend-bytes=8000000000"},
		},
	})}
	if err := karpenter.AddToScheme(c.env.Scheme); err != nil {
		b.Fatal(err)
	}
	c.config = c.env.User(b, "system:kwok", allRules) // of whose writes the audit log keeps little
	c.config.QPS = -1
	var err error
	if c.client, err = client.New(c.config, client.Options{Scheme: c.env.Scheme}); err != nil {
		b.Fatal(err)
	}
	begun := time.Now()
	for _, step := range []func(context.Context) error{c.makeSpaces, c.makePools, c.makeApps, c.makeNodes, c.makePods, c.makeBudgets} {
		if err := step(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	b.Logf("%d nodes and %d pods made in %v", c.nodes, c.nodes*(c.perNode+scaleDaemons), time.Since(begun).Round(time.Second))
	return c
}

// many calls f with 0…n-1, several at a time, and returns the first error.
func many(n int, f func(int) error) error {
	const workers = 24
	var first error
	var once sync.Once
	var all sync.WaitGroup
	next := make(chan int)
	for range workers {
		all.Go(func() {
			for i := range next {
				if err := f(i); err != nil {
					once.Do(func() { first = err })
				}
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	all.Wait()
	return first
}

func scaleSpace(app int) string { return fmt.Sprintf("shop-%d", app%scaleSpaces) }
func scalePool(i int) string    { return fmt.Sprintf("pool-%d", i%scalePools) }

func (c *scaleCluster) makeSpaces(ctx context.Context) error {
	for i := range scaleSpaces {
		if err := c.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: scaleSpace(i)}}); err != nil {
			return err
		}
	}
	end := time.Now().Add(time.Minute)
	for i := range scaleSpaces {
		for {
			err := c.client.Get(ctx, client.ObjectKey{Namespace: scaleSpace(i), Name: "default"}, &corev1.ServiceAccount{})
			if err == nil {
				break
			}
			if !apierrors.IsNotFound(err) || time.Now().After(end) {
				return err
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	return nil
}

func (c *scaleCluster) makePools(ctx context.Context) error {
	class := &unstructured.Unstructured{}
	class.SetAPIVersion("karpenter.kwok.sh/v1alpha1")
	class.SetKind("KWOKNodeClass")
	class.SetName("default")
	if err := c.client.Create(ctx, class); err != nil {
		return err
	}
	for i := range scalePools {
		err := c.client.Create(ctx, &v1alpha1.CapacityPool{ObjectMeta: metav1.ObjectMeta{Name: scalePool(i)}, Spec: v1alpha1.CapacityPoolSpec{
			Backend: v1alpha1.Backend{Karpenter: &v1alpha1.KarpenterBackend{NodeClassName: "default"}}, Mode: v1alpha1.ModeActive,
			Template:   v1alpha1.NodeTemplate{Labels: map[string]string{"pool": scalePool(i)}},
			Markets:    v1alpha1.Markets{Regions: []string{scaleRegion}},
			Disruption: v1alpha1.Disruption{Cooldown: &metav1.Duration{Duration: scaleCooldown}},
		}})
		if err != nil {
			return err
		}
	}
	return nil
}

// scaleTemplate is a pod as users write them, with what a controller does not need.
func scaleTemplate(name, pool string, cpu, memory int64) corev1.PodTemplateSpec {
	var environment []corev1.EnvVar
	for _, k := range []string{"LISTEN", "UPSTREAM", "LOG_LEVEL", "REGION", "TIMEOUT", "POOL_SIZE", "FEATURES", "VERSION"} {
		environment = append(environment, corev1.EnvVar{Name: k, Value: name + " has something to say of " + strings.ToLower(k)})
	}
	probe := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(8080)}}}
	need := corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(cpu, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(memory<<20, resource.BinarySI)}
	t := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name, "team": "shop", "version": "v1"},
			Annotations: map[string]string{"prometheus.io/scrape": "true"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "main", Image: "registry.example/shop/" + name + ":v1.2.3", Env: environment, ReadinessProbe: probe, LivenessProbe: probe,
			Ports: []corev1.ContainerPort{{ContainerPort: 8080}}, Resources: corev1.ResourceRequirements{Requests: need},
		}}},
	}
	if pool != "" {
		t.Spec.NodeSelector = map[string]string{"pool": pool}
	}
	return t
}

// makeApps makes Deployments with their ReplicaSets, and DaemonSets.
func (c *scaleCluster) makeApps(ctx context.Context) error {
	c.apps = make([]*appsv1.ReplicaSet, c.nodes*c.perNode/scaleReplicas)
	replicas := int32(scaleReplicas)
	err := many(len(c.apps), func(i int) error {
		name := fmt.Sprintf("app-%d", i)
		template := scaleTemplate(name, scalePool(i), c.podCPU*int64(9+2*(i%4))/9, (1024+256*int64(i%3))*scalePerNode/int64(c.perNode))
		meta := metav1.ObjectMeta{Namespace: scaleSpace(i), Name: name, Labels: template.Labels}
		selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
		d := &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: selector, Template: template}}
		if err := c.client.Create(ctx, d); err != nil {
			return err
		}
		meta.Name += "-5d"
		meta.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))}
		c.apps[i] = &appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Replicas: &replicas, Selector: selector, Template: template}}
		return c.client.Create(ctx, c.apps[i])
	})
	for i := range scaleDaemons {
		name := fmt.Sprintf("agent-%d", i)
		template := scaleTemplate(name, "", 50, 64)
		template.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		s := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name}, Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}, Template: template}}
		if err := c.client.Create(ctx, s); err != nil {
			return err
		}
		c.sets = append(c.sets, s)
	}
	return err
}

// makeBudgets makes budgets of processor time that bound nothing, each of one Deployment.
func (c *scaleCluster) makeBudgets(ctx context.Context) error {
	hours := 1e6
	return many(c.budgets, func(i int) error {
		app := i * scaleSpaces % len(c.apps) // one of the first namespace
		return c.client.Create(ctx, &v1alpha1.GPUBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: scaleSpace(0), Name: fmt.Sprintf("budget-%d", i)},
			Spec: v1alpha1.GPUBudgetSpec{
				ResourceName: "cpu", Quota: v1alpha1.Quota{GPUHours: &hours, WindowHours: 24},
				Selector: metav1.LabelSelector{MatchLabels: map[string]string{"app": fmt.Sprintf("app-%d", app)}},
			},
		})
	})
}

// makeNodes makes a NodeClaim and a Node for each, half of them spot.
func (c *scaleCluster) makeNodes(ctx context.Context) error {
	return many(c.nodes, func(i int) error {
		capacity, pool := "spot", scalePool(i)
		nodePool := pool + "-spot"
		if c.onDemand(i) {
			capacity, nodePool = "on-demand", pool+"-od"
		}
		claim := &karpv1.NodeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", nodePool, i), Labels: map[string]string{karpv1.NodePoolLabelKey: nodePool}},
			Spec: karpv1.NodeClaimSpec{NodeClassRef: &karpv1.NodeClassReference{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass", Name: "default"},
				Requirements: []karpv1.NodeSelectorRequirementWithMinValues{{Key: karpv1.CapacityTypeLabelKey,
					Operator: corev1.NodeSelectorOpIn, Values: []string{capacity}}}},
		}
		if err := c.client.Create(ctx, claim); err != nil {
			return err
		}
		return c.join(ctx, claim, pool, scaleTypes[i%len(scaleTypes)], scaleZones[i%len(scaleZones)], capacity)
	})
}

// makePods makes all pods where they run, and then, since each pod would change
// their status, disruption budgets for every second Deployment.
func (c *scaleCluster) makePods(ctx context.Context) error {
	of := c.nodes / scalePools
	err := many(len(c.apps)*scaleReplicas, func(i int) error {
		app := i / scaleReplicas
		k := (app/scalePools*scaleReplicas + i%scaleReplicas) % of
		return c.addPod(ctx, app, c.nodeName(k*scalePools+app%scalePools))
	})
	if err != nil {
		return err
	}
	most := intstr.FromString("10%")
	return many(len(c.apps)/2, func(i int) error {
		s := c.apps[2*i]
		return c.client.Create(ctx, &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Labels["app"]},
			Spec: policyv1.PodDisruptionBudgetSpec{Selector: s.Spec.Selector, MaxUnavailable: &most}})
	})
}

func (c *scaleCluster) onDemand(i int) bool { return !c.spot && i/scalePools%2 == 0 }

// nodeName returns the name of the node that was made as number i.
func (c *scaleCluster) nodeName(i int) string {
	if c.onDemand(i) {
		return fmt.Sprintf("node-%s-od-%d", scalePool(i), i)
	}
	return fmt.Sprintf("node-%s-spot-%d", scalePool(i), i)
}

// names returns the UIDs of the nodes by their names.
func (c *scaleCluster) names(b *testing.B) map[string]types.UID {
	b.Helper()
	var l metav1.PartialObjectMetadataList
	l.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
	if err := c.client.List(b.Context(), &l); err != nil {
		b.Fatal(err)
	}
	all := make(map[string]types.UID, len(l.Items))
	for i := range l.Items {
		all[l.Items[i].Name] = l.Items[i].UID
	}
	return all
}

// replaced returns how many of the nodes are gone.
func (c *scaleCluster) replaced(b *testing.B, before map[string]types.UID) (gone int) {
	b.Helper()
	now := c.names(b)
	for name, uid := range before {
		if now[name] != uid {
			gone++
		}
	}
	return gone
}

// written prints what a user has written since the mark, most first.
func (c *scaleCluster) written(b *testing.B, since testenv.Mark, user string) string {
	b.Helper()
	counts := map[string]int{}
	for _, e := range c.env.Audit(b, since, func(e testenv.AuditEvent) bool { return e.User == user && e.Writes() }) {
		what := e.Verb + " " + e.Resource
		if e.Subresource != "" {
			what += "/" + e.Subresource
		}
		counts[fmt.Sprintf("%s: %d", what, e.Code)]++
	}
	keys := slices.SortedFunc(maps.Keys(counts), func(x, y string) int { return cmp.Or(cmp.Compare(counts[y], counts[x]), cmp.Compare(x, y)) })
	var lines []string
	for _, k := range keys {
		lines = append(lines, fmt.Sprintf("%d %s", counts[k], k))
	}
	return strings.Join(lines, ", ")
}

// scaleTrace writes the prices of about three hundred Spot markets, hour by hour over the last
// two days, and returns the folder.
func scaleTrace(b *testing.B) string {
	b.Helper()
	families := []string{"m5", "m5a", "m6i", "m6a", "c5", "c5a", "c6i", "c6a", "r5", "r5a", "r6i", "r6a"}
	walk := rand.New(rand.NewPCG(1, 2))
	now := time.Now()
	var all []trace.Series
	for _, name := range catalog.Types(catalog.AWS) {
		family, size, _ := strings.Cut(name, ".")
		onDemand, known := catalog.OnDemand(catalog.AWS, scaleRegion, name)
		if !slices.Contains(families, family) || size == "metal" || !known {
			continue
		}
		for _, zone := range scaleZones {
			s := trace.Series{Provider: catalog.AWS, Region: scaleRegion, Zone: zone, Type: name}
			part := 0.3 + 0.4*walk.Float64()
			for h := -48; h <= 0; h++ {
				part = min(1, max(0.1, part*(0.99+0.02*walk.Float64())))
				s.At = append(s.At, policy.TimeOf(now.Add(time.Duration(h)*time.Hour)))
				s.Spot, s.OnDemand = append(s.Spot, policy.Dollars(part*onDemand.Float())), append(s.OnDemand, onDemand)
			}
			all = append(all, s)
		}
	}
	b.Logf("prices of %d spot markets", len(all))
	t, err := trace.New("crowd", all)
	if err != nil {
		b.Fatal(err)
	}
	dir := filepath.Join(b.TempDir(), "prices")
	if err := trace.Write(dir, t); err != nil {
		b.Fatal(err)
	}
	return dir
}
