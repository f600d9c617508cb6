package gpubudget

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// A struck is an enforcer of one spent budget, with a pod and a Job of it, at an API
// server that answers one kind of call with an error.
type struck struct {
	client.WithWatch
	enforcer *Enforcer
	snap     *policy.Snapshot
	memory   policy.BudgetMemory

	verb string
	err  error
	left int // how many calls are still struck; below 0 is all
	hits int
}

// strike returns what a call is answered, nil to let it pass.
func (x *struck) strike(verb string) error {
	if verb != x.verb || x.left == 0 {
		return nil
	}
	x.left--
	x.hits++
	return x.err
}

func newStruck(t *testing.T) *struck {
	t.Helper()
	x := &struck{}
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, batchv1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	inner := fake.NewClientBuilder().WithScheme(s).WithStatusSubresource(&v1alpha1.GPUBudget{}).WithObjects(
		budgetObject("ml", "b"), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ml", Labels: label(GateLabel, GateEnabled)}},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "p",
			UID: "p"}}, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "j"}},
	).Build()
	x.WithWatch = interceptor.NewClient(inner, x.hooks())
	x.enforcer = newEnforcer(t, testingclock.NewFakeClock(start), x.WithWatch, true)
	x.memory = memory("ml/b", 20*3_600_000_000)
	x.memory.Closed = true
	x.snap = &policy.Snapshot{Now: policy.Time(start.UnixMilli()), Budgets: tableOf(budgetObject("ml", "b")),
		Pods: []policy.Pod{{Name: "ml/p"}}, Workloads: []policy.Workload{{Name: "ml/j", Kind: policy.KindJob}}}
	return x
}

// enforce gives the budget an action and closes its gate, before the decision.
func (x *struck) enforce(t *testing.T, action v1alpha1.EnforcementAction) {
	t.Helper()
	b := budgetObject("ml", "b")
	must(t, x.Get(t.Context(), client.ObjectKeyFromObject(b), b))
	b.Spec.Enforcement.Action = action
	must(t, x.Update(t.Context(), b))
	b.Status.Gate = v1alpha1.GateClosed
	must(t, x.Status().Update(t.Context(), b))
	x.snap.Budgets = tableOf(b)
}

func (x *struck) hooks() interceptor.Funcs {
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, k client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			return first(x.strike("get"), func() error { return c.Get(ctx, k, o, opts...) })
		},
		List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			return first(x.strike("list"), func() error { return c.List(ctx, l, opts...) })
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return first(x.strike("create"), func() error { return c.Create(ctx, o, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			return first(x.strike("update"), func() error { return c.Update(ctx, o, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return first(x.strike("delete"), func() error { return c.Delete(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return first(x.strike("patch"), func() error { return c.Patch(ctx, o, p, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch,
			opts ...client.SubResourcePatchOption) error {
			return first(x.strike("patch/"+sub), func() error { return c.SubResource(sub).Patch(ctx, o, p, opts...) })
		},
		SubResourceCreate: func(ctx context.Context, c client.Client, sub string, o, body client.Object,
			opts ...client.SubResourceCreateOption) error {
			return first(x.strike("create/"+sub), func() error { return c.SubResource(sub).Create(ctx, o, body, opts...) })
		},
	}
}

// first returns err if it is not nil, else the result of f.
func first(err error, f func() error) error {
	if err != nil {
		return err
	}
	return f()
}

// TestEveryErrorOfTheAPI strikes every call of an enforcer with every error. Each call
// that is struck says so, is held, or had nothing to do; none is done by half; and the
// same call goes through afterwards, with a ledger that holds what was counted.
func TestEveryErrorOfTheAPI(t *testing.T) {
	group := schema.GroupResource{Group: "spotter.dev", Resource: "gpubudgets"}
	failures := map[string]error{
		"conflict": apierrors.NewConflict(group, "x", errors.New("changed")), "throttled": apierrors.NewTooManyRequests("later", 1),
		"internal": apierrors.NewInternalError(errors.New("etcd")), "timeout": context.DeadlineExceeded,
		"unauthorized": apierrors.NewUnauthorized("expired"), "forbidden": apierrors.NewForbidden(group, "x", errors.New("RBAC")),
		"gone": apierrors.NewNotFound(group,
			"x"), "no definition": &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "spotter.dev", Kind: "GPUBudget"}},
	}
	for _, call := range enforcerCalls() {
		for _, verb := range call.verbs {
			for _, name := range slices.Sorted(maps.Keys(failures)) {
				if name == "gone" && slices.Contains(call.there, verb) {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/%s", call.name, verb, name), func(t *testing.T) {
					x := newStruck(t)
					if call.before != nil {
						call.before(t, x)
					}
					x.verb, x.err, x.left = verb, failures[name], 1
					err := call.do(x)
					if x.hits != 1 {
						t.Fatalf("the call made %d such requests", x.hits)
					}
					if quiet := slices.Contains(call.quiet, verb+" "+name); err == nil && !quiet {
						t.Error("it says nothing")
					} else if held := new(backend.Held); err != nil && !errors.Is(err, x.err) && !errors.As(err, &held) {
						t.Errorf("%v does not say what was in the way", err)
					}
					for range 2 {
						if err := call.do(x); err != nil {
							t.Errorf("afterwards: %v", err)
						}
					}
					call.done(t, x)
				})
			}
		}
	}
}

// An enforcerCall is a call to an enforcer, and the requests that it makes.
type enforcerCall struct {
	name   string
	verbs  []string
	before func(*testing.T, *struck)
	do     func(*struck) error
	done   func(*testing.T, *struck)

	// quiet are the answers after which there is nothing to do, or the next step
	// does it.
	quiet []string

	// there are the requests for what is there, of which no API server says that it is
	// gone.
	there []string
}

func enforcerCalls() []enforcerCall {
	saves := func(x *struck) error { return save(x.enforcer, x.memory) }
	saved := func(t *testing.T, x *struck) { must(t, saves(x)) }
	enforced := func(action v1alpha1.EnforcementAction) func(*testing.T, *struck) {
		return func(t *testing.T, x *struck) {
			x.enforce(t, action)
			saved(t, x)
		}
	}
	ledger := func(t *testing.T, x *struck) {
		next := newEnforcer(t, testingclock.NewFakeClock(start), x.WithWatch, true)
		if got, err := next.Load(t.Context()); err != nil || len(got) != 1 || got[0].Used != x.memory.Used || got[0].Closed != x.memory.Closed {
			t.Errorf("the ledger holds %+v, %v", got, err)
		}
	}
	return []enforcerCall{
		{name: "Load", verbs: []string{"list"}, before: saved, do: func(x *struck) error {
			_,
				err := x.enforcer.Load(context.Background())
			return err
		}, done: ledger},
		{name: "Save the first", verbs: []string{"create"}, do: saves, done: ledger},
		{name: "Save", verbs: []string{"update"}, there: []string{"update"},
			before: func(t *testing.T, x *struck) {
				saved(t, x)
				x.memory.Used, x.memory.Closed = 21*3_600_000_000,
					false
			}, do: saves, done: ledger},
		{name: "Save what is no more", verbs: []string{"get", "delete"}, there: []string{"delete"},
			quiet: []string{"delete conflict", "get gone"},
			before: func(t *testing.T, x *struck) {
				saved(t, x)
				must(t, x.Delete(t.Context(), budgetObject("ml", "b")))
			},
			do: func(x *struck) error { return save(x.enforcer) }, done: func(t *testing.T, x *struck) { noLedger(t, x) }},
		{name: "Report", verbs: []string{"list", "patch/status"}, quiet: []string{"patch/status gone"},
			before: saved, do: func(x *struck) error { return x.enforcer.Report(context.Background(), x.snap) },
			done: func(t *testing.T, x *struck) { gateIs(t, x, v1alpha1.GateClosed) }},
		{name: "Gate", verbs: []string{"get", "patch/status"}, before: saved, quiet: []string{"get gone"},
			do: func(x *struck) error {
				return x.enforcer.Gate(context.Background(), x.snap, &policy.Gate{Budget: "ml/b", Closed: true})
			},
			done: func(t *testing.T, x *struck) { gateIs(t, x, v1alpha1.GateClosed) }},
		{name: "Pause", verbs: []string{"get", "patch"}, quiet: []string{"get gone", "patch gone"}, before: enforced(v1alpha1.EnforcePause),
			do: func(x *struck) error {
				return x.enforcer.Pause(context.Background(), x.snap, &policy.Pause{Budget: "ml/b", Paused: true})
			},
			done: func(t *testing.T, x *struck) { suspended(t, x) }},
		{name: "Evict", verbs: []string{"get", "create/eviction"}, before: enforced(v1alpha1.EnforceEvict),
			quiet: []string{"get gone", "create/eviction gone", "create/eviction conflict", "create/eviction throttled"},
			do: func(x *struck) error {
				return x.enforcer.Evict(context.Background(), x.snap, &policy.Evict{Budget: "ml/b"})
			},
			done: func(t *testing.T, x *struck) {
				err := x.Get(t.Context(), client.ObjectKey{Namespace: "ml", Name: "p"}, &corev1.Pod{})
				if !apierrors.IsNotFound(err) {
					t.Errorf("the pod is still there: %v", err)
				}
			}},
	}
}

// TestEvictInKubeSystem evicts a pod that its controller would recreate, behind a closed gate and
// in a namespace with the label. No gate keeps pods out of kube-system, so there the pod stays.
func TestEvictInKubeSystem(t *testing.T) {
	for namespace, reason := range map[string]string{"ml": "", "kube-system": "NamespaceNotGated"} {
		b := enforcedBudget(namespace, "b", v1alpha1.EnforceEvict, v1alpha1.GateClosed)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "p", OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "rs", UID: "u", Controller: ptr.To(true)},
		}}}
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: label(GateLabel, GateEnabled)}}
		k := newEnforcer(t, testingclock.NewFakeClock(start), fakeClient(t, noFuncs, b, pod, ns), true)
		snap := &policy.Snapshot{Pods: []policy.Pod{{Name: namespace + "/p"}}}
		err := k.Evict(t.Context(), snap, &policy.Evict{Budget: namespace + "/b"})
		if reason == "" && err != nil || reason != "" && !held(err, reason) {
			t.Errorf("in %s: %v, want a hold %q", namespace, err, reason)
		}
		left := k.client.Get(t.Context(), client.ObjectKeyFromObject(pod), pod)
		if gone := apierrors.IsNotFound(left); gone != (reason == "") {
			t.Errorf("in %s: the pod is evicted: %t", namespace, gone)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func noLedger(t *testing.T, x *struck) {
	t.Helper()
	var all corev1.ConfigMapList
	must(t, x.List(t.Context(), &all))
	if len(all.Items) > 0 {
		t.Errorf("%d ledgers are left of a budget that is no more", len(all.Items))
	}
}

func gateIs(t *testing.T, x *struck, want v1alpha1.GateState) {
	t.Helper()
	b := budgetObject("ml", "b")
	must(t, x.Get(t.Context(), client.ObjectKeyFromObject(b), b))
	if b.Status.Gate != want {
		t.Errorf("the gate is %s, want %s", b.Status.Gate, want)
	}
}

func suspended(t *testing.T, x *struck) {
	t.Helper()
	var j batchv1.Job
	must(t, x.Get(t.Context(), client.ObjectKey{Namespace: "ml", Name: "j"}, &j))
	if j.Spec.Suspend == nil || !*j.Spec.Suspend || j.Annotations[PausedBy] != "ml/b" {
		t.Errorf("the Job is not suspended: %+v", j.Spec)
	}
}
