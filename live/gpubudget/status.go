package gpubudget

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/gpubudget"
	"github.com/spotter-dev/spotter/policy/kube"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// confirmEvery is the maximum time between confirmations of a closed gate. The admission policy
// treats a gate that was not confirmed for half an hour as open, since without a controller it
// would never open.
const confirmEvery = 10 * time.Minute

// leftOutMax is the maximum number of budgets beyond [NamespaceMax] whose status one report writes,
// so that a flood of them does not delay the others.
const leftOutMax = 20

// Report writes the ledgers of the memory that was last passed to [Enforcer.Save]. It also updates
// the status of every budget after the step on s, unless another release does so. It writes several
// objects at a time, and only changed ones. An error for one budget does not prevent the others
// from being written; all errors are returned together.
func (k *Enforcer) Report(ctx context.Context, s *policy.Snapshot) error {
	saved := k.ledgers.saveAll(ctx, false)
	if k.cfg.Idle != nil && k.cfg.Idle() {
		return saved
	}
	var list v1alpha1.GPUBudgetList
	if err := k.client.List(ctx, &list); err != nil {
		return errors.Join(saved, fmt.Errorf("listing GPUBudgets: %w", err))
	}
	x := report{s: s, memory: policy.Memory{Budgets: k.ledgers.remembered()}}
	x.looks = gpubudget.Look(k.cfg.Policy, s, s.Budgets, x.memory.Budget)
	all, errs := make([]policy.Budget, len(list.Items)), make([]error, len(list.Items))
	for i := range list.Items {
		all[i], errs[i] = Read(&list.Items[i])
	}
	x.enforced = Table(all)
	return errors.Join(saved, sideBySide(len(all), func(i int) error {
		return k.report(ctx, &x, &list.Items[i],
			errs[i])
	}))
}

// A report contains the sources of the statuses of all budgets after a step.
type report struct {
	s        *policy.Snapshot
	memory   policy.Memory
	looks    []gpubudget.Outlook // indexed like the budgets of s
	enforced []policy.Budget     // existing budgets, except those beyond NamespaceMax
	pods     podLists
	leftOut  atomic.Int32 // number of statuses considered for budgets beyond NamespaceMax
}

// report writes the status of one budget, if it has changed enough. invalid is the reason that the
// budget is invalid; nil if it is valid.
func (k *Enforcer) report(ctx context.Context, x *report, b *v1alpha1.GPUBudget, invalid error) error {
	next := b.DeepCopy()
	st := &next.Status
	st.ObservedGeneration = b.Generation
	name := b.Namespace + "/" + b.Name
	_, enforced := placeOf(x.enforced, name)
	switch {
	case invalid != nil:
		st.Gate, st.ReopensAt = v1alpha1.GateOpen, nil
		k.condition(next, v1alpha1.ConditionReady, false, "Invalid",
			invalid.Error()+"; nothing is counted until it is valid, and what was used is kept")
	case !enforced:
		st.Gate, st.ReopensAt = v1alpha1.GateOpen, nil
		k.condition(next, v1alpha1.ConditionReady, false, "TooMany",
			fmt.Sprintf("of the GPUBudgets of a namespace the %d oldest are enforced", NamespaceMax))
	default:
		i, m := findBudget(x.s, name), x.memory.Budget(name)
		if i < 0 || m == nil || x.s.Budgets[i].Invalid {
			return nil // the next step includes it
		}
		if err := k.fill(ctx, x.s, &x.s.Budgets[i], m, &x.looks[i], &x.pods, next); err != nil {
			return err
		}
	}
	same := equality.Semantic.DeepEqual(&b.Status, st)
	if same || !k.due(&b.Status, st) || !enforced && x.leftOut.Add(1) > leftOutMax {
		return nil
	}
	if err := k.patch(ctx, b, next); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("writing the status of GPUBudget %s: %w", name, err))
	}
	return nil
}

// patch writes the changed fields of a status, if any. There is no other writer, so an outdated
// cache causes at worst a second write.
func (k *Enforcer) patch(ctx context.Context, old, next *v1alpha1.GPUBudget) error {
	if equality.Semantic.DeepEqual(old.Status, next.Status) {
		return nil
	}
	return k.client.Status().Patch(ctx, next, client.MergeFrom(old), fieldOwner)
}

// findMemory returns the memory of a budget; nil if the budget has no memory.
func findMemory(all []policy.BudgetMemory, name string) *policy.BudgetMemory {
	m := policy.Memory{Budgets: all}
	return m.Budget(name)
}

// findBudget returns the index of a budget in s; negative if it is not in s.
func findBudget(s *policy.Snapshot, name string) int {
	if i, found := placeOf(s.Budgets, name); found {
		return i
	}
	return -1
}

// placeOf returns the index of a budget in a list that is ascending by name, and whether it was
// found.
func placeOf(all []policy.Budget, name string) (int, bool) {
	return slices.BinarySearchFunc(all, name, func(b policy.Budget, name string) int { return cmp.Compare(b.Name, name) })
}

// fill sets the fields of the status of o that depend on the usage of the budget.
func (k *Enforcer) fill(
	ctx context.Context, s *policy.Snapshot, b *policy.Budget, m *policy.BudgetMemory, look *gpubudget.Outlook, pods *podLists, o *v1alpha1.GPUBudget,
) error {
	st := &o.Status
	used, cost := float64(m.Used)/(1000*3.6e6), m.Cost
	st.TrackedPods = int32(look.Pods)
	if b.LiveObjects {
		all, err := pods.of(ctx, k.client, b.Namespace)
		if err != nil {
			return err
		}
		account := Count(b, o.Spec.ResourceName, all, heldDevices(s, b), s.Now.Std())
		used, st.TrackedPods = account.Consumed, int32(account.Tracked)
	}
	st.Consumed = v1alpha1.Usage{GPUHours: hours(used)}
	st.Remaining = v1alpha1.Usage{}
	if b.HasGPUHours {
		st.Remaining.GPUHours = hours(max(0, b.GPUHours-used))
	}
	if b.HasDollars {
		st.Consumed.Dollars, st.Remaining.Dollars = dollars(cost), dollars(max(0, b.Dollars-cost))
	}
	now := metav1.NewTime(s.Now.Std().Truncate(time.Second))
	st.CountedAt = &now
	st.Gate, st.ReopensAt = v1alpha1.GateOpen, nil
	if m.Closed {
		st.Gate = v1alpha1.GateWouldClose
		if k.enforcing() {
			st.Gate = v1alpha1.GateClosed
		}
		st.ReopensAt = instant(look.Reopens)
	}
	ready, reason, message := true, "Counting", "its usage is counted"
	if why := notCounted(b.Resource, look); why != "" {
		ready, reason, message = false, "NotCounted", why
	}
	k.condition(o, v1alpha1.ConditionReady, ready, reason, message)
	if m.Over != 0 {
		k.condition(o, v1alpha1.ConditionSpent, true, "QuotaReached", "since "+m.Over.Std().Format(time.RFC3339))
	} else {
		k.condition(o, v1alpha1.ConditionSpent, false, "WithinQuota", "usage in the window is below the quota")
	}
	return k.enforced(ctx, o)
}

// heldDevices returns the devices of the pods in the snapshot that hold some under other resource
// names than the budget's.
func heldDevices(s *policy.Snapshot, b *policy.Budget) map[types.UID]float64 {
	all := map[types.UID]float64{}
	for i := range s.Pods {
		p := &s.Pods[i]
		if p.Phase == policy.PodGone {
			continue
		}
		if t := &s.Templates[p.Template]; len(t.Devices) > 0 {
			all[types.UID(p.UID)] = float64(b.Counts(t)) / 1000
		}
	}
	return all
}

// notCounted describes the usage that a budget does not count, and the reason; empty if it counts
// everything.
func notCounted(resource string, look *gpubudget.Outlook) string {
	switch of, counted := kube.SliceOf(resource); {
	case counted:
		return fmt.Sprintf("nothing is enforced: requests of %s count in budgets of %s, in parts of a device", resource, of)
	case !kube.Counted(resource):
		return "nothing is enforced: requests of " + resource + " are not counted"
	case look.Uncounted > 0:
		return fmt.Sprintf("devices of %d pods are not counted, such as those of %s: its resource claims or MIG slices cannot be interpreted", look.Uncounted, look.Such)
	}
	return ""
}

// enforced sets the condition that reports whether a closed gate would reject pods.
func (k *Enforcer) enforced(ctx context.Context, o *v1alpha1.GPUBudget) error {
	gated, err := k.gated(ctx, o.Namespace)
	switch {
	case err != nil:
		return err
	case !k.enforcing():
		k.condition(o, v1alpha1.ConditionGateEnforced, false, "Shadow", "budgets are observed but not enforced")
	case !gated:
		k.condition(o, v1alpha1.ConditionGateEnforced, false, "NamespaceNotGated",
			"the namespace has no label "+GateLabel+"="+GateEnabled)
	default:
		k.condition(o, v1alpha1.ConditionGateEnforced, true, "Enabled",
			"a closed gate keeps pods out where the admission policy is installed")
	}
	return nil
}

func (k *Enforcer) condition(o *v1alpha1.GPUBudget, kind string, holds bool, reason, message string) {
	c := metav1.Condition{
		Type: kind, Status: metav1.ConditionFalse, ObservedGeneration: o.Generation, Reason: reason, Message: message,
		LastTransitionTime: metav1.NewTime(k.cfg.Clock.Now()),
	}
	if holds {
		c.Status = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&o.Status.Conditions, c)
}

// due reports whether next must be written instead of old: at once if more than figures has
// changed, otherwise after StatusEvery, or to confirm a closed gate.
func (k *Enforcer) due(old, next *v1alpha1.GPUBudgetStatus) bool {
	a, b := old.DeepCopy(), next.DeepCopy()
	for _, x := range []*v1alpha1.GPUBudgetStatus{a, b} {
		x.CountedAt, x.ReopensAt, x.Consumed, x.Remaining, x.TrackedPods = nil, nil, v1alpha1.Usage{}, v1alpha1.Usage{}, 0
	}
	if !equality.Semantic.DeepEqual(a, b) || old.CountedAt == nil {
		return true
	}
	if next.CountedAt == nil {
		return false
	}
	age := next.CountedAt.Sub(old.CountedAt.Time)
	moved := old.TrackedPods != next.TrackedPods || old.Consumed != next.Consumed || old.Remaining != next.Remaining ||
		!old.ReopensAt.Equal(next.ReopensAt)
	return moved && age >= k.cfg.StatusEvery || next.Gate == v1alpha1.GateClosed && age >= confirmEvery/2
}

// instant returns t in the precision of the API server, rounded up to the second; nil for 0.
func instant(t policy.Time) *metav1.Time {
	if t == 0 {
		return nil
	}
	x := metav1.NewTime(t.Std().Add(time.Second - time.Millisecond).Truncate(time.Second))
	return &x
}

func hours(x float64) string { return strconv.FormatFloat(x, 'f', 3, 64) }

func dollars(m policy.Money) string { return strconv.FormatFloat(m.Float(), 'f', 2, 64) }

// podLists caches the pods of namespaces. The pods are shared with the cache of the client and must
// not be modified.
type podLists struct {
	mu   sync.Mutex
	list map[string][]corev1.Pod
}

func (l *podLists) of(ctx context.Context, c client.Reader, namespace string) ([]corev1.Pod, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if pods, known := l.list[namespace]; known {
		return pods, nil
	}
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the pods of namespace %s: %w", namespace, err)
	}
	if l.list == nil {
		l.list = map[string][]corev1.Pod{}
	}
	l.list[namespace] = pods.Items
	return pods.Items, nil
}
