package drain

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy/figures"
)

// Retry intervals that are not configurable.
const (
	// askAgain is how long an evicted pod may remain unchanged before its eviction is requested
	// again.
	askAgain = 30 * time.Second

	// urgentRetry is the retry interval under a notice. For a pod whose eviction is refused it
	// doubles up to urgentRetryMax, so that other pods have their turn.
	urgentRetry    = time.Second
	urgentRetryMax = 4 * time.Second
)

// evictAll requests the evictions that are due. It returns the next phase.
func (r *round) evictAll(ctx context.Context, d *drain, pods []*corev1.Pod) (Phase, error) {
	if back := d.returned(pods); back != nil && !d.urgent() {
		return d.fail("ComesBack", fmt.Sprintf("pod %s/%s is created on the node again after each eviction", back.Namespace,
			back.Name)), nil
	}
	asked := false
	for _, pod := range pods {
		if !d.urgent() && r.overdue() {
			break
		}
		t := d.tries[pod.UID]
		if !r.evictor.turn(d, pod, t) {
			continue
		}
		if !asked && !d.urgent() {
			asked = true
			if err := r.mayEvict(ctx, d, pods); err != nil {
				return d.heldBy(err)
			}
		}
		reply, asked, err := r.evictor.ask(ctx, r.view, d, pod, t)
		if err != nil {
			return d.Phase, err
		}
		if !asked {
			continue
		}
		if m := r.cfg.Meter; m != nil {
			m.Evicted(d.node, types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, d.Pool, reply.Answer)
		}
		if next := r.evictor.heed(d, pod, t, reply); next != d.Phase {
			return next, nil
		}
	}
	d.cause = d.waitsFor(pods)
	return d.Phase, nil
}

// mayEvict returns a [backend.Held] if the node or one of its pods must no longer be disrupted
// voluntarily. It reads the node from the API server. A changed pod is detected by the eviction,
// which applies only to the version of the pod that was read.
func (r *round) mayEvict(ctx context.Context, d *drain, pods []*corev1.Pod) error {
	node, err := r.api.fresh(ctx, d)
	if err != nil {
		return err
	}
	if err := r.view.checkProtection(ctx, node, d.Pool); err != nil {
		return err
	}
	for _, pod := range pods {
		if pod.DeletionTimestamp != nil {
			continue
		}
		if err := r.view.pinned(ctx, pod); err != nil {
			return err
		}
	}
	return nil
}

// heldBy turns the drain around if err is a [backend.Held], and returns other errors.
func (d *drain) heldBy(err error) (Phase, error) {
	if held := new(backend.Held); errors.As(err, &held) {
		return d.fail(held.Reason, held.Message), nil
	}
	return d.Phase, err
}

// returnsMax is the number of pods of evicted workloads that may be created on the node again
// before its drain is undone.
const returnsMax = 3

// returned adds new pods to d.tries, and returns one of them if too many have been created again:
// their workload tolerates the taints of the drain.
func (d *drain) returned(pods []*corev1.Pod) *corev1.Pod {
	var last *corev1.Pod
	for _, pod := range pods {
		if d.tries[pod.UID] != nil {
			continue
		}
		d.tries[pod.UID] = &try{}
		if at, evicted := d.evicted[workloadKey(pod)]; evicted && pod.CreationTimestamp.After(at) {
			d.returns++
			last = pod
		}
	}
	if d.returns <= returnsMax {
		return nil
	}
	return last
}

// workloadKey identifies the controller that recreates p or, without a controller, p by its name.
func workloadKey(p *corev1.Pod) string {
	if o := metav1.GetControllerOf(p); o != nil {
		return string(o.UID)
	}
	return p.Namespace + "/" + p.Name
}

// An evictor requests the evictions of single pods.
type evictor struct {
	cfg       *Config
	api       *clusterAPI
	evictions *evictionLog
}

// turn reports whether the eviction of pod should be requested now.
func (e *evictor) turn(d *drain, pod *corev1.Pod, t *try) bool {
	if e.api.now().Before(t.retryAt) {
		return false
	}
	late := d.urgent() && t.grace == 0 // it was not given a shorter grace period yet
	if pod.DeletionTimestamp != nil {
		return late && pod.DeletionTimestamp.After(d.ReclaimAt.Std())
	}
	return t.asked.IsZero() || e.api.now().Sub(t.asked) >= askAgain
}

// ask requests the eviction of pod. In a gentle drain, it does so only if the workload keeps enough
// ready pods. asked reports whether the eviction was requested.
func (e *evictor) ask(ctx context.Context, v *view, d *drain, pod *corev1.Pod, t *try) (reply Reply, asked bool,
	err error) {
	var w *workload
	if d.Gentle && !d.urgent() {
		if w, err = v.spare(ctx, pod); err != nil {
			return Reply{}, false, err
		}
		if w == nil {
			t.answer = Reply{Answer: AnswerBlocked, Message: "its workload has too few other ready pods"}
			return Reply{}, false, nil
		}
	}
	var grace *int64
	if d.urgent() {
		if g := shortened(pod, e.api.now(), d.ReclaimAt.Std()); g < graceOf(pod) {
			grace = &g
		}
	}
	err = e.api.write(ctx, d, func(ctx context.Context) error {
		if d.urgent() {
			reply = Evict(ctx, e.api.writer(d), pod, grace, false)
		} else {
			reply = evictUnchanged(ctx, e.api.writer(d), pod)
		}
		return nil
	})
	if (err != nil || reply.Answer != AnswerEvicted) && w != nil {
		v.unspare(w, pod)
	}
	if err != nil {
		return Reply{}, false, err
	}
	if grace != nil && reply.Answer == AnswerEvicted {
		t.grace = *grace
	}
	return reply, true, nil
}

// heed records the result of the eviction of pod and returns the next phase.
func (e *evictor) heed(d *drain, pod *corev1.Pod, t *try, reply Reply) Phase {
	retry := e.cfg.EvictRetry
	if d.urgent() {
		retry = min(urgentRetry<<min(t.refused, 8), urgentRetryMax)
		t.refused++
	}
	t.answer = reply
	t.retryAt = e.api.now().Add(max(retry, reply.After))
	switch reply.Answer {
	case AnswerEvicted:
		t.asked, t.retryAt = e.api.now(), time.Time{}
		e.evictions.add(pod.UID)
		if _, before := d.evicted[workloadKey(pod)]; !before {
			d.evicted[workloadKey(pod)] = e.api.now()
		}
	case AnswerGone:
		t.retryAt = e.api.now().Add(e.cfg.Interval) // until the cache shows it
	case AnswerSeveral, AnswerForbidden:
		if d.urgent() {
			t.retryAt = e.api.now().Add(askAgain) // the pod ends with the node
			break
		}
		reason := "SeveralBudgets"
		if reply.Answer == AnswerForbidden {
			reason = "EvictionForbidden"
		}
		return d.fail(reason, fmt.Sprintf("pod %s/%s cannot be evicted: %s", pod.Namespace, pod.Name, reply.Message))
	}
	return d.Phase
}

// waitsFor describes what the drain waits for, as a sentence.
func (d *drain) waitsFor(pods []*corev1.Pod) string {
	for _, pod := range pods {
		t := d.tries[pod.UID]
		if pod.DeletionTimestamp == nil && t != nil && t.asked.IsZero() && t.answer.Message != "" {
			return fmt.Sprintf("%s left; %s/%s: %s", figures.Count(len(pods), "pod"), pod.Namespace, pod.Name, t.answer.Message)
		}
	}
	for _, pod := range pods {
		if pod.DeletionTimestamp != nil {
			return fmt.Sprintf("%s left; %s/%s is terminating and was due to end by %s", figures.Count(len(pods), "pod"),
				pod.Namespace, pod.Name,
				pod.DeletionTimestamp.UTC().Format(time.RFC3339))
		}
	}
	return figures.Count(len(pods), "pod") + " left"
}
