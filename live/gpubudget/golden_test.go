package gpubudget

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/gpubudget"
	"github.com/spotter-dev/spotter/policy/policytest"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/test/testenv"
)

// A goldenPod is one of gpu-k8s-operator's, with times seen from now.
type goldenPod struct {
	Start int64   `json:"start_ns_rel_now"`
	End   *int64  `json:"end_ns_rel_now"`
	GPUs  float64 `json:"gpus"`
}

// A goldenCase is what gpu-k8s-operator made of some pods.
type goldenCase struct {
	Pods   []goldenPod
	Quota  float64 `json:"quota_gpu_hours"`
	Window int64   `json:"window_ns"`
	Want   struct {
		Consumed, Remaining float64
		Over                bool
		Tracked             int `json:"tracked_pods"`
	}
}

func goldenCases(t *testing.T) (cases []goldenCase) {
	t.Helper()
	if err := json.Unmarshal(policytest.Golden(t, "gpu_accounting.json"), &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) < 300 {
		t.Fatalf("%d cases are too few", len(cases))
	}
	return cases
}

// budget returns the budget of the pods that are labelled with the name of the case.
func (c *goldenCase) budget(namespace, name string) *policy.Budget {
	return &policy.Budget{Namespace: namespace, GPUHours: c.Quota, Window: time.Duration(c.Window),
		Selector: policy.Selector{Requirements: []policy.Requirement{{Key: "case", Op: policy.OpIn, Values: []string{name}}}}}
}

// goldenNow is when the cases are counted.
var goldenNow = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// goldenDevices is the resource used for the devices of the cases, some of which are fractions: an
// API server accepts fractions only of a resource that can be divided.
const goldenDevices = "cpu"

// same reports whether two accounts are the same but for the last bits of their sums.
func same(a, b gpubudget.Account) bool {
	return math.Abs(a.Consumed-b.Consumed) <= 1e-9 && math.Abs(a.Remaining-b.Remaining) <= 1e-9 && a.Tracked == b.Tracked && a.Over == b.Over
}

// TestGoldenToTheNanosecond counts the pods of gpu-k8s-operator to the nanosecond, and
// those that request fewer than no devices, as no API server would have them.
func TestGoldenToTheNanosecond(t *testing.T) {
	for i, c := range goldenCases(t) {
		name := fmt.Sprint("case-", i)
		other, running := (&goldenPod{Start: -int64(time.Hour), GPUs: 1}).pod("ns", "another", 1)
		other.Status = running
		pods := []corev1.Pod{*other}
		for _, p := range c.Pods {
			pod, status := p.pod("ns", name, 1)
			pod.Status = status
			pods = append(pods, *pod)
		}
		want := gpubudget.Account{Consumed: c.Want.Consumed, Remaining: c.Want.Remaining, Over: c.Want.Over, Tracked: c.Want.Tracked}
		if got := Count(c.budget("ns", name), goldenDevices, pods, nil, goldenNow); !same(got, want) {
			t.Errorf("case %d: %+v, and gpu-k8s-operator has %+v", i, got, want)
		}
	}
}

// TestGolden counts the same pods from a real API server. The server keeps times to the second and
// refuses negative requests, so the account there must be that of the rounded pods, and differ from
// gpu-k8s-operator's by no more than rounding explains. The status of GPUBudgets must report the
// same.
func TestGolden(t *testing.T) {
	env := testenv.Start(t, testenv.Options{})
	cases := goldenCases(t)
	ns := env.Namespace(t)
	makeGolden(t, env, ns, cases)
	var pods corev1.PodList
	if err := env.Client.List(t.Context(), &pods, client.InNamespace(ns)); err != nil {
		t.Fatal(err)
	}
	for i, c := range cases {
		rounding := 0.0
		var objects []gpubudget.Object
		for _, p := range c.Pods {
			o := gpubudget.Object{Start: time.Duration(p.Start).Round(time.Second), Devices: max(0, p.GPUs)}
			if p.End != nil {
				o.End, o.Ended = time.Duration(*p.End).Round(time.Second), true
			}
			objects = append(objects, o)
			rounding += max(0, p.GPUs) * 1 / 3600
		}
		b := c.budget(ns, fmt.Sprint("case-", i))
		got := Count(b, goldenDevices, pods.Items, nil, goldenNow)
		if want := gpubudget.CountObjects(b.Window, c.Quota, objects); !same(got, want) {
			t.Errorf("case %d: %+v, want %+v", i, got, want)
		}
		if math.Abs(got.Consumed-c.Want.Consumed) > rounding+1e-9 || got.Tracked != c.Want.Tracked {
			t.Errorf("case %d: %+v, and gpu-k8s-operator has %+v", i, got, c.Want)
		}
	}
	for from := 0; from < len(cases); from += NamespaceMax {
		goldenInStatus(t, env, ns, cases, from)
	}
}

// goldenInStatus has the controller's enforcer report the GPUBudgets of the cases from one on,
// which count existing pods, no more than are enforced in a namespace. Their status must show what
// gpu-k8s-operator would show, to the thousandth and within the rounding of times. A window of 0
// hours is not valid.
func goldenInStatus(t *testing.T, env *testenv.Env, ns string, cases []goldenCase, from int) {
	t.Helper()
	k := newEnforcer(t, testingclock.NewFakeClock(goldenNow), cached(t, env, ns), false)
	k.cfg.Namespace = ns
	list := makeBudgets(t, env, ns, cases, from)
	snap := &policy.Snapshot{Now: policy.TimeOf(goldenNow), Budgets: tableOf(list...)}
	for i := range snap.Budgets {
		k.ledgers.memory = append(k.ledgers.memory, policy.BudgetMemory{Name: snap.Budgets[i].Name})
	}
	if err := k.Report(t.Context(), snap); err != nil {
		t.Fatal(err)
	}
	for i := range list {
		seen := list[i]
		if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(seen), seen); err != nil {
			t.Fatal(err)
		}
		var n int
		if _, err := fmt.Sscanf(seen.Name, "case-%d", &n); err != nil {
			t.Fatal(err)
		}
		c, st := &cases[n], &seen.Status
		rounding := 0.0011
		for _, p := range c.Pods {
			rounding += max(0, p.GPUs) / 3600
		}
		used, errUsed := strconv.ParseFloat(st.Consumed.GPUHours, 64)
		left, errLeft := strconv.ParseFloat(st.Remaining.GPUHours, 64)
		if errUsed != nil || errLeft != nil || int(st.TrackedPods) != c.Want.Tracked ||
			math.Abs(used-c.Want.Consumed) > rounding || math.Abs(left-c.Want.Remaining) > rounding {
			t.Errorf("case %d: status %+v, and gpu-k8s-operator has %+v", n, *st, c.Want)
		}
		if err := env.Client.Delete(t.Context(), seen); err != nil {
			t.Fatal(err)
		}
	}
}

// cached returns a client that reads from a cache of a namespace, as the controller's
// does.
func cached(t *testing.T, env *testenv.Env, ns string) client.Client {
	t.Helper()
	seen, err := cache.New(env.Config, cache.Options{Scheme: env.Scheme, DefaultNamespaces: map[string]cache.Config{ns: {}}})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	go func() { ended <- seen.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	c, err := client.New(env.Config, client.Options{Scheme: env.Scheme, Cache: &client.CacheOptions{Reader: seen}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// makeBudgets makes a GPUBudget of the pods of each case from one on that has a window, no
// more than are enforced in a namespace.
func makeBudgets(t *testing.T, env *testenv.Env, ns string, cases []goldenCase, from int) (list []*v1alpha1.GPUBudget) {
	t.Helper()
	for i := from; i < min(len(cases), from+NamespaceMax); i++ {
		name := fmt.Sprint("case-", i)
		b := &v1alpha1.GPUBudget{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Spec: v1alpha1.GPUBudgetSpec{
			Selector: metav1.LabelSelector{MatchLabels: label("case", name)}, ResourceName: goldenDevices, Accounting: v1alpha1.AccountLiveObjects,
			Quota: v1alpha1.Quota{GPUHours: &cases[i].Quota, WindowHours: int32(time.Duration(cases[i].Window) / time.Hour)},
		}}
		if b.Spec.Quota.WindowHours == 0 {
			continue
		}
		if err := env.Client.Create(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		list = append(list, b)
	}
	return list
}

// makeGolden makes the pods of all cases, some at a time.
func makeGolden(t *testing.T, env *testenv.Env, ns string, cases []goldenCase) {
	t.Helper()
	var all sync.WaitGroup
	turns := make(chan struct{}, 8)
	for i, c := range cases {
		for _, p := range c.Pods {
			turns <- struct{}{}
			all.Go(func() {
				defer func() { <-turns }()
				p.GPUs = max(0, p.GPUs)
				pod, status := p.pod(ns, fmt.Sprint("case-", i), time.Second)
				err := env.Client.Create(t.Context(), pod)
				if err == nil {
					pod.Status = status
					err = env.Client.Status().Update(t.Context(), pod)
				}
				if err != nil {
					t.Errorf("case %d: %v", i, err)
				}
			})
		}
	}
	if all.Wait(); t.Failed() {
		t.FailNow()
	}
}

// pod returns the Pod of a case and its status, with times to the unit.
func (p *goldenPod) pod(ns, name string, unit time.Duration) (*corev1.Pod, corev1.PodStatus) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, GenerateName: name + "-", Labels: label("case", name)},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "none"}}},
	}
	if p.GPUs != 0 {
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{goldenDevices: *resource.NewMilliQuantity(int64(math.Round(p.GPUs*1000)), resource.DecimalSI)}
	}
	at := func(ns int64) metav1.Time { return metav1.NewTime(goldenNow.Add(time.Duration(ns).Round(unit))) }
	start := at(p.Start)
	status := corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &start}
	if p.End != nil {
		status.Phase = corev1.PodSucceeded
		status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{StartedAt: start, FinishedAt: at(*p.End)},
		}}}
	}
	return pod, status
}
