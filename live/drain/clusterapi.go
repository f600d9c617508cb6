package drain

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/live/permit"
)

// A clusterAPI reads and writes the objects of the cluster for drains. Each call has a time limit,
// and each write requires its permit.
type clusterAPI struct {
	cfg    *Config
	client client.Client // reads from the cache
	reader client.Reader // reads from the API server
	marks  *sealer
}

func (a *clusterAPI) now() time.Time { return a.cfg.Clock.Now() }

// decision returns the actions that are currently permitted for a pool.
func (a *clusterAPI) decision(ctx context.Context, pool string) (permit.Decision, error) {
	if a.cfg.Authority == nil {
		return permit.Active, nil
	}
	return a.cfg.Authority.Pool(ctx, pool)
}

// node returns the node of d as it was last read or written. If the cache reports that the node no
// longer exists, the API server must confirm it.
func (a *clusterAPI) node(ctx context.Context, d *drain) (*corev1.Node, error) {
	key := client.ObjectKey{Name: d.node}
	n := &corev1.Node{}
	err := a.call(ctx, func(ctx context.Context) error { return a.client.Get(ctx, key, n) })
	if apierrors.IsNotFound(err) || err == nil && d.uid != "" && n.UID != d.uid {
		n = &corev1.Node{}
		err = a.call(ctx, func(ctx context.Context) error { return a.reader.Get(ctx, key, n) })
	}
	switch {
	case err != nil:
		return nil, err
	case d.uid == "":
		d.uid = n.UID
	case d.uid != n.UID:
		return nil, errOther
	}
	if d.last != nil && older(n, d.last) {
		return d.last, nil
	}
	return n, nil
}

// older reports whether a is an earlier version of b.
func older(a, b *corev1.Node) bool {
	order, err := resourceversion.CompareResourceVersion(a.ResourceVersion, b.ResourceVersion)
	return err == nil && order < 0
}

// fresh reads the node from the API server.
func (a *clusterAPI) fresh(ctx context.Context, d *drain) (*corev1.Node, error) {
	n := &corev1.Node{}
	err := a.call(ctx, func(ctx context.Context) error {
		return a.reader.Get(ctx, client.ObjectKey{Name: d.node}, n)
	})
	if err == nil && n.UID != d.uid {
		err = errOther
	}
	return n, err
}

// mark applies change, which writes the marks of d, to its node. phase is the phase that the marks
// contain.
func (a *clusterAPI) mark(ctx context.Context, d *drain, node *corev1.Node, phase Phase,
	change func(*corev1.Node)) (*corev1.Node, error) {
	err := a.write(ctx, d, func(ctx context.Context) error {
		changed, err := patchNode(ctx, a.writer(d), a.reader, node, change)
		if err == nil {
			node = changed
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	d.last, d.saved, d.reset = node, phase, false
	_, d.kept = readState(node)
	return node, nil
}

// writes returns a change that writes the state of d with a phase.
func (a *clusterAPI) writes(d *drain, phase Phase) func(*corev1.Node) {
	s := d.state
	s.Phase = phase
	return func(n *corev1.Node) { a.marks.write(n, s) }
}

// remember writes the state of d again if a notice has changed it.
func (a *clusterAPI) remember(ctx context.Context, d *drain, node *corev1.Node) (*corev1.Node, error) {
	if !d.reset || !d.kept || d.saved == "" || d.Phase == PhaseUndoing || d.Phase == PhaseReleased {
		return node, nil
	}
	return a.mark(ctx, d, node, d.saved, a.writes(d, d.saved))
}

// call calls f with a timeout of CallMax.
func (a *clusterAPI) call(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, a.cfg.CallMax)
	defer cancel()
	return f(ctx)
}

// write calls f, which changes or restores objects for the pool of d, if that is permitted now.
func (a *clusterAPI) write(ctx context.Context, d *drain, f func(context.Context) error) error {
	ctx = permit.Act(ctx, d.Pool)
	if d.Phase == PhaseUndoing || d.Phase == PhaseReleased {
		ctx = permit.Undo(ctx)
	}
	if a.cfg.Authority != nil {
		if err := a.cfg.Authority.Check(ctx); err != nil {
			return fmt.Errorf("%w: %w", errNotWritten, err)
		}
	}
	return a.call(ctx, f)
}

// writer returns the client that writes the node of d. Undoing a drain has priority over starting
// one.
func (a *clusterAPI) writer(d *drain) client.Client {
	if d.urgent() || d.Phase == PhaseUndoing {
		return a.cfg.Urgent
	}
	return a.client
}

// leaving returns the pods of a node that must leave it, from the cache, in the order of their
// eviction. The pods are shared and must not be modified.
func (a *clusterAPI) leaving(ctx context.Context, node nodeKey) ([]*corev1.Pod, error) {
	return a.list(ctx, a.client, node, client.MatchingFields{IndexPodNode: node.name}, client.UnsafeDisableDeepCopy)
}

// left is like leaving, but reads the pods from the API server.
func (a *clusterAPI) left(ctx context.Context, node nodeKey) ([]*corev1.Pod, error) {
	return a.list(ctx, a.reader, node, &client.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.nodeName",
		node.name)})
}

func (a *clusterAPI) list(ctx context.Context, c client.Reader, node nodeKey,
	opts ...client.ListOption) ([]*corev1.Pod, error) {
	all := &corev1.PodList{}
	if err := a.call(ctx, func(ctx context.Context) error { return c.List(ctx, all, opts...) }); err != nil {
		return nil, fmt.Errorf("listing the pods of node %s: %w", node.name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, a.cfg.CallMax)
	defer cancel()
	return leaving(ctx, a.client, all, node)
}

// rehearse sends the evictions of the pods to the API server as dry runs. It returns the message of
// a temporary refusal, and a [backend.Held] for a permanent one.
func (a *clusterAPI) rehearse(ctx context.Context, d *drain, pods []*corev1.Pod) (wait string, err error) {
	for _, pod := range pods {
		if pod.DeletionTimestamp != nil {
			continue
		}
		var reply Reply
		_ = a.call(ctx, func(ctx context.Context) error {
			reply = Evict(ctx, a.writer(d), pod, nil, true)
			return nil
		})
		switch reply.Answer {
		case AnswerSeveral:
			return "", backend.Hold("SeveralBudgets", "pod %s/%s cannot be evicted: %s", pod.Namespace, pod.Name, reply.Message)
		case AnswerForbidden:
			return "", backend.Hold("EvictionForbidden", "pod %s/%s must not be evicted: %s", pod.Namespace, pod.Name,
				reply.Message)
		case AnswerBlocked, AnswerFailed:
			return fmt.Sprintf("pod %s/%s cannot be evicted now: %s", pod.Namespace, pod.Name, reply.Message), nil
		}
	}
	return "", nil
}

func (a *clusterAPI) report(node *corev1.Node, kind, reason, action, note string, args ...any) {
	if e := a.cfg.Events; e != nil {
		e.Eventf(node, nil, kind, reason, action, note, args...)
	}
}
