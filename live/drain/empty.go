package drain

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/spotter-dev/spotter/policy/figures"
)

// The times of retries that no configuration changes.
const (
	// askAgain is how long an evicted pod may look as if nothing had happened
	// before it is asked for once more.
	askAgain = 30 * time.Second

	// urgentRetry is the time between two tries where every second counts. Of a pod that
	// is refused it doubles up to urgentRetryMax, so that pods that were never asked for
	// have their turn.
	urgentRetry    = time.Second
	urgentRetryMax = 4 * time.Second
)

// evictAll asks for the eviction of those of pods whose turn it is. It returns
// the phase that follows.
func (r *round) evictAll(ctx context.Context, d *drain, pods []*corev1.Pod) (Phase, error) {
	for _, pod := range pods {
		if !d.urgent() && r.overdue() {
			break
		}
		t := d.try(pod)
		if !r.evictor.turn(d, pod, t) {
			continue
		}
		reply, asked, err := r.evictor.ask(ctx, r.view, d, pod, t)
		if err != nil {
			return d.Phase, err
		}
		if !asked {
			continue
		}
		if m := r.cfg.Meter; m != nil {
			m.Evicted(d.Pool, reply.Answer)
		}
		if next := r.evictor.heed(d, pod, t, reply); next != d.Phase {
			return next, nil
		}
	}
	d.cause = d.waitsFor(pods)
	return d.Phase, nil
}

func (d *drain) try(pod *corev1.Pod) *try {
	t, ok := d.tries[pod.UID]
	if !ok {
		t = &try{}
		d.tries[pod.UID] = t
	}
	return t
}

// An evictor asks for the eviction of single pods.
type evictor struct {
	cfg       *Config
	api       *clusterAPI
	evictions *evictionLog
}

// turn reports whether pod is to be asked for now.
func (e *evictor) turn(d *drain, pod *corev1.Pod, t *try) bool {
	if e.api.now().Before(t.retryAt) {
		return false
	}
	late := d.urgent() && t.grace == 0 // it was not yet given a shorter grace
	if pod.DeletionTimestamp != nil {
		return late && pod.DeletionTimestamp.After(d.ReclaimAt.Std())
	}
	return t.asked.IsZero() || e.api.now().Sub(t.asked) >= askAgain
}

// ask asks for the eviction of pod, unless its workload cannot spare it.
func (e *evictor) ask(ctx context.Context, v *view, d *drain, pod *corev1.Pod, t *try) (reply Reply, asked bool, err error) {
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
		reply = Evict(ctx, e.api.writer(d), pod, grace, false)
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

// heed notes what became of the eviction of pod and returns the phase to go to.
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
	case AnswerGone:
		t.asked, t.retryAt = e.api.now(), time.Time{} // the cache will show it
	case AnswerSeveral, AnswerForbidden:
		if d.urgent() {
			t.retryAt = e.api.now().Add(askAgain) // it goes down with the node
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

// waitsFor says in a sentence what keeps the node from being empty.
func (d *drain) waitsFor(pods []*corev1.Pod) string {
	for _, pod := range pods {
		t := d.tries[pod.UID]
		if pod.DeletionTimestamp == nil && t != nil && t.asked.IsZero() && t.answer.Message != "" {
			return fmt.Sprintf("%s left; %s/%s: %s", figures.Count(len(pods), "pod"), pod.Namespace, pod.Name, t.answer.Message)
		}
	}
	for _, pod := range pods {
		if pod.DeletionTimestamp != nil {
			return fmt.Sprintf("%s left; %s/%s is terminating and was due to end by %s", figures.Count(len(pods), "pod"), pod.Namespace, pod.Name,
				pod.DeletionTimestamp.UTC().Format(time.RFC3339))
		}
	}
	return figures.Count(len(pods), "pod") + " left"
}
