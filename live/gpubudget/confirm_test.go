package gpubudget

import (
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// changes are what a person may do to a budget between a decision and what it leads to.
var changes = map[string]func(*testing.T, *struck, *v1alpha1.GPUBudget) string{
	"nothing": func(*testing.T, *struck, *v1alpha1.GPUBudget) string { return "" },
	"deleted": func(t *testing.T, x *struck, b *v1alpha1.GPUBudget) string {
		must(t, x.Delete(t.Context(), b))
		return "BudgetGone"
	},
	"raised":        edited(func(b *v1alpha1.GPUBudget) { b.Spec.Quota.GPUHours = ptr.To(1000.0) }),
	"in dollars":    edited(func(b *v1alpha1.GPUBudget) { b.Spec.Quota.Dollars = ptr.To(5.0) }),
	"wider":         edited(func(b *v1alpha1.GPUBudget) { b.Spec.Quota.WindowHours = 1 }),
	"alert only":    edited(func(b *v1alpha1.GPUBudget) { b.Spec.Enforcement.Action = v1alpha1.EnforceAlertOnly }),
	"delayed":       edited(func(b *v1alpha1.GPUBudget) { b.Spec.Enforcement.OverQuotaDelay = &metav1.Duration{Duration: time.Hour} }),
	"other pods":    edited(func(b *v1alpha1.GPUBudget) { b.Spec.Selector.MatchLabels = label("app", "other") }),
	"other devices": edited(func(b *v1alpha1.GPUBudget) { b.Spec.ResourceName = "amd.com/gpu" }),
	"not valid":     edited(func(b *v1alpha1.GPUBudget) { b.Spec.Quota.WindowHours = 0 }),
	"made anew": func(t *testing.T, x *struck, b *v1alpha1.GPUBudget) string {
		must(t, x.Delete(t.Context(), b))
		b.ResourceVersion, b.UID = "", "another"
		must(t, x.Create(t.Context(), b))
		b.Status.Gate = v1alpha1.GateClosed
		must(t, x.Status().Update(t.Context(), b))
		return "BudgetChanged"
	},
	"opened": func(t *testing.T, x *struck, b *v1alpha1.GPUBudget) string {
		b.Status.Gate = v1alpha1.GateOpen
		must(t, x.Status().Update(t.Context(), b))
		return "GateOpen"
	},
}

func edited(edit func(*v1alpha1.GPUBudget)) func(*testing.T, *struck, *v1alpha1.GPUBudget) string {
	return func(t *testing.T, x *struck, b *v1alpha1.GPUBudget) string {
		edit(b)
		must(t, x.Update(t.Context(), b))
		return "BudgetChanged"
	}
}

// TestChangedSinceTheDecision has a person change a budget after a decision: no pod is
// evicted and no Job suspended for it, whether or not a controller would recreate the pod.
func TestChangedSinceTheDecision(t *testing.T) {
	orders := map[string]struct {
		action v1alpha1.EnforcementAction
		do     func(x *struck) error
		done   func(t *testing.T, x *struck) bool
	}{
		"evict": {v1alpha1.EnforceEvict, func(x *struck) error { return x.enforcer.Evict(t.Context(), x.snap, &policy.Evict{Budget: "ml/b"}) },
			func(t *testing.T, x *struck) bool {
				return apierrors.IsNotFound(x.Get(t.Context(), client.ObjectKey{Namespace: "ml", Name: "p"}, &corev1.Pod{}))
			}},
		"pause": {v1alpha1.EnforcePause, func(x *struck) error {
			return x.enforcer.Pause(t.Context(), x.snap, &policy.Pause{Budget: "ml/b", Paused: true})
		}, func(t *testing.T, x *struck) bool {
			var j batchv1.Job
			must(t, x.Get(t.Context(), client.ObjectKey{Namespace: "ml", Name: "j"}, &j))
			return ptr.Deref(j.Spec.Suspend, false)
		}},
	}
	for what, order := range orders {
		for name, change := range changes {
			t.Run(what+"/"+name, func(t *testing.T) {
				x := newStruck(t)
				x.enforce(t, order.action)
				must(t, save(x.enforcer, x.memory))
				b := budgetObject("ml", "b")
				must(t, x.Get(t.Context(), client.ObjectKeyFromObject(b), b))
				reason := change(t, x, b)
				err := order.do(x)
				if reason == "" && err != nil || reason != "" && !held(err, reason) {
					t.Errorf("it returns %v, want a hold %q", err, reason)
				}
				if got := order.done(t, x); got != (reason == "") {
					t.Errorf("it is done: %t", got)
				}
			})
		}
	}
}

// TestGateOfChangedBudget closes no gate for a budget that was raised since the decision,
// and opens it nevertheless.
func TestGateOfChangedBudget(t *testing.T) {
	x := newStruck(t)
	must(t, save(x.enforcer, x.memory))
	b := budgetObject("ml", "b")
	must(t, x.Get(t.Context(), client.ObjectKeyFromObject(b), b))
	b.Spec.Quota.GPUHours = ptr.To(1000.0)
	must(t, x.Update(t.Context(), b))
	if err := x.enforcer.Gate(t.Context(), x.snap, &policy.Gate{Budget: "ml/b", Closed: true}); !held(err, "BudgetChanged") {
		t.Errorf("closing returns %v", err)
	}
	gateIs(t, x, "")
	must(t, x.enforcer.Gate(t.Context(), x.snap, &policy.Gate{Budget: "ml/b"}))
	gateIs(t, x, v1alpha1.GateOpen)
}

// TestAnotherOfTheName leaves alone the pod and the Job that have taken the name of the
// one that was decided on, and a pod that the budget has ceased to select.
func TestAnotherOfTheName(t *testing.T) {
	x := newStruck(t)
	x.enforce(t, v1alpha1.EnforceEvict)
	x.snap.Pods[0].UID = "before"
	must(t, x.enforcer.Evict(t.Context(), x.snap, &policy.Evict{Budget: "ml/b"}))
	must(t, x.Get(t.Context(), client.ObjectKey{Namespace: "ml", Name: "p"}, &corev1.Pod{}))
	x.snap.Pods[0].UID = "p"
	must(t, x.enforcer.Evict(t.Context(), x.snap, &policy.Evict{Budget: "ml/b"}))
	if err := x.Get(t.Context(), client.ObjectKey{Namespace: "ml", Name: "p"}, &corev1.Pod{}); !apierrors.IsNotFound(err) {
		t.Errorf("the pod that was decided on is there: %v", err)
	}
	x.enforce(t, v1alpha1.EnforcePause)
	x.snap.Workloads[0].UID = "before"
	must(t, x.enforcer.Pause(t.Context(), x.snap, &policy.Pause{Budget: "ml/b", Paused: true}))
	var j batchv1.Job
	must(t, x.Get(t.Context(), client.ObjectKey{Namespace: "ml", Name: "j"}, &j))
	if ptr.Deref(j.Spec.Suspend, false) {
		t.Error("another Job of the name is suspended")
	}

	x = newStruck(t)
	b := budgetObject("ml", "b")
	must(t, x.Get(t.Context(), client.ObjectKeyFromObject(b), b))
	b.Spec.Selector.MatchLabels = label("app", "train")
	must(t, x.Update(t.Context(), b))
	x.enforce(t, v1alpha1.EnforceEvict)
	if err := x.enforcer.Evict(t.Context(), x.snap, &policy.Evict{Budget: "ml/b"}); !held(err, "NotCounted") {
		t.Errorf("a pod that was relabelled: %v", err)
	}
}

// TestResumeAgainstAStaleCache keeps a Job suspended whose budget was missing from the
// snapshot, and exists; and resumes it once the budget is gone, opened or no longer pauses.
func TestResumeAgainstAStaleCache(t *testing.T) {
	for name, change := range map[string]func(*testing.T, *struck, *v1alpha1.GPUBudget){
		"exists":     nil,
		"deleted":    func(t *testing.T, x *struck, b *v1alpha1.GPUBudget) { must(t, x.Delete(t.Context(), b)) },
		"alert only": func(t *testing.T, x *struck, b *v1alpha1.GPUBudget) { changes["alert only"](t, x, b) },
		"opened":     func(t *testing.T, x *struck, b *v1alpha1.GPUBudget) { changes["opened"](t, x, b) },
	} {
		x := newStruck(t)
		x.enforce(t, v1alpha1.EnforcePause)
		must(t, x.enforcer.Pause(t.Context(), x.snap, &policy.Pause{Budget: "ml/b", Paused: true}))
		suspended(t, x)
		x.snap.Budgets = nil
		if change != nil {
			b := budgetObject("ml", "b")
			must(t, x.Get(t.Context(), client.ObjectKeyFromObject(b), b))
			change(t, x, b)
		}
		err := x.enforcer.Pause(t.Context(), x.snap, &policy.Pause{Budget: "ml/b"})
		var j batchv1.Job
		must(t, x.Get(t.Context(), client.ObjectKey{Namespace: "ml", Name: "j"}, &j))
		if resumed := !ptr.Deref(j.Spec.Suspend, false); resumed != (change != nil) || resumed != (err == nil) {
			t.Errorf("%s: the Job resumes: %t, %v", name, resumed, err)
		}
	}
}

// TestUnknownBudget does nothing for a budget that the snapshot lacks and whose action is
// another.
func TestUnknownBudget(t *testing.T) {
	x := newStruck(t)
	x.enforce(t, v1alpha1.EnforcePause)
	x.snap.Budgets = nil
	if err := x.enforcer.Evict(t.Context(), x.snap, &policy.Evict{Budget: "ml/b"}); !held(err, "BudgetChanged") {
		t.Errorf("evicting for a budget that pauses: %v", err)
	}
}

// TestBudgetsThatAreNotEnforced say so: those of a resource that nothing counts, those of
// pods whose devices are not known, and those beyond the oldest of a namespace, of which a report writes to a few.
func TestBudgetsThatAreNotEnforced(t *testing.T) {
	slice := budgetObject("gpu", "slice")
	slice.Spec.ResourceName = "nvidia.com/mig-1g.5gb"
	objects := []client.Object{slice, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ml"}}}
	claims, cores := budgetObject("gpu", "claims"), budgetObject("gpu", "cores")
	claims.Spec.Selector, cores.Spec.Selector = metav1.LabelSelector{}, metav1.LabelSelector{}
	cores.Spec.ResourceName = "cpu"
	objects = append(objects, claims, cores)
	all := []*v1alpha1.GPUBudget{slice, claims, cores}
	for i := range NamespaceMax + 2*leftOutMax {
		b := budgetObject("ml", fmt.Sprintf("b%03d", i))
		objects, all = append(objects, b), append(all, b)
	}
	k := newEnforcer(t, testingclock.NewFakeClock(start), fakeClient(t, noFuncs, objects...), true)
	snap := &policy.Snapshot{Now: policy.TimeOf(start), Budgets: tableOf(all...),
		Templates: []policy.Template{{Namespace: "gpu", Uncounted: true}},
		Nodes:     []policy.Node{{Market: policy.None, Pool: policy.None}},
		Pods: []policy.Pod{{Name: "gpu/y", Phase: policy.PodReady, Bound: 1}, {Name: "gpu/x", Phase: policy.PodStarting, Bound: 1},
			{Name: "gpu/a", Phase: policy.PodPending, Node: policy.None}}}
	var memories []policy.BudgetMemory
	for _, b := range snap.Budgets {
		memories = append(memories, policy.BudgetMemory{Name: b.Name})
	}
	must(t, save(k, memories...))
	reasons := func() map[string]int {
		must(t, k.Report(t.Context(), snap))
		n := map[string]int{}
		for _, b := range all {
			must(t, k.client.Get(t.Context(), client.ObjectKeyFromObject(b), b))
			if c := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionReady); c != nil {
				n[c.Reason]++
			}
		}
		return n
	}
	for turn := range 3 {
		want := map[string]int{"Counting": NamespaceMax + 1, "NotCounted": 2, "TooMany": min(turn+1, 2) * leftOutMax}
		if got := reasons(); !maps.Equal(got, want) {
			t.Errorf("report %d: %v, want %v", turn, got, want)
		}
	}
	for b, words := range map[*v1alpha1.GPUBudget]string{slice: "in budgets of nvidia.com/gpu",
		claims: "devices of 2 pods are not counted, such as those of gpu/x"} {
		if c := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionReady); c.Status != metav1.ConditionFalse ||
			!strings.Contains(c.Message, words) {
			t.Errorf("%s: %+v does not say %q", b.Name, c, words)
		}
	}
}

// TestPausedOnlyOurs changes no Job that another user or controller suspended, or suspends and
// resumes.
func TestPausedOnlyOurs(t *testing.T) {
	theirs := &batchv1.Job{Spec: batchv1.JobSpec{Suspend: ptr.To(true)}}
	if next, err := paused(theirs, &policy.Pause{}); next != nil || err != nil {
		t.Errorf("a Job that a person suspended: %v, %v", next, err)
	}
	theirs.Annotations = map[string]string{PausedBy: "ml/b"}
	if next, err := paused(theirs, &policy.Pause{}); err != nil || next == nil || *next.Spec.Suspend || next.Annotations[PausedBy] != "" {
		t.Errorf("a Job of ours: %+v, %v", next, err)
	}
	queued := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Labels: label(queueName, "q")}}
	if next, err := paused(queued, &policy.Pause{Paused: true, Budget: "ml/b"}); next != nil || !held(err, "SuspendedByOther") {
		t.Errorf("a Job of Kueue: %v, %v", next, err)
	}
}

// TestCountParts counts the slices that a pod requests, and of pods that a snapshot knows
// what it says, devices by resource claims included.
func TestCountParts(t *testing.T) {
	b := &policy.Budget{Namespace: "ml", Resource: gpu, Selector: policy.Selector{Everything: true}, GPUHours: 10,
		HasGPUHours: true, Window: 24 * time.Hour}
	pod := func(name string) corev1.Pod {
		p := *gpuPod("ml", nil)
		p.Name, p.UID = name, types.UID(name)
		p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/mig-3g.20gb": resource.MustParse("1")}}
		p.Status.StartTime = &metav1.Time{Time: start.Add(-2 * time.Hour)}
		return p
	}
	s := &policy.Snapshot{Templates: []policy.Template{{Namespace: "ml", Devices: []policy.DeviceUse{{Resource: gpu, Amount: 3500}}}},
		Pods: []policy.Pod{{Name: "ml/known", UID: "known", Phase: policy.PodReady}, {}}}
	a := Count(b, gpu, []corev1.Pod{pod("known"), pod("other")}, heldDevices(s, b), start)
	if want := 2 * (3.5 + 0.429); math.Abs(a.Consumed-want) > 1e-9 || a.Tracked != 2 {
		t.Errorf("%+v, want %v hours", a, want)
	}
}
