package cluster_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/live/cluster"
	"github.com/spotter-dev/spotter/policy"
)

// claimOf returns a claim of devices, named "driver/device", for pods.
func claimOf(name string, devices []string, pods ...string) *resourcev1.ResourceClaim {
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name}}
	c.Status.Allocation = &resourcev1.AllocationResult{}
	for _, d := range devices {
		r := resourcev1.DeviceRequestAllocationResult{Request: "r", Pool: "n"}
		r.Driver, r.Device, _ = cut(d)
		c.Status.Allocation.Devices.Results = append(c.Status.Allocation.Devices.Results, r)
	}
	for _, p := range pods {
		c.Status.ReservedFor = append(c.Status.ReservedFor, resourcev1.ResourceClaimConsumerReference{Resource: "pods",
			Name: p, UID: types.UID("uid of a/" + p)})
	}
	return c
}

func cut(d string) (driver, name string, _ bool) {
	for i := range d {
		if d[i] == '/' {
			return d[:i], d[i+1:], true
		}
	}
	return d, "", false
}

// slice describes devices of a driver on node n, by name: their attributes.
func slice(driver string, devices map[string]map[string]string) *resourcev1.ResourceSlice {
	s := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: driver + "-n"},
		Spec: resourcev1.ResourceSliceSpec{Driver: driver, Pool: resourcev1.ResourcePool{Name: "n"}}}
	for name, attributes := range devices {
		d := resourcev1.Device{Name: name, Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{}}
		for k, v := range attributes {
			d.Attributes[resourcev1.QualifiedName(k)] = resourcev1.DeviceAttribute{StringValue: &v}
		}
		s.Spec.Devices = append(s.Spec.Devices, d)
	}
	return s
}

// claiming gives a pod a claim: by name, or with "*" in front the one that was made for it.
func claiming(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		c := corev1.PodResourceClaim{Name: fmt.Sprint("c", len(p.Spec.ResourceClaims))}
		if made := name[0] == '*'; made {
			c.ResourceClaimTemplateName = ptr.To("t")
			p.Status.ResourceClaimStatuses = append(p.Status.ResourceClaimStatuses,
				corev1.PodResourceClaimStatus{Name: c.Name, ResourceClaimName: ptr.To(name[1:])})
		} else {
			c.ResourceClaimName = &name
		}
		p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, c)
	}
}

// counts returns the thousandths of NVIDIA's devices that a budget counts of a pod, and
// whether it holds more.
func counts(t *testing.T, s *policy.Snapshot, pod string) (int64, bool) {
	t.Helper()
	b := policy.Budget{Namespace: "a", Resource: "nvidia.com/gpu", Selector: policy.Selector{Everything: true}}
	x := &s.Templates[podIn(t, s, "a/"+pod).Template]
	return b.Counts(x), x.Uncounted
}

func wantCount(t *testing.T, s *policy.Snapshot, pod string, want int64, unknown bool) {
	t.Helper()
	if n, u := counts(t, s, pod); n != want || u != unknown {
		t.Errorf("%s holds %d, more unknown %t; want %d, %t", pod, n, u, want, unknown)
	}
}

// nvidia are two whole devices, slices, and a partition of a kind that is not known.
func nvidia() *resourcev1.ResourceSlice {
	return slice("gpu.nvidia.com", map[string]map[string]string{
		"gpu-0": {"type": "gpu"}, "gpu-1": {"gpu.nvidia.com/type": "gpu"}, "m1": {"type": "mig", "profile": "1g.10gb"},
		"m3": {"type": "mig", "profile": "3g.40gb+me"}, "odd": {"type": "mig"},
	})
}

// TestClaims counts the devices that pods hold by resource claims, each once.
func TestClaims(t *testing.T) {
	set := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "w"}}
	l := newLab(t, node("n"), set, nvidia(),
		slice("net.example.com", map[string]map[string]string{"nic": {}}),
		pod("own", "n", claiming("*own-c")), claimOf("own-c", []string{"gpu.nvidia.com/gpu-0", "gpu.nvidia.com/m1",
			"net.example.com/nic"}, "own"),
		pod("slice", "n", claiming("m3")), claimOf("m3", []string{"gpu.nvidia.com/m3"}, "slice"),
		pod("odd", "n", claiming("odd")), claimOf("odd", []string{"gpu.nvidia.com/odd"}, "odd"),
		pod("nic", "n", claiming("nic")), claimOf("nic", []string{"net.example.com/nic"}, "nic"),
		pod("waits", "", claiming("*none")), pod("plain", "n"),
		pod("two", "n", claiming("*two"), claiming("m3b")), claimOf("two", nil, "two"), claimOf("m3b", []string{"gpu.nvidia.com/lost"}, "two"),
	)
	admin := claimOf("admin", []string{"gpu.nvidia.com/gpu-0"}, "admin")
	admin.Status.Allocation.Devices.Results[0].AdminAccess = ptr.To(true)
	l.put(admin, pod("admin", "n", claiming("admin")))
	s := l.observe(0)
	wantCount(t, s, "own", 1143, false)
	wantCount(t, s, "slice", 429, false)
	wantCount(t, s, "odd", 0, true)
	wantCount(t, s, "nic", 0, false)
	wantCount(t, s, "plain", 0, false)
	wantCount(t, s, "two", 0, true)
	wantCount(t, s, "admin", 0, false)
	wantCount(t, s, "waits", 0, true)

	// The claim of another pod of the same name is not its own.
	l.put(pod("slice", "n", claiming("m3"), func(p *corev1.Pod) { p.UID = "another" }))
	wantCount(t, l.observe(time.Second), "slice", 0, true)
}

// TestSharedClaims divides a device among the pods that share it, so that together they hold
// one, also as they come and go.
func TestSharedClaims(t *testing.T) {
	l := newLab(t, node("n"), nvidia())
	sum := func(after time.Duration, pods ...string) {
		t.Helper()
		s, all, least, most := l.observe(after), int64(0), int64(1000), int64(0)
		for _, p := range pods {
			n, unknown := counts(t, s, p)
			if unknown {
				t.Errorf("%s is not counted", p)
			}
			all, least, most = all+n, min(least, n), max(most, n)
		}
		if all != 1000 || most-least > 1 {
			t.Errorf("%d pods hold %d, from %d to %d; want 1000, evenly", len(pods), all, least, most)
		}
	}
	gpu := []string{"gpu.nvidia.com/gpu-0"}
	l.put(pod("x", "n", claiming("c")), pod("y", "n", claiming("c")), pod("z", "n", claiming("c")))
	l.put(claimOf("c", gpu, "x"))
	s := l.observe(0)
	wantCount(t, s, "x", 1000, false)
	wantCount(t, s, "y", 0, true) // the claim is not reserved for it yet
	l.put(claimOf("c", gpu, "x", "y", "z"))
	sum(time.Second, "x", "y", "z")
	// Another claim of the same device, as drivers allow that share it.
	l.put(pod("v", "n", claiming("d")), claimOf("d", gpu, "v"))
	sum(2*time.Second, "x", "y", "z", "v")
	l.remove(l.objects["other a/d"])
	l.remove(l.objects["pod a/v"])
	sum(3*time.Second, "x", "y", "z")
}

// TestClaimReleasedFirst has a claim released before the end of its pod shows: the pod has
// held its device to the end.
func TestClaimReleasedFirst(t *testing.T) {
	l := newLab(t, node("n"), nvidia(), pod("x", "n", claiming("c")), claimOf("c", []string{"gpu.nvidia.com/gpu-1"}, "x"))
	wantCount(t, l.observe(0), "x", 1000, false)
	l.remove(l.objects["other a/c"])
	wantCount(t, l.observe(time.Second), "x", 1000, false)
	l.remove(l.objects["pod a/x"])
	s := l.observe(2 * time.Second)
	if len(s.Ended) != 1 || len(s.Templates[s.Ended[0].Template].Devices) != 1 {
		t.Errorf("%+v", s.Ended)
	}
}

// TestSlicesChange has devices described late, by two slices at once, and no more.
func TestSlicesChange(t *testing.T) {
	l := newLab(t, node("n"), pod("x", "n", claiming("c")), claimOf("c", []string{"gpu.nvidia.com/m3"}, "x"))
	wantCount(t, l.observe(0), "x", 0, true)
	l.put(nvidia())
	wantCount(t, l.observe(time.Second), "x", 429, false)
	next := nvidia()
	next.Name = "next"
	l.put(next)
	l.remove(l.objects["other gpu.nvidia.com-n"])
	l.put(pod("y", "n", claiming("d")), claimOf("d", []string{"gpu.nvidia.com/m1"}, "y"))
	wantCount(t, l.observe(2*time.Second), "y", 143, false)
}

// TestReplicas divides devices by the replicas that the node of a pod makes of them.
func TestReplicas(t *testing.T) {
	shared := func(p *corev1.Pod) {
		one := corev1.ResourceList{"nvidia.com/gpu.shared": resource.MustParse("1")}
		p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: one, Limits: one}
	}
	l := newLab(t, node("n", func(n *corev1.Node) { n.Labels["nvidia.com/gpu.replicas"] = "4" }), node("m"),
		pod("x", "n", shared), pod("y", "m", shared))
	s := l.observe(0)
	wantCount(t, s, "x", 250, false)
	wantCount(t, s, "y", 1000, false)
}

// without are informers of an API server that has no resource claims.
type without struct{ cache.Informers }

func (i without) GetInformer(ctx context.Context, o client.Object, opts ...cache.InformerGetOption) (cache.Informer, error) {
	if _, is := o.(*resourcev1.ResourceClaim); is {
		return nil,
			fmt.Errorf("looking for the kind: %w",
				&meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: resourcev1.GroupName, Kind: "ResourceClaim"}})
	}
	return i.Informers.GetInformer(ctx, o, opts...)
}

// TestNoClaims follows a cluster whose API server has no resource claims.
func TestNoClaims(t *testing.T) {
	m := newMarkets(t)
	cfg := cluster.DefaultConfig()
	cfg.Clock = m.clock
	o, err := cluster.New(cfg, m.book)
	if err != nil {
		t.Fatal(err)
	}
	m.observer = o
	if err := o.Follow(t.Context(), without{m.informer}); err != nil {
		t.Fatal(err)
	}
	l := &lab{m, t}
	l.put(node("n"), pod("x", "n", claiming("c")))
	wantCount(t, l.observe(0), "x", 0, true)
}
