package budget

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/live/testenv"
	"github.com/spotter-dev/spotter/policy"
	policybudget "github.com/spotter-dev/spotter/policy/budget"
	"github.com/spotter-dev/spotter/policy/policytest"
)

// A goldenPod is one of gpu-k8s-operator's, with times seen from now.
type goldenPod struct {
	Start int64   `json:"start_ns_rel_now"`
	End   *int64  `json:"end_ns_rel_now"`
	GPUs  float64 `json:"gpus"`
}

// TestGolden counts the pods of gpu-k8s-operator as real Pod objects. An API server
// keeps times to the second and devices by the piece: so the times are rounded
// before, for the pods and for what they are compared with, and cores stand for
// devices. What is compared with is held to the golden figures to 1e-9 in
// policy/budget; against those themselves the difference is what rounding explains.
func TestGolden(t *testing.T) {
	env := testenv.Start(t, testenv.Options{})
	var cases []struct {
		Pods   []goldenPod
		Quota  float64 `json:"quota_gpu_hours"`
		Window int64   `json:"window_ns"`
		Want   struct {
			Consumed float64
			Tracked  int `json:"tracked_pods"`
		}
	}
	if err := json.Unmarshal(policytest.Golden(t, "gpu_accounting.json"), &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) > 120 {
		cases = cases[:120] // some hundred pods, made one by one
	}
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	ns := env.Namespace(t)
	for i, c := range cases {
		name := fmt.Sprint("case-", i)
		rounding := 0.0
		var objects []policybudget.Object
		for _, p := range c.Pods {
			objects = append(objects, makeGolden(t, env, ns, name, now, p))
			rounding += max(0, p.GPUs) * 1 / 3600
		}
		var pods corev1.PodList
		if err := env.Client.List(t.Context(), &pods, client.InNamespace(ns)); err != nil {
			t.Fatal(err)
		}
		b := policy.Budget{Namespace: ns, GPUHours: c.Quota, Window: time.Duration(c.Window),
			Selector: policy.Selector{Requirements: []policy.Requirement{{Key: "case", Op: policy.OpIn, Values: []string{name}}}}}
		got := Count(&b, "cpu", pods.Items, now)
		want := policybudget.CountObjects(b.Window, c.Quota, objects)
		if math.Abs(got.Consumed-want.Consumed) > 1e-9 || math.Abs(got.Remaining-want.Remaining) > 1e-9 || got.Tracked != want.Tracked || got.Over != want.Over {
			t.Errorf("case %d: %+v, want %+v", i, got, want)
		}
		if math.Abs(got.Consumed-c.Want.Consumed) > rounding+1e-9 || got.Tracked != c.Want.Tracked {
			t.Errorf("case %d: %+v, and gpu-k8s-operator has %+v", i, got, c.Want)
		}
	}
}

// makeGolden makes a pod and returns how it is to be seen.
func makeGolden(t *testing.T, env *testenv.Env, ns, name string, now time.Time, p goldenPod) policybudget.Object {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, GenerateName: name + "-", Labels: label("case", name)},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "none"}}},
	}
	if p.GPUs > 0 {
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": *resource.NewMilliQuantity(int64(math.Round(p.GPUs*1000)), resource.DecimalSI)}
	}
	if err := env.Client.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	start := time.Duration(p.Start).Round(time.Second)
	o := policybudget.Object{Start: start, Devices: max(0, p.GPUs)}
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &metav1.Time{Time: now.Add(start)}}
	if p.End != nil {
		o.End, o.Ended = time.Duration(*p.End).Round(time.Second), true
		pod.Status.Phase = corev1.PodSucceeded
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{StartedAt: *pod.Status.StartTime, FinishedAt: metav1.NewTime(now.Add(o.End))},
		}}}
	}
	if err := env.Client.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	return o
}
