package drain

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/live/permit"
	"github.com/spotter-dev/spotter/policy"
)

// Annotations of a deletion cost. A cost is Spotter's while AnnotationCostOwner has the same value:
// another client that writes a different value becomes its owner.
const (
	AnnotationCost      = corev1.PodDeletionCost
	AnnotationCostOwner = "spotter.dev/pod-deletion-cost"
)

// Cost returns the deletion cost of p, and whether another client set it.
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

// A Ranker sets the deletion costs of pods that a plan requests. It accepts them at once and writes
// them while [Ranker.Run] runs, since there may be hundreds. A failed write is dropped: the next
// step finds the old cost.
type Ranker struct {
	client client.Client
	queue  workqueue.TypedInterface[types.NamespacedName]
	costs  sync.Map // the last requested podCost, by pod
}

// A podCost is the requested cost of one pod while it is on a node of a pool.
type podCost struct {
	node, pool string
	cost       int32
}

// NewRanker returns a ranker that reads from the cache of c.
func NewRanker(c client.Client) *Ranker {
	return &Ranker{client: c, queue: workqueue.NewTyped[types.NamespacedName]()}
}

// DeletionCost accepts the costs of the pods of a node.
func (k *Ranker) DeletionCost(_ context.Context, s *policy.Snapshot, x *policy.DeletionCost) error {
	n := &s.Nodes[x.Node]
	want := podCost{node: n.Name, cost: x.Cost}
	if n.Pool != policy.None {
		want.pool = s.Pools[n.Pool].Name
	}
	for i := range s.Pods {
		if !x.Ranks(s, &s.Pods[i]) {
			continue
		}
		namespace, name, ok := strings.Cut(s.Pods[i].Name, "/")
		if !ok {
			return fmt.Errorf("pod %q has no namespace", s.Pods[i].Name)
		}
		pod := types.NamespacedName{Namespace: namespace, Name: name}
		k.costs.Store(pod, want)
		k.queue.Add(pod)
	}
	return nil
}

// Run writes the requested costs until ctx ends. It passes errors to warn.
func (k *Ranker) Run(ctx context.Context, warn func(error)) error {
	defer context.AfterFunc(ctx, k.queue.ShutDown)()
	for k.one(ctx, warn) {
	}
	return nil
}

// one writes the next cost, and reports whether there may be more.
func (k *Ranker) one(ctx context.Context, warn func(error)) bool {
	pod, ended := k.queue.Get()
	if ended {
		return false
	}
	defer k.queue.Done(pod)
	if want, ok := k.costs.LoadAndDelete(pod); ok {
		if err := k.rank(ctx, pod, want.(podCost)); err != nil && ctx.Err() == nil {
			warn(err)
		}
	}
	return ctx.Err() == nil
}

// rank sets the cost of one pod, unless the pod has moved or another client set its cost. The patch
// uses the resourceVersion, so that a user's cost is not overwritten.
func (k *Ranker) rank(ctx context.Context, key types.NamespacedName, w podCost) error {
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
	err = k.client.Patch(permit.Act(ctx, w.pool), changed, patch, client.FieldOwner(FieldOwner))
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // it has changed, and the next step finds the new state
	}
	if err != nil {
		return fmt.Errorf("ranking pod %s: %w", key, err)
	}
	return nil
}
