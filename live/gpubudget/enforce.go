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

// PausedBy is the annotation of Jobs that were suspended for a budget; its value is the budget.
// Spotter does not resume a Job without it.
const PausedBy = "spotter.dev/paused-by"

// queueName is the label of Jobs that Kueue suspends and resumes.
const queueName = "kueue.x-k8s.io/queue-name"

// errNotEnforcing is the answer to orders that come while nothing may be enforced.
var errNotEnforcing = backend.Hold("Shadow", "budgets are observed but not enforced")

// Gate opens or closes the gate of a budget in its status, which the admission
// policy reads, and writes the rest of the status with it.
func (k *Enforcer) Gate(ctx context.Context, s *policy.Snapshot, x *policy.Gate) error {
	if !k.enforcing() {
		return errNotEnforcing
	}
	if err := k.ledgers.saveBefore(ctx, x.Budget); err != nil {
		return err
	}
	b, err := k.budget(ctx, x.Budget)
	if apierrors.IsNotFound(err) {
		return nil // nothing is left to be kept out
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

// budget reads the object of a budget as the API server has it: the cache may not
// yet hold what was written a moment ago.
func (k *Enforcer) budget(ctx context.Context, name string) (*v1alpha1.GPUBudget, error) {
	b := &v1alpha1.GPUBudget{}
	namespace, rest, _ := strings.Cut(name, "/")
	if err := k.reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: rest}, b); err != nil {
		return nil, fmt.Errorf("reading GPUBudget %s: %w", name, err)
	}
	return b, nil
}

// event makes an Event of what happened to a budget.
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

// sameSpec reports whether two budgets are one object with the same specification.
func sameSpec(a, b policy.Budget) bool {
	a.Closed, b.Closed = false, false
	return reflect.DeepEqual(a, b)
}

// changed holds what was decided for a budget that has changed since.
func changed(budget string) error {
	return backend.Hold("BudgetChanged", "GPUBudget %s has changed since the decision", budget)
}

// confirm reads a budget from the API server and returns why action is not taken for it
// now: it must exist as it was decided on, and its gate must be closed.
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

// confirmGone returns why a Job that was suspended for a budget does not resume: the budget
// is not as it was decided on, or was missing from the snapshot though it exists and keeps
// Jobs suspended.
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

// Pause suspends or resumes a Job by spec.suspend. A Job that another controller suspends and
// starts, such as Kueue, is held.
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
		return nil // another Job of its name
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

// paused returns the job as it should be; nil if it is already so or Spotter may not change it.
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

// suspender names the other controller that suspends a job; empty if there is no such controller.
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

// Evict evicts a pod, with the grace of the budget where it states one. That a
// disruption budget refuses is an answer: the policy asks again. The budget is read again
// for each pod, since a person may have deleted or raised it meanwhile. A pod that its
// controller would create again is only evicted where a closed gate keeps it out.
//
// The client's transport must take Retry-After from answers to evictions, as that of
// live/limit does: client-go would wait for it ten times over and hold up the step.
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
		return nil // another pod of its name, which has not used the budget
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

// behindGate holds the eviction of a pod for a budget that no longer requires it, or of a pod that
// would be recreated.
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
