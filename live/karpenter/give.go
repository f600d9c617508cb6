package karpenter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/live/drain"
	"github.com/spotter-dev/spotter/policy"
)

// Prepare keeps Karpenter from replacing or removing a node that we drain. A node
// that Karpenter is ending is left to it, one that the user protects is left alone,
// and so is one that pods may have been promised to; and no more nodes of a NodePool
// go than its budgets let Karpenter take. Under a notice only the first holds.
func (b *Backend) Prepare(ctx context.Context, node *corev1.Node) error {
	claim, err := b.claimOf(ctx, node)
	if err != nil {
		return err
	}
	switch {
	case claim == nil:
		return backend.Hold("NodeClaimMissing", "node %s has no NodeClaim, so that nobody would give its machine back", node.Name)
	case going(claim, node):
		return backend.Leave(policy.ActorKarpenter, "KarpenterActs", "Karpenter is ending node %s", node.Name)
	}
	why, _, ours := protectedSince(node.Annotations)
	if ours && why == protectedDrain {
		return nil // prepared before
	}
	if node.Annotations[karpv1.DoNotDisruptAnnotationKey] == "true" && !ours {
		return backend.Hold("DoNotDisrupt", "node %s carries %s, and not from us", node.Name, karpv1.DoNotDisruptAnnotationKey)
	}
	if d, _ := drainOf(node); d.ReclaimAt == 0 {
		if err := b.mayDisrupt(ctx, claim, node); err != nil {
			return err
		}
	}
	return b.protect(ctx, node)
}

// going reports whether Karpenter ends a node, or is about to.
func going(c *karpv1.NodeClaim, node *corev1.Node) bool {
	if !c.DeletionTimestamp.IsZero() || !node.DeletionTimestamp.IsZero() || claimIs(c, karpv1.ConditionTypeDisruptionReason) {
		return true
	}
	for _, t := range node.Spec.Taints {
		if t.Key == karpv1.DisruptedTaintKey {
			return true
		}
	}
	return false
}

// mayDisrupt returns a Held while Karpenter could not have disrupted a node itself.
func (b *Backend) mayDisrupt(ctx context.Context, claim *karpv1.NodeClaim, node *corev1.Node) error {
	pool := &karpv1.NodePool{}
	if err := b.reader.Get(ctx, client.ObjectKey{Name: claim.Labels[karpv1.NodePoolLabelKey]}, pool); err != nil {
		if apierrors.IsNotFound(err) {
			return backend.Hold("NodePoolMissing", "the NodePool of node %s is not there", node.Name)
		}
		return fmt.Errorf("reading the NodePool of node %s: %w", node.Name, err)
	}
	if until := NominatedUntil(pool, node); until.After(b.cfg.Clock.Now()) {
		return backend.Hold("Nominated", "node %s is so young that Karpenter may have promised it to pods; until %s", node.Name, until.UTC().Format(time.RFC3339))
	}
	var nodes corev1.NodeList
	if err := b.client.List(ctx, &nodes, client.MatchingLabels{karpv1.NodePoolLabelKey: pool.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the nodes of NodePool %s: %w", pool.Name, err)
	}
	allowed, down, err := b.disruptable(pool, nodes.Items, node.Name)
	if err != nil {
		return err
	}
	if down >= allowed {
		return backend.Hold("DisruptionBudget", "the budgets of NodePool %s allow %d nodes to be disrupted, and %d are", pool.Name, allowed, down)
	}
	return nil
}

// nominatedFor is how long Karpenter keeps what it promised to pods, beyond
// consolidateAfter.
const nominatedFor = 30 * time.Second

// NominatedUntil returns until when a young node counts as promised to pods: what
// Karpenter promises is kept only in its memory.
func NominatedUntil(pool *karpv1.NodePool, node *corev1.Node) time.Time {
	d := nominatedFor
	if after := pool.Spec.Disruption.ConsolidateAfter.Duration; after != nil {
		d += *after
	}
	return node.CreationTimestamp.Add(d)
}

// disruptable returns how many nodes of a NodePool may be disrupted for being
// underutilised, and how many are: those that are not ready, are going away, or are
// drained by us, the node of the name left out.
func (b *Backend) disruptable(pool *karpv1.NodePool, nodes []corev1.Node, name string) (allowed, down int, err error) {
	total := 0
	for i := range nodes {
		n := &nodes[i]
		if n.Labels[karpv1.NodeInitializedLabelKey] != "true" {
			continue
		}
		total++
		why, _, _ := protectedSince(n.Annotations)
		if n.Name != name && (why == protectedDrain || b.isPrepared(n.Name) || !ready(n) || !n.DeletionTimestamp.IsZero() || disrupted(n)) {
			down++
		}
	}
	allowed, err = pool.GetAllowedDisruptionsByReason(clockOf{passive: b.cfg.Clock}, total, karpv1.DisruptionReasonUnderutilized)
	if err != nil {
		return 0, 0, fmt.Errorf("reading the budgets of NodePool %s: %w", pool.Name, err)
	}
	return allowed, down, nil
}

// A clockOf tells the time to Karpenter's code, which asks for nothing else.
type clockOf struct {
	clock.RealClock
	passive clock.PassiveClock
}

// Now returns the time.
func (c clockOf) Now() time.Time { return c.passive.Now() }

func (b *Backend) isPrepared(node string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.prepared[node]
}

func disrupted(n *corev1.Node) bool {
	for _, t := range n.Spec.Taints {
		if t.Key == karpv1.DisruptedTaintKey {
			return true
		}
	}
	return false
}

func ready(n *corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// annotate sets annotations of an object by w, and removes those that are nil.
func annotate(ctx context.Context, w client.Writer, o client.Object, name string, annotations map[string]any) error {
	patch, err := json.Marshal(object{"metadata": object{"annotations": annotations}})
	if err != nil {
		return err
	}
	o.SetName(name)
	return w.Patch(ctx, o, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(fieldOwner))
}

// Replaced reports how far the NodeClaims of the tokens have come. One that is not
// there, or going, has failed.
func (b *Backend) Replaced(ctx context.Context, tokens []string) (backend.Replacement, error) {
	how := backend.ReplacementReady
	for _, token := range tokens {
		var c karpv1.NodeClaim
		err := b.reader.Get(ctx, client.ObjectKey{Name: ClaimName(token)}, &c)
		switch {
		case apierrors.IsNotFound(err):
			return backend.ReplacementFailed, nil
		case err != nil:
			return backend.ReplacementWaiting, fmt.Errorf("reading NodeClaim %s: %w", ClaimName(token), err)
		case !c.DeletionTimestamp.IsZero():
			return backend.ReplacementFailed, nil
		case !claimIs(&c, karpv1.ConditionTypeInitialized):
			how = backend.ReplacementWaiting
		}
	}
	return how, nil
}

// Release deletes the NodeClaim of an emptied node: Karpenter then ends the machine
// and the Node. Volumes that are still attached keep it for a while.
func (b *Backend) Release(ctx context.Context, node *corev1.Node) error {
	claim, err := b.claimOf(ctx, node)
	if err != nil {
		return err
	}
	if claim == nil || !claim.DeletionTimestamp.IsZero() {
		b.forget(node.Name)
		return nil
	}
	if err := b.empty(ctx, node); err != nil {
		return err
	}
	if err := b.detached(ctx, node); err != nil {
		return err
	}
	b.mu.Lock()
	b.released[claim.Name] = true
	b.mu.Unlock()
	uid := claim.UID
	if err := b.client.Delete(ctx, claim, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
		b.mu.Lock()
		delete(b.released, claim.Name)
		b.mu.Unlock()
		return fmt.Errorf("deleting NodeClaim %s: %w", claim.Name, err)
	}
	b.log.Info("NodeClaim deleted", "nodeClaim", claim.Name, "node", node.Name)
	b.forget(node.Name)
	return nil
}

// empty returns ErrNotYet while pods are on a node that a drain would move.
func (b *Backend) empty(ctx context.Context, node *corev1.Node) error {
	var pods corev1.PodList
	if err := b.reader.List(ctx, &pods, client.MatchingFields{"spec.nodeName": node.Name}); err != nil {
		return fmt.Errorf("listing the pods of node %s: %w", node.Name, err)
	}
	for i := range pods.Items {
		if p := &pods.Items[i]; moves(p) {
			return fmt.Errorf("pod %s/%s is still on node %s: %w", p.Namespace, p.Name, node.Name, backend.ErrNotYet)
		}
	}
	return nil
}

// moves reports whether a pod has to leave before its node goes: not a mirror pod,
// one of a DaemonSet, one that has ended, or one that tolerates a drain of ours.
func moves(p *corev1.Pod) bool {
	if _, mirror := p.Annotations[corev1.MirrorPodAnnotationKey]; mirror || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		return false
	}
	for _, o := range p.OwnerReferences {
		if o.Kind == "DaemonSet" && o.Controller != nil && *o.Controller {
			return false
		}
	}
	taint := corev1.Taint{Key: drain.TaintDraining, Effect: corev1.TaintEffectNoSchedule}
	for i := range p.Spec.Tolerations {
		t := &p.Spec.Tolerations[i]
		if (t.Key == "" && t.Operator == corev1.TolerationOpExists || t.Key == taint.Key && (t.Operator == corev1.TolerationOpExists || t.Value == "")) &&
			(t.Effect == "" || t.Effect == taint.Effect) {
			return false
		}
	}
	return true
}

// detached returns ErrNotYet while volumes are attached to a node, up to a limit.
func (b *Backend) detached(ctx context.Context, node *corev1.Node) error {
	var all storagev1.VolumeAttachmentList
	if err := b.reader.List(ctx, &all); err != nil {
		return fmt.Errorf("listing VolumeAttachments: %w", err)
	}
	n := 0
	for i := range all.Items {
		if all.Items[i].Spec.NodeName == node.Name {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	since, now := b.waiting[node.Name], b.now()
	if since == 0 {
		since = now
		b.waiting[node.Name] = now
	}
	if now.Sub(since) >= b.cfg.VolumeWaitMax {
		return nil
	}
	return fmt.Errorf("%d volumes are attached to node %s: %w", n, node.Name, backend.ErrNotYet)
}

func (b *Backend) forget(node string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.waiting, node)
}

// Undo lets Karpenter act again on the node, and on the replacements.
func (b *Backend) Undo(ctx context.Context, node *corev1.Node, tokens []string) error {
	b.forget(node.Name)
	b.mu.Lock()
	delete(b.prepared, node.Name)
	b.mu.Unlock()
	return errors.Join(b.unprotectNode(ctx, b.client, node.Name), b.Settle(ctx, tokens))
}

// Settle lets Karpenter act again on the replacements.
func (b *Backend) Settle(ctx context.Context, tokens []string) error {
	var errs []error
	for _, token := range tokens {
		errs = append(errs, b.unprotectClaim(ctx, b.client, ClaimName(token)))
	}
	return errors.Join(errs...)
}
