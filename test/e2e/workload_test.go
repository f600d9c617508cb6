package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/live/drain"
	"github.com/spotter-dev/spotter/live/karpenter"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// The pools of the day: shop keeps half on spot, batch and tasks name no policy, and tasks
// is that of machines that Spotter bids for.
const (
	shop  = "shop"
	batch = "batch"
	tasks = "tasks"
)

// The backends of pools.
var (
	byKarpenter = v1alpha1.Backend{Karpenter: &v1alpha1.KarpenterBackend{NodeClassName: "default"}}
	byAuction   = v1alpha1.Backend{Rackspace: &v1alpha1.RackspaceBackend{
		Org: "acme", Cloudspace: cloudspace, CredentialsSecretRef: corev1.SecretReference{Name: tokenSecret, Namespace: namespace},
	}}
)

// pool makes a CapacityPool that may be acted on.
func (w *fixture) pool(t *testing.T, name string, backend v1alpha1.Backend, region string, sold []string, policy *v1alpha1.PolicyRef) {
	t.Helper()
	half, soon, cooldown := intstr.FromString("50%"), metav1.Duration{}, metav1.Duration{Duration: 5 * time.Second}
	if err := w.client.Create(t.Context(), &v1alpha1.CapacityPool{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.CapacityPoolSpec{
			Backend:  backend,
			Markets:  v1alpha1.Markets{Regions: []string{region}, InstanceTypes: sold},
			Template: v1alpha1.NodeTemplate{Labels: map[string]string{"team": name}},
			Policy:   policy,
			Disruption: v1alpha1.Disruption{Budget: &half, ConsolidateAfter: &soon,
				ConsolidationPolicy: v1alpha1.ConsolidateWhenEmpty, Cooldown: &cooldown},
			Mode: v1alpha1.ModeActive,
		},
	}); err != nil {
		t.Fatal(err)
	}
}

// own makes a NodePool that is the users' own and none of Spotter's business.
func (w *fixture) own(t *testing.T, name string) {
	t.Helper()
	p := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec.Template.Labels = map[string]string{"team": name}
	p.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass", Name: "default"}
	for key, values := range map[string][]string{karpv1.CapacityTypeLabelKey: {"on-demand"}, corev1.LabelInstanceTypeStable: {"m5.large"}} {
		p.Spec.Template.Spec.Requirements = append(p.Spec.Template.Spec.Requirements, karpv1.NodeSelectorRequirementWithMinValues{
			Key: key, Operator: corev1.NodeSelectorOpIn, Values: values,
		})
	}
	p.Spec.Disruption.ConsolidationPolicy = karpv1.ConsolidationPolicyWhenEmpty
	p.Spec.Disruption.ConsolidateAfter = karpv1.MustParseNillableDuration("1m")
	if err := w.client.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
}

// deploy makes a Deployment of pods that each fill a node of two vCPUs, and a
// disruption budget that lets one of them go at a time.
func (w *fixture) deploy(t *testing.T, name string, replicas int32) {
	t.Helper()
	labels := map[string]string{"app": name}
	one := intstr.FromInt32(1)
	w.expect(name, replicas)
	requests := corev1.ResourceList{"cpu": resource.MustParse("1500m"), "memory": resource.MustParse("1Gi")}
	for _, o := range []client.Object{
		&policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
			Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &one, Selector: &metav1.LabelSelector{MatchLabels: labels}},
		},
		deployment("default", name, name, replicas, corev1.ResourceRequirements{Requests: requests}),
	} {
		if err := w.client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

func deployment(namespace, name, team string, replicas int32, r corev1.ResourceRequirements) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					NodeSelector: map[string]string{"team": team},
					Containers:   []corev1.Container{{Name: "c", Image: "i", Resources: r}},
				},
			},
		},
	}
}

// scale sets the number of replicas.
func (w *fixture) scale(t *testing.T, name string, replicas int32) {
	t.Helper()
	w.expect(name, replicas)
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	if err := w.client.Patch(t.Context(), d, client.RawPatch(types.MergePatchType,
		fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))); err != nil {
		t.Fatal(err)
	}
}

// run returns how many pods of a workload run, of how many.
func (w *fixture) running(ctx context.Context, namespace, name string) (run, all int, err error) {
	var pods corev1.PodList
	if err := w.client.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels{"app": name}); err != nil {
		return 0, 0, err
	}
	for i := range pods.Items {
		if x := &pods.Items[i]; x.Status.Phase == corev1.PodRunning && x.DeletionTimestamp.IsZero() {
			run++
		}
	}
	return run, len(pods.Items), nil
}

// runs waits until n pods of a workload run.
func (w *fixture) runs(t *testing.T, namespace, name string, n int) {
	t.Helper()
	w.until(t, fmt.Sprintf("%d pods of %s run", n, name), func(ctx context.Context) error {
		run, all, err := w.running(ctx, namespace, name)
		if err == nil && (run != n || all != n) {
			err = fmt.Errorf("%d of %d run", run, all)
		}
		return err
	})
}

// A holding is what a pool has, nodes that are going left out.
type holding struct {
	nodes         []corev1.Node
	spot          []string // names of its Spot nodes
	cores, onSpot int64
	largest       int64
}

func (h *holding) share() float64 { return float64(h.onSpot) / float64(max(1, h.cores)) }

// holds returns what a pool has.
func (w *fixture) holds(ctx context.Context, pool string) (holding, error) {
	var all corev1.NodeList
	if err := w.client.List(ctx, &all, client.MatchingLabels{"team": pool}); err != nil {
		return holding{}, err
	}
	var h holding
	for _, n := range all.Items {
		if !n.DeletionTimestamp.IsZero() || n.Labels[karpv1.NodeInitializedLabelKey] != "true" {
			continue
		}
		cores := n.Status.Capacity.Cpu().Value()
		h.nodes, h.cores, h.largest = append(h.nodes, n), h.cores+cores, max(h.largest, cores)
		if n.Labels[karpv1.CapacityTypeLabelKey] == "spot" {
			h.spot, h.onSpot = append(h.spot, n.Name), h.onSpot+cores
		}
	}
	return h, nil
}

// shares waits until the Spot share of a pool, by vCPU, differs from want by no more than
// the given number of its nodes.
func (w *fixture) shares(t *testing.T, pool string, want, nodes float64) {
	t.Helper()
	var h holding
	w.until(t, fmt.Sprintf("the spot share of %s is held at %v", pool, want), func(ctx context.Context) (err error) {
		if h, err = w.holds(ctx, pool); err != nil {
			return err
		}
		off := h.share() - want
		if h.cores == 0 || max(off, -off) > nodes*float64(h.largest)/float64(h.cores)+1e-9 {
			return fmt.Errorf("%d of %d vCPU are spot", h.onSpot, h.cores)
		}
		return nil
	})
	t.Logf("%s  %d of %d nodes of %s are spot", w.market.clock(), len(h.spot), len(h.nodes), pool)
}

// calm waits until no operation is in progress: all nodes of the test's pools are in use,
// no node of Karpenter is cordoned, and none has a mark of Spotter. Whether Karpenter
// terminates what it bought twice for the users' own pods is up to Karpenter.
func (w *fixture) calm(t *testing.T) {
	t.Helper()
	w.until(t, "all is calm", func(ctx context.Context) error {
		var nodes corev1.NodeList
		var claims karpv1.NodeClaimList
		var pods corev1.PodList
		if err := errors.Join(w.client.List(ctx, &nodes, client.HasLabels{karpv1.NodePoolLabelKey}),
			w.client.List(ctx, &claims), w.client.List(ctx, &pods, client.InNamespace("default"))); err != nil {
			return err
		}
		used := map[string]bool{}
		for i := range pods.Items {
			if x := &pods.Items[i]; x.Status.Phase != corev1.PodRunning || x.DeletionTimestamp != nil {
				return fmt.Errorf("pod %s is %s", x.Name, x.Status.Phase)
			}
			used[pods.Items[i].Spec.NodeName] = true
		}
		for i := range claims.Items {
			if c := &claims.Items[i]; c.DeletionTimestamp != nil || c.Annotations[karpenter.ProtectedAnnotation] != "" {
				return fmt.Errorf("NodeClaim %s is going or protected: %v", c.Name, c.Annotations)
			}
		}
		for i := range nodes.Items {
			n := &nodes.Items[i]
			if n.DeletionTimestamp != nil || n.Spec.Unschedulable || len(n.Spec.Taints) > 0 || !used[n.Name] && n.Labels["team"] != "own" {
				return fmt.Errorf("node %s: of use %t, cordoned %t, taints %v", n.Name, used[n.Name], n.Spec.Unschedulable, n.Spec.Taints)
			}
			for _, key := range []string{drain.AnnotationDrain, drain.AnnotationCordon, karpenter.ProtectedAnnotation} {
				if mark, there := n.Annotations[key]; there {
					return fmt.Errorf("node %s is marked: %s=%s", n.Name, key, mark)
				}
			}
		}
		if len(nodes.Items) != len(claims.Items) {
			return fmt.Errorf("%d nodes of %d NodeClaims", len(nodes.Items), len(claims.Items))
		}
		return nil
	})
}
