package karpenter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/live/drain"
	"github.com/spotter-dev/spotter/policy"
)

// Why a node is protected by us: it is being drained, or the pods that it is for
// have not come yet.
const (
	protectedDrain       = "drain"
	protectedReplacement = "replacement"
)

// protection is the value of [ProtectedAnnotation].
func (b *Backend) protection(why string) string {
	return why + " " + b.now().Std().Format(time.RFC3339)
}

// protectedSince returns why and since when an object is protected by us.
func protectedSince(annotations map[string]string) (why string, since policy.Time, ours bool) {
	why, at, ok := strings.Cut(annotations[ProtectedAnnotation], " ")
	if !ok {
		return "", 0, annotations[ProtectedAnnotation] != ""
	}
	t, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return why, 0, true
	}
	return why, policy.TimeOf(t), true
}

// protect marks a node so that Karpenter leaves it alone, and that it was we.
func (b *Backend) protect(ctx context.Context, node *corev1.Node) error {
	err := annotate(ctx, b.client, &corev1.Node{}, node.Name, map[string]any{
		karpv1.DoNotDisruptAnnotationKey: "true", ProtectedAnnotation: b.protection(protectedDrain),
	})
	if err != nil {
		return fmt.Errorf("protecting node %s: %w", node.Name, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.prepared[node.Name] = true
	return nil
}

// A nodeDrain is what a drain of ours says of itself on its node.
type nodeDrain struct {
	ReclaimAt policy.Time `json:"reclaimAt"`
	After     []string    `json:"after"`
}

// drainOf returns the drain of ours that is at work on a node, and whether one is.
func drainOf(node *corev1.Node) (d nodeDrain, ours bool) {
	text, ours := node.Annotations[drain.AnnotationDrain]
	if json.Unmarshal([]byte(text), &d) != nil {
		return nodeDrain{}, ours
	}
	return d, ours
}

// A ward is what protections are judged by: the Nodes, which are shared and never
// written, and the drains of ours.
type ward struct {
	nodes    map[string]*corev1.Node
	draining bool            // any
	waited   map[string]bool // the tokens of launches that drains wait for
}

func (b *Backend) ward(ctx context.Context) (*ward, error) {
	var list corev1.NodeList
	if err := b.client.List(ctx, &list, client.HasLabels{karpv1.NodePoolLabelKey}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	w := &ward{nodes: map[string]*corev1.Node{}, waited: map[string]bool{}}
	for i := range list.Items {
		n := &list.Items[i]
		w.nodes[n.Name] = n
		if d, ours := drainOf(n); ours {
			w.draining = true
			for _, token := range d.After {
				w.waited[token] = true
			}
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for name := range b.prepared {
		if w.nodes[name] == nil {
			delete(b.prepared, name)
		}
	}
	return w, nil
}

// sweep removes protections of ours that nothing asks for any more. A drain settles
// what it waited for at its end. Left are machines that were bought under a notice,
// for which no drain waits, and what a crash leaves.
func (b *Backend) sweep(ctx context.Context, claims []karpv1.NodeClaim) error {
	w, err := b.ward(ctx)
	if err != nil {
		return err
	}
	var errs []error
	idle, settled := map[string]bool{}, map[string]bool{}
	for i := range claims {
		c := &claims[i]
		if _, _, ours := protectedSince(c.Annotations); !ours {
			settled[c.Status.NodeName] = true
			continue
		}
		over, err := b.over(ctx, c, w, idle)
		if over {
			b.log.Info("no longer protected", "nodeClaim", c.Name, "replaced", c.Annotations[ReplacesAnnotation])
			err = b.unprotectClaim(ctx, b.ahead, c.Name)
		}
		errs = append(errs, err)
	}
	for _, name := range slices.Sorted(maps.Keys(w.nodes)) {
		n := w.nodes[name]
		why, at, ours := protectedSince(n.Annotations)
		if _, drained := drainOf(n); !ours || drained {
			continue
		}
		// Karpenter may copy the mark to the Node while it is taken off the claim.
		over := why == protectedReplacement && settled[name]
		if why == protectedDrain {
			over = b.idleFor("node "+name, idle) >= b.cfg.ProtectIdle
		}
		if over || b.now().Sub(at) >= b.cfg.ProtectMax && !w.draining {
			errs = append(errs, unprotect(ctx, b.ahead, &corev1.Node{}, name, n.Annotations))
		}
	}
	b.keepIdle(idle)
	return errors.Join(errs...)
}

// over reports whether the protection of a replacement is to end: its pods have come,
// or nothing is left of the drain that they come from.
func (b *Backend) over(ctx context.Context, c *karpv1.NodeClaim, w *ward, idle map[string]bool) (bool, error) {
	_, at, _ := protectedSince(c.Annotations)
	replaced := c.Annotations[ReplacesAnnotation]
	if replaced == "" {
		return !w.draining && b.now().Sub(at) >= b.cfg.ProtectMax, nil
	}
	if w.waited[c.Annotations[TokenAnnotation]] || !claimIs(c, karpv1.ConditionTypeInitialized) {
		return false, nil
	}
	old := w.nodes[replaced]
	if old != nil {
		if _, drained := drainOf(old); drained || b.isPrepared(replaced) {
			return false, nil
		}
	} else if busy, err := b.busy(ctx, c.Status.NodeName); err != nil || busy {
		return busy, err
	}
	return b.idleFor("claim "+c.Name, idle) >= b.cfg.ProtectIdle, nil
}

// idleFor returns how long nothing has been seen that an object is protected for, and
// notes in idle that so it is.
func (b *Backend) idleFor(object string, idle map[string]bool) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	idle[object] = true
	if b.idle[object] == 0 {
		b.idle[object] = b.now()
	}
	return b.now().Sub(b.idle[object])
}

// keepIdle forgets what is not idle any more.
func (b *Backend) keepIdle(idle map[string]bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for object := range b.idle {
		if !idle[object] {
			delete(b.idle, object)
		}
	}
}

// busy reports whether pods run, or are about to, on a node that a drain would have to
// move.
func (b *Backend) busy(ctx context.Context, node string) (bool, error) {
	var pods corev1.PodList
	if err := b.reader.List(ctx, &pods, client.MatchingFields{"spec.nodeName": node}); err != nil {
		return false, fmt.Errorf("listing the pods of node %s: %w", node, err)
	}
	return slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp == nil && moves(&p) }), nil
}

// unprotectClaim takes our protection off a NodeClaim, and then off its Node, to
// which Karpenter copied it.
func (b *Backend) unprotectClaim(ctx context.Context, w client.Writer, name string) error {
	var c karpv1.NodeClaim
	if err := b.reader.Get(ctx, client.ObjectKey{Name: name}, &c); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("reading NodeClaim %s: %w", name, err)
	}
	if err := unprotect(ctx, w, &karpv1.NodeClaim{}, name, c.Annotations); err != nil {
		return fmt.Errorf("NodeClaim %s: %w", name, err)
	}
	if c.Status.NodeName == "" {
		return nil
	}
	return b.unprotectNode(ctx, w, c.Status.NodeName)
}

func (b *Backend) unprotectNode(ctx context.Context, w client.Writer, name string) error {
	var n corev1.Node
	if err := b.reader.Get(ctx, client.ObjectKey{Name: name}, &n); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("reading node %s: %w", name, err)
	}
	if err := unprotect(ctx, w, &corev1.Node{}, name, n.Annotations); err != nil {
		return fmt.Errorf("node %s: %w", name, err)
	}
	return nil
}

// unprotect removes our protection; one that is not ours stays.
func unprotect(ctx context.Context, w client.Writer, o client.Object, name string, annotations map[string]string) error {
	if _, _, ours := protectedSince(annotations); !ours {
		return nil
	}
	err := annotate(ctx, w, o, name, map[string]any{karpv1.DoNotDisruptAnnotationKey: nil, ProtectedAnnotation: nil})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing its protection: %w", err)
	}
	return nil
}
