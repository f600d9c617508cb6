package drain

import (
	"context"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// An Answer is the result of a request to evict a pod.
type Answer uint8

// The answers of the API server.
const (
	// AnswerEvicted means that the pod will be gone.
	AnswerEvicted Answer = iota

	// AnswerGone means that it is gone already, has changed, or another has its name.
	AnswerGone

	// AnswerBlocked means that a disruption budget, or an overloaded server,
	// refuses for now.
	AnswerBlocked

	// AnswerSeveral means that the pod has more than one disruption budget, with
	// which the API server never evicts.
	AnswerSeveral

	// AnswerForbidden means that Spotter lacks the right, or that a webhook refuses.
	AnswerForbidden

	// AnswerFailed means anything else. It may pass.
	AnswerFailed
)

// String returns the name used in metrics.
func (a Answer) String() string {
	return [...]string{"evicted", "gone", "blocked", "several-budgets", "forbidden", "failed"}[a]
}

// A Reply is an answer, when to ask again if the API server says so, and its
// words.
type Reply struct {
	Answer  Answer
	After   time.Duration
	Message string
	Err     error // of the request; nil if the pod is evicted
}

// Evict requests the eviction of exactly the pod p, never of a later one of its name. Grace is nil
// for the pod's own grace period. A dry run reports what the answer would be.
func Evict(ctx context.Context, c client.Client, p *corev1.Pod, grace *int64, dryRun bool) Reply {
	return evict(ctx, c, p, metav1.NewUIDPreconditions(string(p.UID)), grace, dryRun)
}

// evictUnchanged requests the eviction of p as it was last read. A later change of it, such as a
// mark that it must not be disrupted, makes the API server refuse.
func evictUnchanged(ctx context.Context, c client.Client, p *corev1.Pod) Reply {
	same := metav1.NewUIDPreconditions(string(p.UID))
	same.ResourceVersion = &p.ResourceVersion
	return evict(ctx, c, p, same, nil, false)
}

func evict(ctx context.Context, c client.Client, p *corev1.Pod, only *metav1.Preconditions, grace *int64,
	dryRun bool) Reply {
	e := &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: only, GracePeriodSeconds: grace},
	}
	opts := []client.SubResourceCreateOption{client.FieldOwner(FieldOwner)}
	if dryRun {
		opts = append(opts, client.DryRunAll)
	}
	named := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}}
	return replyOf(c.SubResource("eviction").Create(ctx, named, e, opts...))
}

// several is how the API server words it that a pod has two budgets. It gives no
// reason that a program could compare.
const several = "more than one PodDisruptionBudget"

func replyOf(err error) Reply {
	if err == nil {
		return Reply{Answer: AnswerEvicted}
	}
	r := Reply{Answer: AnswerFailed, Message: err.Error(), Err: err}
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		r.Answer = AnswerGone
	case apierrors.IsTooManyRequests(err):
		r.Answer = AnswerBlocked
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		// The pod is deleted with its namespace, without an eviction.
		r.Answer = AnswerBlocked
	case apierrors.IsForbidden(err):
		r.Answer = AnswerForbidden
	case code(err) == http.StatusInternalServerError && strings.Contains(r.Message, several):
		r.Answer = AnswerSeveral
	}
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		r.After = time.Duration(seconds) * time.Second
	}
	return r
}

func code(err error) int32 {
	if s, ok := err.(apierrors.APIStatus); ok {
		return s.Status().Code
	}
	return 0
}
