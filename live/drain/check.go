package drain

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/live/backend"
)

// Check returns a [backend.Held] if the drain of a node would not begin now, as
// far as can be known without asking the API server for anything: it is what
// shadow mode knows.
func (p *Reconciler) Check(ctx context.Context, node string) error {
	r := p.newRound()
	pods, err := r.checkNode(ctx, node)
	if err != nil {
		return err
	}
	for _, pod := range pods {
		mine, err := r.budgetsOf(ctx, pod)
		if err != nil {
			return err
		}
		if err := blocked(pod, mine); err != nil {
			return err
		}
	}
	return nil
}

// checkNode returns the pods that would have to leave a node, or a
// [backend.Held] if there is something about it that no wait would change.
func (r *round) checkNode(ctx context.Context, name string) ([]*corev1.Pod, error) {
	n := &corev1.Node{}
	if err := r.p.client.Get(ctx, client.ObjectKey{Name: name}, n); err != nil {
		return nil, fmt.Errorf("reading node %s: %w", name, err)
	}
	if _, ours := readState(n); !ours {
		if n.Spec.Unschedulable {
			return nil, backend.Hold("Cordoned", "node %s was cordoned by somebody else", name)
		}
		if _, ok := n.Annotations[annotationDoNotDisrupt]; ok {
			return nil, backend.Hold("DoNotDisrupt", "node %s must not be disrupted", name)
		}
	}
	pods, err := r.leaving(ctx, name)
	if err != nil {
		return nil, err
	}
	return pods, r.checkPods(ctx, pods)
}

// checkPods returns a [backend.Held] if one of pods cannot be moved by choice.
func (r *round) checkPods(ctx context.Context, pods []*corev1.Pod) error {
	for _, pod := range pods {
		if pod.DeletionTimestamp != nil {
			continue
		}
		if err := pinned(pod, r.now()); err != nil {
			return err
		}
		mine, err := r.budgetsOf(ctx, pod)
		if err != nil {
			return err
		}
		if err := undrainable(pod, mine); err != nil {
			return err
		}
	}
	return nil
}

// rehearse asks the API server what it would answer to the eviction of the pods.
// It returns the message of a refusal that may pass, and a [backend.Held] for one
// that does not.
func (r *round) rehearse(ctx context.Context, d *drain, pods []*corev1.Pod) (wait string, err error) {
	for _, pod := range pods {
		if pod.DeletionTimestamp != nil {
			continue
		}
		var reply Reply
		_ = r.call(ctx, func(ctx context.Context) error {
			reply = Evict(ctx, r.writer(d), pod, nil, true)
			return nil
		})
		switch reply.Answer {
		case AnswerSeveral:
			return "", backend.Hold("SeveralBudgets", "pod %s/%s cannot be evicted: %s", pod.Namespace, pod.Name, reply.Message)
		case AnswerForbidden:
			return "", backend.Hold("EvictionForbidden", "pod %s/%s must not be evicted: %s", pod.Namespace, pod.Name, reply.Message)
		case AnswerBlocked, AnswerFailed:
			return fmt.Sprintf("pod %s/%s cannot be evicted now: %s", pod.Namespace, pod.Name, reply.Message), nil
		}
	}
	return "", nil
}

// leaving returns the pods of a node that have to leave it, by the cache, in the
// order in which they are to go. They are shared and must not be changed.
func (r *round) leaving(ctx context.Context, node string) ([]*corev1.Pod, error) {
	return r.list(ctx, r.p.client, node, client.MatchingFields{IndexPodNode: node}, client.UnsafeDisableDeepCopy)
}

// left returns them by the API server.
func (r *round) left(ctx context.Context, node string) ([]*corev1.Pod, error) {
	return r.list(ctx, r.p.reader, node, &client.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node)})
}

func (r *round) list(ctx context.Context, c client.Reader, node string, opts ...client.ListOption) ([]*corev1.Pod, error) {
	all := &corev1.PodList{}
	if err := r.call(ctx, func(ctx context.Context) error { return c.List(ctx, all, opts...) }); err != nil {
		return nil, fmt.Errorf("listing the pods of node %s: %w", node, err)
	}
	var pods []*corev1.Pod
	for i := range all.Items {
		if pod := &all.Items[i]; !stays(pod) {
			pods = append(pods, pod)
		}
	}
	sortPods(pods)
	return pods, nil
}

// budgetsOf returns the disruption budgets that select pod.
func (r *round) budgetsOf(ctx context.Context, pod *corev1.Pod) ([]*policyv1.PodDisruptionBudget, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all, ok := r.budgets[pod.Namespace]
	if !ok {
		list := &policyv1.PodDisruptionBudgetList{}
		err := r.call(ctx, func(ctx context.Context) error {
			return r.p.client.List(ctx, list, client.InNamespace(pod.Namespace))
		})
		if err != nil {
			return nil, fmt.Errorf("listing the disruption budgets of %s: %w", pod.Namespace, err)
		}
		all = list.Items
		r.budgets[pod.Namespace] = all
	}
	return budgetsOf(pod, all), nil
}

// check is the phase before anything is done.
func (r *round) check(ctx context.Context, d *drain) (Phase, error) {
	if d.urgent() {
		return PhasePreparing, nil
	}
	if r.now().Before(d.retryAt) {
		return d.Phase, nil
	}
	if d.late(r.now()) {
		return d.fail("Deadline", "its time was over before it could begin"), nil
	}
	wait, err := r.admit(ctx, d)
	if held := new(backend.Held); errors.As(err, &held) {
		return d.fail(held.Reason, held.Message), nil
	}
	if err != nil {
		wait = err.Error()
	}
	if wait == "" {
		return PhasePreparing, nil
	}
	if r.now().Sub(d.began) >= r.p.cfg.CheckMax {
		return d.fail("BudgetAllowsNone", wait), nil
	}
	d.cause, d.retryAt = wait, r.now().Add(r.p.cfg.EvictRetry)
	return d.Phase, err
}

// admit returns what the drain has to wait for before its node is cordoned, and
// a [backend.Held] where no wait helps.
func (r *round) admit(ctx context.Context, d *drain) (wait string, err error) {
	pods, err := r.checkNode(ctx, d.node)
	if err != nil {
		return "", err
	}
	return r.rehearse(ctx, d, pods)
}
