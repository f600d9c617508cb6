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
	// AnswerEvicted means that the eviction was accepted.
	AnswerEvicted Answer = iota

	// AnswerGone means that the pod no longer exists, has changed, or was replaced by another with
	// its name.
	AnswerGone

	// AnswerBlocked means a temporary refusal because of a PodDisruptionBudget or an overloaded
	// server.
	AnswerBlocked

	// AnswerSeveral means that the pod has more than one PodDisruptionBudget. The API server never
	// evicts such a pod.
	AnswerSeveral

	// AnswerForbidden means that Spotter lacks the permission, or that a webhook refuses.
	AnswerForbidden

	// AnswerFailed means any other error, which may be temporary.
	AnswerFailed
)

// String returns the name used in metrics.
func (a Answer) String() string {
	return [...]string{"evicted", "gone", "blocked", "several-budgets", "forbidden", "failed"}[a]
}

// A Reply is the result of a request for an eviction. After is the delay before a retry that the
// API server suggests; 0 if it suggests none. Message is the message of the API server.
type Reply struct {
	Answer  Answer
	After   time.Duration
	Message string
	Err     error // nil if the pod is evicted
}

// Evict requests the eviction of the pod p, but not of a later pod with its name. A nil grace means
// the pod's own grace period; otherwise it is in seconds. A dry run returns the answer without an
// eviction.
func Evict(ctx context.Context, c client.Client, p *corev1.Pod, grace *int64, dryRun bool) Reply {
	return evict(ctx, c, p, metav1.NewUIDPreconditions(string(p.UID)), grace, dryRun)
}

// evictUnchanged requests the eviction of p in the version that was read. If p has changed since,
// for example because it must no longer be disrupted, the API server refuses.
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

// several is part of the message with which the API server refuses to evict a pod with two
// PodDisruptionBudgets. The error has no reason that a program could compare.
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
