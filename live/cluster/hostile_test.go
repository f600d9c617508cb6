package cluster_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
)

// TestHostileTexts: no text that the API server lets a tenant, a node or a cloud write freely comes into a snapshot:
// names in owner references, annotations, and the identity of a machine.
func TestHostileTexts(t *testing.T) {
	const hostile = "\x1b[2J\nall is well\u202e"
	owners := []string{"Web", "a/b", "a b", "", strings.Repeat("a", 254), "a" + hostile, hostile}
	keys := []string{kube.OwnPrefix + "drain", kube.OwnPrefix + "cordon", kube.OwnPrefix + "outage-cost",
		kube.AnnotationDuration, kube.AnnotationDeadline,
		kube.AnnotationDoNotDisrupt, "cluster-autoscaler.kubernetes.io/safe-to-evict", "controller.kubernetes.io/pod-deletion-cost"}
	annotate := func(all map[string]string) {
		for _, key := range keys {
			all[key] = hostile
		}
	}
	n := node("n")
	n.Spec.ProviderID = hostile
	annotate(n.Annotations)
	l := newLab(t, n)
	for i, name := range owners {
		set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: fmt.Sprint("set-", i),
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "apps/v1", Kind: "Deployment", Name: name, UID: "x", Controller: ptr.To(true)}}}}
		l.put(set, pod(fmt.Sprint("set-pod-", i), "n", ownedBy("ReplicaSet", set.Name)))
		for _, kind := range []string{"ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CloneSet", "Node" + hostile} {
			l.put(pod(strings.ToLower(fmt.Sprintf("%.4s-%d", kind, i)), "n", ownedBy(kind, name), func(p *corev1.Pod) { annotate(p.Annotations) }))
		}
	}
	s := l.observe(0)
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []string{"all is well", `\u202e`, `\n`} {
		if at := strings.Index(string(text), x); at >= 0 {
			t.Errorf("the snapshot has %q: %.200s", x, text[max(0, at-100):])
		}
	}
	if len(s.Pods) != 7*len(owners) {
		t.Errorf("%d pods, want all %d", len(s.Pods), 7*len(owners))
	}
	for i := range s.Pods {
		w := s.Templates[s.Pods[i].Template].Workload
		if bare := !strings.HasPrefix(s.Pods[i].Name, "a/set-pod-"); bare != (w == policy.None) {
			t.Errorf("pod %s has workload %d", s.Pods[i].Name, w)
		}
	}
}
