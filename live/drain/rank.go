package drain

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/policy"
)

// The annotations of a deletion cost. A cost is ours as long as
// AnnotationCostOwner repeats it: who writes another makes it theirs.
const (
	AnnotationCost      = corev1.PodDeletionCost
	AnnotationCostOwner = "spotter.dev/pod-deletion-cost"
)

// Cost returns the deletion cost of p, and whether somebody else set it.
func Cost(p *corev1.Pod) (cost int32, fixed bool) {
	text, ok := p.Annotations[AnnotationCost]
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return 0, true
	}
	return int32(n), p.Annotations[AnnotationCostOwner] != text
}

// A Ranker gives pods the deletion costs that a plan asks for. It takes them in
// at once and writes them while [Ranker.Run] runs, since there may be hundreds. A
// write that fails is dropped: the next step sees the cost that there is.
type Ranker struct {
	client client.Client
	fence  func(context.Context) error

	mu     sync.Mutex
	queue  []types.NamespacedName
	wishes map[types.NamespacedName]wish
	wake   chan struct{}
}

// A wish is the cost that one pod is to have while it is on a node.
type wish struct {
	node string
	cost int32
}

// NewRanker returns a ranker that reads from c's cache. Fence is as
// [Config.Fence].
func NewRanker(c client.Client, fence func(context.Context) error) *Ranker {
	return &Ranker{client: c, fence: fence, wishes: map[types.NamespacedName]wish{}, wake: make(chan struct{}, 1)}
}

// DeletionCost takes in what is wanted of the pods of a node.
func (k *Ranker) DeletionCost(_ context.Context, s *policy.Snapshot, x *policy.DeletionCost) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range s.Pods {
		p := &s.Pods[i]
		if !x.Ranks(s, p) {
			continue
		}
		namespace, name, ok := strings.Cut(p.Name, "/")
		if !ok {
			return fmt.Errorf("pod %q has no namespace", p.Name)
		}
		key := types.NamespacedName{Namespace: namespace, Name: name}
		if _, queued := k.wishes[key]; !queued {
			k.queue = append(k.queue, key)
		}
		k.wishes[key] = wish{node: s.Nodes[x.Node].Name, cost: x.Cost}
	}
	select {
	case k.wake <- struct{}{}:
	default:
	}
	return nil
}

// Run writes what is asked for until ctx ends. Failures go to warn.
func (k *Ranker) Run(ctx context.Context, warn func(error)) error {
	for {
		if err := k.Pass(ctx); err != nil && ctx.Err() == nil {
			warn(err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-k.wake:
		}
	}
}

// Pass writes what has been asked for until now.
func (k *Ranker) Pass(ctx context.Context) error {
	var failed []error
	fenced := false
	for ctx.Err() == nil {
		key, w, ok := k.next()
		if !ok {
			break
		}
		if !fenced && k.fence != nil {
			if err := k.fence(ctx); err != nil {
				return fmt.Errorf("ranking pods, another may lead: %w", err)
			}
		}
		fenced = true
		if err := k.rank(ctx, key, w); err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

func (k *Ranker) next() (types.NamespacedName, wish, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.queue) == 0 {
		return types.NamespacedName{}, wish{}, false
	}
	key := k.queue[0]
	k.queue = k.queue[1:]
	w := k.wishes[key]
	delete(k.wishes, key)
	return key, w, true
}

// rank gives one pod its cost, unless it has moved or somebody else has set one.
// The resourceVersion goes along, so that a user's cost is not overwritten.
func (k *Ranker) rank(ctx context.Context, key types.NamespacedName, w wish) error {
	p := &corev1.Pod{}
	err := k.client.Get(ctx, key, p)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading pod %s: %w", key, err)
	}
	cost, fixed := Cost(p)
	if fixed || cost == w.cost || p.Spec.NodeName != w.node || p.DeletionTimestamp != nil {
		return nil
	}
	changed := p.DeepCopy()
	if w.cost == 0 {
		delete(changed.Annotations, AnnotationCost)
		delete(changed.Annotations, AnnotationCostOwner)
	} else {
		if changed.Annotations == nil {
			changed.Annotations = map[string]string{}
		}
		text := strconv.FormatInt(int64(w.cost), 10)
		changed.Annotations[AnnotationCost], changed.Annotations[AnnotationCostOwner] = text, text
	}
	patch := client.MergeFromWithOptions(p, client.MergeFromWithOptimisticLock{})
	err = k.client.Patch(ctx, changed, patch, client.FieldOwner(FieldOwner))
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // it has changed, and the next step sees how
	}
	if err != nil {
		return fmt.Errorf("ranking pod %s: %w", key, err)
	}
	return nil
}
