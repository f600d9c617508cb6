package gpubudget

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/live/drain"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/gpubudget"
	"github.com/spotter-dev/spotter/policy/kube"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// PausedBy is the annotation of Jobs that were suspended for a GPUBudget. Its value is the name of
// the budget. Spotter does not resume a Job without it.
const PausedBy = "spotter.dev/paused-by"

// queueName is the label of Jobs that Kueue suspends and resumes.
const queueName = "kueue.x-k8s.io/queue-name"

// errNotEnforcing is returned for orders that arrive while enforcement is not permitted.
var errNotEnforcing = backend.Hold("Shadow", "budgets are observed but not enforced")

// Gate opens or closes the gate of a budget in its status, which the admission policy reads. It
// also updates the rest of the status.
func (k *Enforcer) Gate(ctx context.Context, s *policy.Snapshot, x *policy.Gate) error {
	if !k.enforcing() {
		return errNotEnforcing
	}
	if err := k.ledgers.saveBefore(ctx, x.Budget); err != nil {
		return err
	}
	b, err := k.budget(ctx, x.Budget)
	if apierrors.IsNotFound(err) {
		return nil // nothing is left to reject
	}
	if err != nil {
		return err
	}
	i := findBudget(s, x.Budget)
	if now, _ := Read(b); x.Closed && i >= 0 && !sameSpec(now, s.Budgets[i]) {
		return changed(x.Budget)
	}
	next := b.DeepCopy()
	now := metav1.NewTime(s.Now.Std().Truncate(time.Second))
	next.Status.CountedAt = &now
	if m := findMemory(k.ledgers.remembered(), x.Budget); m != nil && i >= 0 {
		look := gpubudget.Look(k.cfg.Policy, s, s.Budgets[i:i+1], func(string) *policy.BudgetMemory { return m })
		if err := k.fill(ctx, s, &s.Budgets[i], m, &look[0], &podLists{}, next); err != nil {
			return err
		}
	}
	next.Status.Gate = v1alpha1.GateOpen
	if x.Closed {
		next.Status.Gate = v1alpha1.GateClosed
	} else {
		next.Status.ReopensAt = nil
	}
	if err := k.patch(ctx, b, next); err != nil {
		return fmt.Errorf("writing the gate of GPUBudget %s: %w", x.Budget, err)
	}
	if b.Status.Gate != next.Status.Gate {
		k.cfg.Log.Info("gate", "budget", x.Budget, "gate", next.Status.Gate, "why", x.Why.Text)
		k.event(next, x.Closed, "Gate"+string(next.Status.Gate), x.Why.Text)
	}
	return nil
}

// budget reads a GPUBudget from the API server, since the cache may lack recent writes.
func (k *Enforcer) budget(ctx context.Context, name string) (*v1alpha1.GPUBudget, error) {
	b := &v1alpha1.GPUBudget{}
	namespace, rest, _ := strings.Cut(name, "/")
	if err := k.reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: rest}, b); err != nil {
		return nil, fmt.Errorf("reading GPUBudget %s: %w", name, err)
	}
	return b, nil
}

// event creates an Event about a budget.
func (k *Enforcer) event(b *v1alpha1.GPUBudget, warn bool, reason, text string) {
	if k.cfg.Events == nil {
		return
	}
	kind := corev1.EventTypeNormal
	if warn {
		kind = corev1.EventTypeWarning
	}
	k.cfg.Events.Eventf(b, nil, kind, reason, "Gate", "%s", text)
}

// sameSpec reports whether two budgets are the same object with the same specification.
func sameSpec(a, b policy.Budget) bool {
	a.Closed, b.Closed = false, false
	return reflect.DeepEqual(a, b)
}

// changed returns the [backend.Held] for a budget that has changed since the decision.
func changed(budget string) error {
	return backend.Hold("BudgetChanged", "GPUBudget %s has changed since the decision", budget)
}

// confirm reads a budget from the API server. It returns a [backend.Held] unless the budget has not
// changed since the decision, prescribes action, and has a closed gate.
func (k *Enforcer) confirm(ctx context.Context, s *policy.Snapshot, budget string,
	action policy.BudgetAction) (*policy.Budget, error) {
	o, err := k.budget(ctx, budget)
	if apierrors.IsNotFound(err) {
		return nil, backend.Hold("BudgetGone", "GPUBudget %s was deleted since the decision", budget)
	}
	if err != nil {
		return nil, err
	}
	now, err := Read(o)
	i := findBudget(s, budget)
	switch {
	case err != nil, now.Action != action, i >= 0 && !sameSpec(now, s.Budgets[i]):
		return nil, changed(budget)
	case !now.Closed:
		return nil, backend.Hold("GateOpen", "the gate of %s is open, so it admits pods again", budget)
	}
	return &now, nil
}

// confirmGone returns a [backend.Held] if a Job that was suspended for a budget must not resume:
// the budget has changed since the decision, or it was missing from the snapshot although it exists
// and keeps Jobs suspended.
func (k *Enforcer) confirmGone(ctx context.Context, s *policy.Snapshot, budget string) error {
	o, err := k.budget(ctx, budget)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	now, err := Read(o)
	switch i := findBudget(s, budget); {
	case i >= 0 && !sameSpec(now, s.Budgets[i]), i < 0 && err == nil && now.Closed && now.Action == policy.BudgetPause:
		return changed(budget)
	}
	return nil
}

// Pause suspends or resumes a Job with spec.suspend. It returns a [backend.Held] for a Job that
// another controller, such as Kueue, suspends and resumes.
func (k *Enforcer) Pause(ctx context.Context, s *policy.Snapshot, x *policy.Pause) error {
	if !k.enforcing() {
		return errNotEnforcing
	}
	w := &s.Workloads[x.Workload]
	if w.Kind != policy.KindJob {
		return backend.Hold("NotAJob", "%s is not a Job, and only Jobs can be suspended", w.Name)
	}
	if err := k.ledgers.saveBefore(ctx, x.Budget); err != nil {
		return err
	}
	namespace, name, _ := strings.Cut(w.Name, "/")
	var job batchv1.Job
	if err := k.reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &job); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("reading Job %s: %w", w.Name, err))
	}
	if w.UID != "" && w.UID != string(job.UID) {
		return nil // another Job with its name
	}
	next, err := paused(&job, x)
	if next == nil || err != nil {
		return err
	}
	if x.Paused {
		_, err = k.confirm(ctx, s, x.Budget, policy.BudgetPause)
	} else {
		err = k.confirmGone(ctx, s, x.Budget)
	}
	if err != nil {
		return err
	}
	patch := client.MergeFromWithOptions(&job, client.MergeFromWithOptimisticLock{})
	if err := k.client.Patch(ctx, next, patch, fieldOwner); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("suspending Job %s (%t) for %s: %w", w.Name, x.Paused, x.Budget, err)
	}
	k.cfg.Log.Info("job", "job", w.Name, "suspended", x.Paused, "budget", x.Budget, "why", x.Why.Text)
	return nil
}

// paused returns the changed job; nil if no change is necessary or Spotter may not change it.
func paused(job *batchv1.Job, x *policy.Pause) (*batchv1.Job, error) {
	suspended := ptr.Deref(job.Spec.Suspend, false)
	_, ours := job.Annotations[PausedBy]
	if x.Paused == suspended || suspended && !ours {
		return nil, nil
	}
	if x.Paused {
		if who := suspender(job); who != "" {
			return nil, backend.Hold("SuspendedByOther", "Job %s/%s is suspended and resumed by %s, which would undo it",
				job.Namespace, job.Name, who)
		}
	}
	next := job.DeepCopy()
	next.Spec.Suspend = &x.Paused
	delete(next.Annotations, PausedBy)
	if x.Paused {
		metav1.SetMetaDataAnnotation(&next.ObjectMeta, PausedBy, x.Budget)
	}
	return next, nil
}

// suspender returns the name of another controller that suspends a job; empty if no other
// controller does.
func suspender(job *batchv1.Job) string {
	if job.Labels[queueName] != "" {
		return "Kueue"
	}
	if by := job.Spec.ManagedBy; by != nil && *by != batchv1.JobControllerName {
		return *by
	}
	if c := metav1.GetControllerOf(job); c != nil && c.Kind != "CronJob" {
		return c.Kind + " " + c.Name
	}
	return ""
}

// Evict evicts a pod, with the grace period of the budget if it has one. If a PodDisruptionBudget
// refuses the eviction, Evict returns nil, and the policy requests it again. The GPUBudget is read
// again for each pod, since a user may have deleted or raised it in the meantime. A pod that its
// controller would recreate is evicted only if a closed gate keeps the new pod out.
//
// The client's transport must remove Retry-After from responses to evictions, as that of live/limit
// does: otherwise client-go would wait ten times for that long and delay the step.
func (k *Enforcer) Evict(ctx context.Context, s *policy.Snapshot, x *policy.Evict) error {
	if !k.enforcing() {
		return errNotEnforcing
	}
	if err := k.ledgers.saveBefore(ctx, x.Budget); err != nil {
		return err
	}
	name := s.Pods[x.Pod].Name
	namespace, rest, _ := strings.Cut(name, "/")
	var pod corev1.Pod
	if err := k.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: rest}, &pod); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("reading pod %s: %w", name, err))
	}
	if pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return nil
	}
	if uid := s.Pods[x.Pod].UID; uid != "" && uid != string(pod.UID) {
		return nil // another pod with its name, which has not used the budget
	}
	if x.Budget != "" {
		if err := k.behindGate(ctx, s, &pod, x.Budget); err != nil {
			return err
		}
	}
	var grace *int64
	if x.HasGrace {
		grace = ptr.To(int64(x.Grace.Seconds()))
	}
	switch reply := drain.Evict(ctx, k.client, &pod, grace, false); reply.Answer {
	case drain.AnswerEvicted:
		k.cfg.Log.Info("evicted", "pod", name, "budget", x.Budget, "why", x.Why.Text)
	case drain.AnswerGone, drain.AnswerBlocked:
	case drain.AnswerSeveral:
		return backend.Hold("TwoDisruptionBudgets", "pod %s has more than one PodDisruptionBudget and cannot be evicted", name)
	default:
		return fmt.Errorf("evicting pod %s for %s: %w", name, x.Budget, reply.Err)
	}
	return nil
}

// behindGate returns a [backend.Held] if the budget no longer requires the eviction of a pod, or if
// the pod would be recreated.
func (k *Enforcer) behindGate(ctx context.Context, s *policy.Snapshot, pod *corev1.Pod, budget string) error {
	b, err := k.confirm(ctx, s, budget, policy.BudgetEvict)
	if err != nil {
		return err
	}
	if !b.Selector.Matches(kube.Labels(pod.Labels)) {
		return backend.Hold("NotCounted", "the pod %s/%s has no longer labels that %s selects", pod.Namespace,
			pod.Name, budget)
	}
	if metav1.GetControllerOf(pod) == nil {
		return nil
	}
	gated, err := k.gated(ctx, pod.Namespace)
	if err == nil && !gated {
		err = backend.Hold("NamespaceNotGated", "namespace %s has no label %s=%s, so the pod %s would be recreated",
			pod.Namespace, GateLabel, GateEnabled, pod.Name)
	}
	return err
}
