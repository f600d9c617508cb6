package cluster_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spotter-dev/spotter/live/cluster"
)

// stripperOf returns what the cache does with pods.
func stripperOf(t testing.TB) func(*corev1.Pod) *corev1.Pod {
	t.Helper()
	for like, by := range cluster.CacheOptions().ByObject {
		if _, is := like.(*corev1.Pod); is {
			return func(p *corev1.Pod) *corev1.Pod {
				x, err := by.Transform(p)
				if err != nil {
					t.Fatal(err)
				}
				return x.(*corev1.Pod)
			}
		}
	}
	t.Fatal("pods are cached as they are")
	return nil
}

// TestPodsShareWhatIsEqual keeps one specification for the pods of one owner that have
// the same, and what is each pod's own with it.
func TestPodsShareWhatIsEqual(t *testing.T) {
	strip := stripperOf(t)
	make := func(i int, cpu string) *corev1.Pod {
		return strip(pod(fmt.Sprintf("web-%d", i), fmt.Sprintf("node-%d", i), ownedBy("ReplicaSet", "web-5d"), func(p *corev1.Pod) {
			p.OwnerReferences[0].UID = "set"
			p.Labels[corev1.LabelTopologyZone] = fmt.Sprint("zone-", i)
			p.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}
			p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "SELF", Value: fmt.Sprint(i)}}
			p.Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse(cpu)
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodInitialized})
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", ContainerID: "containerd://0"}}
		}))
	}
	a, b, resized := make(1, "500m"), make(2, "500m"), make(3, "700m")
	if &a.Spec.Containers[0] != &b.Spec.Containers[0] || &a.OwnerReferences[0] != &b.OwnerReferences[0] {
		t.Error("equal pods of one ReplicaSet share nothing")
	}
	if a.Spec.NodeName != "node-1" || b.Spec.NodeName != "node-2" || b.Name != "web-2" || b.Labels[corev1.LabelTopologyZone] != "zone-2" {
		t.Errorf("%s is on %s, %s on %s", a.Name, a.Spec.NodeName, b.Name, b.Spec.NodeName)
	}
	if got := resized.Spec.Containers[0].Resources.Requests["cpu"]; got.String() != "700m" ||
		b.Spec.Containers[0].Resources.Requests.Cpu().String() != "500m" {
		t.Errorf("a pod that was resized in place asks for %v", &got)
	}
	if len(a.ManagedFields) != 0 || len(a.Spec.Containers[0].Env) != 0 || len(a.Status.Conditions) != 2 ||
		len(a.Status.ContainerStatuses) != 0 {
		t.Errorf("what nothing reads is kept: %+v", a)
	}
}
