package drain

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// kinds returns a scheme of the kinds that a drain knows, and no more: with each
// write the fake client goes through all of them.
func kinds() *runtime.Scheme {
	s := runtime.NewScheme()
	core, apps, policies, storage := corev1.SchemeGroupVersion, appsv1.SchemeGroupVersion, policyv1.SchemeGroupVersion, storagev1.SchemeGroupVersion
	s.AddKnownTypes(core, &corev1.Node{}, &corev1.NodeList{}, &corev1.Pod{}, &corev1.PodList{}, &corev1.Namespace{}, &corev1.NamespaceList{})
	s.AddKnownTypes(apps, &appsv1.DaemonSet{}, &appsv1.DaemonSetList{}, &appsv1.Deployment{}, &appsv1.DeploymentList{},
		&appsv1.ReplicaSet{}, &appsv1.ReplicaSetList{})
	s.AddKnownTypes(policies, &policyv1.PodDisruptionBudget{}, &policyv1.PodDisruptionBudgetList{}, &policyv1.Eviction{})
	s.AddKnownTypes(storage, &storagev1.VolumeAttachment{}, &storagev1.VolumeAttachmentList{})
	for _, group := range []schema.GroupVersion{core, apps, policies, storage} {
		metav1.AddToGroupVersion(s, group)
	}
	return s
}

// client returns a client of which every call goes through the faults.
func (w *fixture) client() client.Client {
	return interceptor.NewClient(w.api, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			return w.guard(ctx, "get "+kindOf(o), func() error { return c.Get(ctx, key, o, opts...) })
		},
		List: func(ctx context.Context, c client.WithWatch, o client.ObjectList, opts ...client.ListOption) error {
			return w.guard(ctx, "list "+kindOf(o), func() error { return c.List(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			defer w.touch()
			return w.guard(ctx, "patch "+kindOf(o), func() error { return c.Patch(ctx, o, p, opts...) })
		},
		SubResourceCreate: func(ctx context.Context, _ client.Client, sub string, o, body client.Object,
			opts ...client.SubResourceCreateOption) error {
			so := (&client.SubResourceCreateOptions{}).ApplyOptions(opts)
			op := "evict"
			if len(so.DryRun) > 0 {
				op = "rehearse"
			}
			if sub != "eviction" {
				return fmt.Errorf("subresource %s", sub)
			}
			return w.guard(ctx, op, func() error { return w.evict(o, body.(*policyv1.Eviction), op == "rehearse") })
		},
		Delete: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.DeleteOption) error {
			w.breach("deleted %s %s", kindOf(o), o.GetName())
			return errors.New("a drain deletes nothing")
		},
	})
}

func kindOf(o any) string { return strings.TrimPrefix(fmt.Sprintf("%T", o), "*v1.") }

// guard makes a call that may fail before it is made, or whose answer may be
// lost.
func (w *fixture) guard(ctx context.Context, op string, f func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w.mu.Lock()
	fault, lost := w.fault, w.lost
	w.mu.Unlock()
	if err := w.strike(fault, op); err != nil {
		return err
	}
	err := f()
	if err := w.strike(lost, op); err != nil {
		return err
	}
	return err
}

// strike asks a fault, one call at a time: faults count their calls.
func (w *fixture) strike(fault func(op string) error, op string) error {
	if fault == nil {
		return nil
	}
	w.striking.Lock()
	defer w.striking.Unlock()
	return fault(op)
}

// evicted returns the evictions that were accepted so far.
func (w *fixture) evicted() []eviction {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.evictions)
}

// breach notes that something happened which never must.
func (w *fixture) breach(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.breaches = append(w.breaches, fmt.Sprintf(format, args...))
}

var podResource = schema.GroupResource{Resource: "pods"}

// evict answers as the API server does.
func (w *fixture) evict(o client.Object, e *policyv1.Eviction, dry bool) error {
	ctx := context.Background()
	p := &corev1.Pod{}
	if err := w.api.Get(ctx, client.ObjectKeyFromObject(o), p); err != nil {
		return err
	}
	d := e.DeleteOptions
	if d == nil || d.Preconditions == nil || d.Preconditions.UID == nil {
		w.breach("pod %s evicted without its UID", p.Name)
		return apierrors.NewBadRequest("no UID")
	}
	if v := d.Preconditions.ResourceVersion; v != nil && *v != p.ResourceVersion {
		return apierrors.NewConflict(podResource, p.Name, errors.New("the ResourceVersion in the precondition does not match"))
	}
	if *d.Preconditions.UID != p.UID {
		return apierrors.NewConflict(podResource, p.Name, errors.New("the UID in the precondition does not match"))
	}
	if g := d.GracePeriodSeconds; g != nil && *g < 1 {
		w.breach("pod %s evicted with a grace of %d s", p.Name, *g)
	}
	budget, err := w.budgetFor(p)
	if err != nil {
		return err
	}
	if dry {
		return nil
	}
	if budget != nil {
		budget.Status.DisruptionsAllowed--
		if err := w.api.Status().Update(ctx, budget); err != nil {
			return apierrors.NewTooManyRequests("The disruption budget is still being processed by the server.", 1)
		}
	}
	defer w.touch()
	w.stop(p, d.GracePeriodSeconds)
	if p.DeletionTimestamp != nil {
		return nil
	}
	return w.api.Delete(ctx, p)
}

// budgetFor returns the budget that an eviction of p uses up, nil without one, and
// an error if it is refused.
func (w *fixture) budgetFor(p *corev1.Pod) (*policyv1.PodDisruptionBudget, error) {
	all := &policyv1.PodDisruptionBudgetList{}
	if err := w.api.List(context.Background(), all, client.InNamespace(p.Namespace)); err != nil {
		return nil, err
	}
	mine := budgetsOf(p, all.Items)
	if ignoresBudgets(p) || len(mine) == 0 {
		return nil, nil
	}
	if len(mine) > 1 {
		return nil, &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 500,
			Message: "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."}}
	}
	s := &mine[0].Status
	if !ready(p) && (mine[0].Spec.UnhealthyPodEvictionPolicy != nil || s.DesiredHealthy > 0 && s.CurrentHealthy >= s.DesiredHealthy) {
		return nil, nil
	}
	if s.DisruptionsAllowed <= 0 {
		return nil, apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 0)
	}
	return mine[0], nil
}

// countBudgets does what the disruption controller does.
func (w *fixture) countBudgets() {
	all := &policyv1.PodDisruptionBudgetList{}
	w.must(w.api.List(context.Background(), all))
	pods := w.pods()
	for i := range all.Items {
		b := &all.Items[i]
		s := policyv1.PodDisruptionBudgetStatus{ObservedGeneration: b.Generation}
		for _, p := range pods {
			if len(budgetsOf(&p, []policyv1.PodDisruptionBudget{*b})) == 0 || p.DeletionTimestamp != nil {
				continue
			}
			s.ExpectedPods++
			if ready(&p) {
				s.CurrentHealthy++
			}
		}
		if b.Spec.MaxUnavailable != nil {
			s.DesiredHealthy = s.ExpectedPods - scaled(*b.Spec.MaxUnavailable, s.ExpectedPods)
		} else {
			s.DesiredHealthy = scaled(*b.Spec.MinAvailable, s.ExpectedPods)
		}
		s.DisruptionsAllowed = max(0, s.CurrentHealthy-s.DesiredHealthy)
		if !reflect.DeepEqual(s, b.Status) {
			b.Status = s
			if err := w.api.Status().Update(context.Background(), b); apierrors.IsConflict(err) {
				w.touch() // an eviction came in between
			} else {
				w.must(err)
			}
		}
	}
}
