package cluster_test

import (
	"context"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// epoch is when tests begin.
var epoch = time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)

// at is so long after epoch.
func at(d time.Duration) policy.Time { return policy.TimeOf(epoch.Add(d)) }

// A lab is an observer with a fake API server: four markets in two zones, and what
// the test puts in.
type lab struct {
	*mirror
	t *testing.T
}

func newLab(t *testing.T, objects ...client.Object) *lab {
	t.Helper()
	l := &lab{newMarkets(t), t}
	l.put(objects...)
	return l
}

// newMarkets returns a mirror whose book sells one type in two zones.
func newMarkets(t testing.TB) *mirror {
	t.Helper()
	m := newMirror(t, nil)
	size := policy.Resources{CPU: 4000, Memory: 16 << 30, Storage: 20 << 30, Pods: 58}
	s := &policy.Snapshot{Zones: []string{"us-east-1a", "us-east-1b"}, Types: []policy.InstanceType{
		{Provider: "aws", Name: "m5.xlarge", Family: "m5", Category: "m", Arch: "amd64", VCPU: 4, Capacity: size,
			Allocatable: size, VolumesMax: 25},
	}}
	for z, zone := range s.Zones {
		for _, c := range []policy.CapacityType{policy.OnDemand, policy.Spot} {
			id := policy.MarketID(len(s.Markets))
			s.Markets = append(s.Markets, policy.Market{ID: id, Name: "aws/us-east-1/" + zone + "/m5.xlarge/" + c.String(), Provider: "aws",
				Region: "us-east-1", Zone: policy.ZoneID(z), Capacity: c, Offered: true, Price: policy.Dollar / 10, OnDemand: policy.Dollar / 5,
				Band: policy.BandUnknown, PlacementScore: -1})
		}
	}
	m.book.s = s
	m.clock.SetTime(epoch)
	s.Now = at(0)
	return m
}

// put adds objects, or updates them.
func (l *lab) put(objects ...client.Object) {
	l.t.Helper()
	for _, o := range objects {
		if o.GetUID() == "" {
			o.SetUID(types.UID("uid of " + nameOf(o)))
		}
		k := kindOf(o) + nameOf(o)
		if before := l.objects[k]; before != nil {
			l.informerOf(o).Update(before, o)
		} else {
			l.informerOf(o).Add(o)
		}
		l.objects[k] = o
	}
}

func (l *lab) remove(o client.Object) {
	l.informerOf(o).Delete(o)
	delete(l.objects, kindOf(o)+nameOf(o))
}

func kindOf(o client.Object) string {
	switch o.(type) {
	case *corev1.Pod:
		return "pod "
	case *corev1.Node:
		return "node "
	}
	return "other "
}

// observe looks at the cluster so long after epoch.
func (l *lab) observe(d time.Duration) *policy.Snapshot {
	l.t.Helper()
	l.clock.SetTime(epoch.Add(d))
	l.book.s.Now = at(d)
	s, err := l.observer.Observe(context.Background())
	if err != nil {
		l.t.Fatal(err)
	}
	return s
}

// wakes returns the reasons for which the observer requested a step since the last call.
func (l *lab) wakes() []string {
	var all []string
	for {
		select {
		case r := <-l.observer.Wakes():
			all = append(all, r)
		default:
			slices.Sort(all)
			return slices.Compact(all)
		}
	}
}

// met counts the events of a kind that the book learned of.
func (l *lab) met(k backend.EventKind) int {
	n := 0
	for _, e := range l.book.met {
		if e.Kind == k {
			n++
		}
	}
	return n
}

func nodeIn(t *testing.T, s *policy.Snapshot, name string) *policy.Node {
	t.Helper()
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.Phase != policy.NodeGone && n.Name == name {
			return n
		}
	}
	t.Fatalf("there is no node %s", name)
	return nil
}

func podIn(t *testing.T, s *policy.Snapshot, name string) *policy.Pod {
	t.Helper()
	for i := range s.Pods {
		if p := &s.Pods[i]; p.Phase != policy.PodGone && p.Name == name {
			return p
		}
	}
	t.Fatalf("there is no pod %s", name)
	return nil
}

// node returns a ready Spot node of pool p that joined at epoch.
func node(name string, change ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.Time{Time: epoch.Add(-time.Hour)}, Labels: map[string]string{
			"kubernetes.io/hostname": name, "node.kubernetes.io/instance-type": "m5.xlarge", "topology.kubernetes.io/region": "us-east-1",
			"topology.kubernetes.io/zone": "us-east-1a", "karpenter.sh/capacity-type": "spot", "karpenter.sh/nodepool": "p-spot", "karpenter.sh/initialized": "true",
		}, Annotations: map[string]string{}},
		Spec: corev1.NodeSpec{ProviderID: "aws:///us-east-1a/i-" + name},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{"cpu": resource.MustParse("3900m"), "memory": resource.MustParse("15Gi"),
				"pods": resource.MustParse("58")},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue,
				LastTransitionTime: metav1.Time{Time: epoch.Add(-50 * time.Minute)}}},
		},
	}
	for _, c := range change {
		c(n)
	}
	return n
}

func tainted(key string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule})
	}
}

// pod returns a ready pod without a controller.
func pod(name, node string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, CreationTimestamp: metav1.Time{Time: epoch.Add(-30 * time.Minute)},
			Labels: map[string]string{"app": "web"}, Annotations: map[string]string{}},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse("500m"), "memory": resource.MustParse("1Gi")}}}}},
	}
	if node != "" {
		p.Status.Phase = corev1.PodRunning
		p.Status.Conditions = []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Time{Time: epoch.Add(-29 * time.Minute)}},
			{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Time{Time: epoch.Add(-28 * time.Minute)}},
		}
	}
	for _, c := range change {
		c(p)
	}
	return p
}

func ownedBy(kind, name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.OwnerReferences = controller(kind, name) }
}

// capacityPool returns a pool of Karpenter's.
func capacityPool(name string, change ...func(*v1alpha1.CapacityPool)) *v1alpha1.CapacityPool {
	p := &v1alpha1.CapacityPool{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1},
		Spec: v1alpha1.CapacityPoolSpec{Backend: v1alpha1.Backend{Karpenter: &v1alpha1.KarpenterBackend{NodeClassName: "default"}}}}
	for _, c := range change {
		c(p)
	}
	return p
}
