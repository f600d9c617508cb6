package testenv

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// What pods and nodes say to kwok. The values of the annotations of pods are
// durations.
const (
	// kwokNode marks the nodes that kwok plays, by the value "fake".
	kwokNode = "kwok.x-k8s.io/node"

	// StartupTime is how long a pod takes to become ready; at once without it.
	StartupTime = "spotter.dev/startup-time"

	// Duration is how long a pod of a Job runs until it has succeeded; for ever
	// without it.
	Duration = "spotter.dev/duration"

	// DeleteAfter overrides how long a pod stays when it is deleted. It is the
	// grace period of real kubelets that pods do not use up.
	DeleteAfter = "testenv.spotter.dev/delete-after"
)

//go:embed stages.yaml
var stages string

// stagesFor returns the life of nodes and pods as kwok is to play it.
func stagesFor(podDelete time.Duration) []byte {
	return []byte(strings.ReplaceAll(stages, "PODDELETE", strconv.FormatInt(podDelete.Milliseconds(), 10)))
}

// Node returns a node for [Env.AddNode] with so much allocatable, 110 pods and the
// label of its name. Whoever wants more adds to it.
func Node(name, cpu, memory string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
		}},
		Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory), corev1.ResourcePods: resource.MustParse("110"),
		}},
	}
}

// AddNode makes a node that kwok plays and waits until it is ready. Its status says
// what is allocatable. It is deleted after the test.
func (e *Env) AddNode(t testing.TB, n *corev1.Node) *corev1.Node {
	t.Helper()
	n = n.DeepCopy()
	if n.Annotations == nil {
		n.Annotations = map[string]string{}
	}
	n.Annotations[kwokNode] = "fake"
	status := n.Status
	if status.Capacity == nil {
		status.Capacity = status.Allocatable
	}
	if err := e.Client.Create(t.Context(), n); err != nil {
		t.Fatalf("testenv: making node %s: %v", n.Name, err)
	}
	t.Cleanup(func() { _ = e.Client.Delete(context.Background(), n) })
	Eventually(t, "the node "+n.Name+" is ready", func() error {
		if err := e.Client.Get(t.Context(), client.ObjectKeyFromObject(n), n); err != nil {
			return err
		}
		if !equality.Semantic.DeepEqual(n.Status.Allocatable, status.Allocatable) {
			n.Status.Allocatable, n.Status.Capacity = status.Allocatable, status.Capacity
			if err := e.Client.Status().Update(t.Context(), n); err != nil {
				return fmt.Errorf("writing what is allocatable: %w", err)
			}
		}
		return ready(n)
	})
	return n
}

// ready returns nil for a node that is ready, and that no controller keeps pods
// from because it was not.
func ready(n *corev1.Node) error {
	for _, taint := range n.Spec.Taints {
		if taint.Key == corev1.TaintNodeNotReady {
			return fmt.Errorf("it is tainted as not ready")
		}
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
			return nil
		}
	}
	return fmt.Errorf("it is not ready")
}
