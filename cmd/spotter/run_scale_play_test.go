//go:build linux

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/live/karpenter"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/catalog"
)

// join gives a NodeClaim its machine: a ready Node, with the pods of DaemonSets.
func (c *scaleCluster) join(ctx context.Context, claim *karpv1.NodeClaim, pool, kind, zone, capacity string) error {
	t, ok := catalog.Lookup(catalog.AWS, kind)
	if !ok {
		return fmt.Errorf("no type %s", kind)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-" + claim.Name, Labels: map[string]string{
		corev1.LabelInstanceTypeStable: kind, corev1.LabelTopologyZone: zone, corev1.LabelTopologyRegion: scaleRegion, corev1.LabelHostname: "node-" + claim.Name,
		corev1.LabelArchStable: "amd64", corev1.LabelOSStable: "linux", karpv1.CapacityTypeLabelKey: capacity, "pool": pool,
		karpv1.NodePoolLabelKey: claim.Labels[karpv1.NodePoolLabelKey], karpv1.NodeRegisteredLabelKey: "true", karpv1.NodeInitializedLabelKey: "true",
	}}, Spec: corev1.NodeSpec{ProviderID: "aws:///" + zone + "/i-" + claim.Name}}
	if err := c.client.Create(ctx, node); err != nil {
		return fmt.Errorf("node: %w", err)
	}
	node.Spec.Taints = nil // a new node is given that of one that is not ready, and nothing is scheduled there
	if err := c.client.Update(ctx, node); err != nil {
		return fmt.Errorf("taints of node: %w", err)
	}
	now := metav1.Now()
	node.Status.Capacity, node.Status.Allocatable = list(t.Capacity), list(t.Allocatable)
	node.Status.NodeInfo = corev1.NodeSystemInfo{KubeletVersion: "v1.35.4", OSImage: "Linux",
		ContainerRuntimeVersion: "containerd://2.0.0", KernelVersion: "6.12"}
	for i := range 30 {
		image := fmt.Sprintf("registry.example/shop/image-%d", i)
		node.Status.Images = append(node.Status.Images, corev1.ContainerImage{Names: []string{image + ":v1", image +
			"@sha256:" + strings.Repeat("0", 64)}, SizeBytes: 1 << 26})
	}
	for _, kind := range []corev1.NodeConditionType{corev1.NodeMemoryPressure, corev1.NodeDiskPressure,
		corev1.NodePIDPressure, corev1.NodeReady} {
		x := corev1.NodeCondition{Type: kind, Status: corev1.ConditionFalse, LastHeartbeatTime: now,
			LastTransitionTime: now, Reason: "Kubelet", Message: "as the kubelet says"}
		if kind == corev1.NodeReady {
			x.Status = corev1.ConditionTrue
		}
		node.Status.Conditions = append(node.Status.Conditions, x)
	}
	if err := c.client.Status().Update(ctx, node); err != nil {
		return fmt.Errorf("status of node: %w", err)
	}
	claim.Status.NodeName, claim.Status.ProviderID = node.Name, node.Spec.ProviderID
	claim.Status.Capacity, claim.Status.Allocatable = node.Status.Capacity, node.Status.Allocatable
	for _, kind := range []string{karpv1.ConditionTypeLaunched, karpv1.ConditionTypeRegistered, karpv1.ConditionTypeInitialized} {
		claim.StatusConditions().SetTrue(kind)
	}
	status := claim.Status
	claim.Labels[corev1.LabelInstanceTypeStable], claim.Labels[corev1.LabelTopologyZone], claim.Labels[karpv1.CapacityTypeLabelKey] = kind, zone, capacity
	if err := c.client.Update(ctx, claim); err != nil {
		return fmt.Errorf("nodeclaim: %w", err)
	}
	claim.Status = status
	if err := c.client.Status().Update(ctx, claim); err != nil {
		return fmt.Errorf("status of nodeclaim: %w", err)
	}
	for _, s := range c.sets {
		owner := metav1.NewControllerRef(s, appsv1.SchemeGroupVersion.WithKind("DaemonSet"))
		if err := c.makePod(ctx, s.Namespace, s.Name, node.Name, owner, &s.Spec.Template); err != nil {
			return err
		}
	}
	return nil
}

func list(r policy.Resources) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU: *resource.NewMilliQuantity(r.CPU,
			resource.DecimalSI), corev1.ResourceMemory: *resource.NewQuantity(r.Memory, resource.BinarySI),
		corev1.ResourcePods: *resource.NewQuantity(r.Pods,
			resource.DecimalSI), corev1.ResourceEphemeralStorage: *resource.NewQuantity(max(r.Storage, 20<<30), resource.BinarySI),
	}
}

// addPod makes a pod of a ReplicaSet, on a node where one is named.
func (c *scaleCluster) addPod(ctx context.Context, app int, node string) error {
	s := c.apps[app]
	owner := metav1.NewControllerRef(s, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))
	return c.makePod(ctx, s.Namespace, s.Name, node, owner, &s.Spec.Template)
}

func (c *scaleCluster) makePod(ctx context.Context, namespace, name, node string, owner *metav1.OwnerReference,
	t *corev1.PodTemplateSpec) error {
	p := &corev1.Pod{ObjectMeta: *t.ObjectMeta.DeepCopy(), Spec: *t.Spec.DeepCopy()}
	p.Namespace, p.GenerateName, p.OwnerReferences = namespace, name+"-", []metav1.OwnerReference{*owner}
	p.Labels["pod-template-hash"] = "5d"
	p.Spec.NodeName = node
	if err := c.client.Create(ctx, p); err != nil {
		return fmt.Errorf("pod: %w", err)
	}
	if node == "" {
		return nil
	}
	return c.runs(ctx, p)
}

// runs writes the status of a pod as its kubelet would.
func (c *scaleCluster) runs(ctx context.Context, p *corev1.Pod) error {
	now := metav1.Now()
	p.Status.Phase, p.Status.StartTime, p.Status.PodIP, p.Status.HostIP = corev1.PodRunning, &now, "10.1.2.3", "10.0.0.1"
	p.Status.PodIPs, p.Status.HostIPs = []corev1.PodIP{{IP: "10.1.2.3"}}, []corev1.HostIP{{IP: "10.0.0.1"}}
	p.Status.Conditions = nil
	for _, kind := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodReadyToStartContainers,
		corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	yes := true
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "main", Ready: true, Started: &yes, Image: p.Spec.Containers[0].Image, ImageID: "sha256:" +
			strings.Repeat("0", 64), ContainerID: "containerd://" + strings.Repeat("0", 64),
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
	}}
	if err := c.client.Status().Update(ctx, p); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("status of pod: %w", err)
	}
	return nil
}

// play does what kubelets, ReplicaSets and Karpenter would, replaces one pod in a
// hundred a minute, and has each node renew its lease every five minutes, until
// the function that it returns is called.
func (c *scaleCluster) play(b *testing.B) (stop func()) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	var all sync.WaitGroup
	seen, err := cache.New(c.config, cache.Options{Scheme: c.env.Scheme, DefaultTransform: cache.TransformStripManagedFields()})
	if err != nil {
		b.Fatal(err)
	}
	follow := func(of client.Object, f func(watch.EventType, any) error) {
		informer, err := seen.GetInformer(ctx, of)
		if err != nil {
			b.Fatal(err)
		}
		say := func(e watch.EventType, o any) {
			if shared, is := o.(client.Object); is {
				o = shared.DeepCopyObject()
			}
			if err := f(e, o); err != nil && ctx.Err() == nil {
				b.Logf("playing: %v", err)
			}
		}
		if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { say(watch.Added, o) },
			UpdateFunc: func(_, o any) { say(watch.Modified, o) },
			DeleteFunc: func(o any) {
				if last, missed := o.(toolscache.DeletedFinalStateUnknown); missed {
					o = last.Obj
				}
				say(watch.Deleted, o)
			},
		}); err != nil {
			b.Fatal(err)
		}
	}
	all.Go(func() {
		if err := seen.Start(ctx); err != nil {
			b.Errorf("playing: %v", err)
		}
	})
	follow(&corev1.Pod{}, func(e watch.EventType, o any) error { return c.playPod(ctx, e, o) })
	follow(&karpv1.NodeClaim{}, func(e watch.EventType, o any) error { return c.playClaim(ctx, e, o) })
	follow(&karpv1.NodePool{}, func(e watch.EventType, o any) error { return c.playNodePool(ctx, e, o) })
	all.Go(func() { c.every(ctx, b, time.Minute/time.Duration(c.nodes*c.perNode/100), c.churn) })
	all.Go(func() { c.every(ctx, b, 5*time.Minute/time.Duration(c.nodes), c.heartbeat) })
	return func() { cancel(); all.Wait() }
}

func (c *scaleCluster) every(ctx context.Context, b *testing.B, d time.Duration, f func(context.Context) error) {
	ticker := time.NewTicker(d)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := f(ctx); err != nil && ctx.Err() == nil {
			b.Logf("playing: %v", err)
		}
	}
}

// churn deletes a pod of some ReplicaSet.
func (c *scaleCluster) churn(ctx context.Context) error {
	s := c.apps[rand.IntN(len(c.apps))]
	var l metav1.PartialObjectMetadataList
	l.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	if err := c.client.List(ctx, &l, client.InNamespace(s.Namespace),
		client.MatchingLabels(s.Spec.Selector.MatchLabels)); err != nil || len(l.Items) == 0 {
		return err
	}
	return client.IgnoreNotFound(c.client.Delete(ctx, &l.Items[rand.IntN(len(l.Items))]))
}

// heartbeat has some node that was there from the start say that it lives.
func (c *scaleCluster) heartbeat(ctx context.Context) error {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: c.nodeName(rand.IntN(c.nodes))}}
	patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","lastHeartbeatTime":%q}]}}`, time.Now().UTC().Format(time.RFC3339))
	return client.IgnoreNotFound(c.client.Status().Patch(ctx, n, client.RawPatch(types.StrategicMergePatchType, []byte(patch))))
}

// playPod starts pods that are bound, ends pods that must end, and recreates pods that were lost.
func (c *scaleCluster) playPod(ctx context.Context, e watch.EventType, o any) error {
	p, ok := o.(*corev1.Pod)
	if !ok {
		return fmt.Errorf("pods: %v", o)
	}
	switch {
	case e == watch.Deleted:
		owner := metav1.GetControllerOf(p)
		for i := range c.apps {
			if owner != nil && owner.UID == c.apps[i].UID {
				return c.addPod(ctx, i, "")
			}
		}
	case p.DeletionTimestamp != nil:
		return client.IgnoreNotFound(c.client.Delete(ctx, p, client.GracePeriodSeconds(0)))
	case p.Spec.NodeName != "" && p.Status.Phase == corev1.PodPending:
		return c.runs(ctx, p)
	}
	return nil
}

// playClaim launches what has no machine, and ends the machine of what is gone.
func (c *scaleCluster) playClaim(ctx context.Context, e watch.EventType, o any) error {
	claim, ok := o.(*karpv1.NodeClaim)
	switch {
	case !ok:
		return fmt.Errorf("nodeclaims: %v", o)
	case e == watch.Added && claim.Status.ProviderID == "":
		first, _, _ := strings.Cut(claim.Annotations[karpenter.MarketsAnnotation], ",")
		at := strings.Split(first, "/")
		if len(at) != 5 {
			return fmt.Errorf("nodeclaim %s asks for %q", claim.Name, first)
		}
		return c.join(ctx, claim, claim.Labels[karpenter.PoolLabel], at[3], at[2], at[4])
	case e == watch.Deleted && claim.Status.NodeName != "":
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: claim.Status.NodeName}}
		if err := c.client.Delete(ctx, node); client.IgnoreNotFound(err) != nil {
			return err
		}
		var l corev1.PodList
		if err := c.client.List(ctx, &l, client.MatchingFields{"spec.nodeName": node.Name}); err != nil {
			return err
		}
		for i := range l.Items {
			if err := c.client.Delete(ctx, &l.Items[i], client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
				return err
			}
		}
	}
	return nil
}

// playNodePool marks a NodePool as seen, as Karpenter does.
func (c *scaleCluster) playNodePool(ctx context.Context, e watch.EventType, o any) error {
	n, ok := o.(*karpv1.NodePool)
	if !ok {
		return fmt.Errorf("nodepools: %v", o)
	}
	if e == watch.Deleted || n.Annotations[karpv1.NodePoolHashAnnotationKey] != "" {
		return nil
	}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:"1",%q:%q}}}`, karpv1.NodePoolHashAnnotationKey,
		karpv1.NodePoolHashVersionAnnotationKey, karpv1.NodePoolHashVersion)
	return c.client.Patch(ctx, n, client.RawPatch(types.MergePatchType, []byte(patch)))
}
