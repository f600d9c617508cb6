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
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	podutil "sigs.k8s.io/karpenter/pkg/utils/pod"

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

// protectedFor reports whether o is protected by us, and for that.
func protectedFor(o client.Object, why string) bool {
	is, _, ours := protectedSince(o.GetAnnotations())
	return ours && is == why
}

// A nodeDrain is what a drain of ours says of itself on its node.
type nodeDrain struct {
	Pool      string      `json:"pool"`
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

// sweep removes protections of ours that nothing asks for any more, whatever the mode of
// the pool and whether it is there. A drain settles what it waited for at its end. Left
// are machines that were bought under a notice, for which no drain waits, and what a crash
// leaves. Of a pool that is not active nothing is asked for any more.
func (b *Backend) sweep(ctx context.Context, claims []karpv1.NodeClaim, active map[string]bool) error {
	nodes, waited, err := b.drains(ctx)
	if err != nil {
		return err
	}
	b.freeShown(nodes)
	var errs []error
	idle, settled := map[string]bool{}, map[string]bool{} // the latter by Node: whether its NodeClaim is protected no longer
	for i := range claims {
		c := &claims[i]
		_, _, ours := protectedSince(c.Annotations)
		if settled[c.Status.NodeName] = !ours; !ours {
			continue
		}
		over, err := !active[c.Labels[PoolLabel]] && !waited[c.Annotations[TokenAnnotation]], error(nil)
		if !over {
			over, err = b.over(ctx, c, nodes, waited, idle)
		}
		if over {
			b.log.Info("no longer protected", "nodeClaim", c.Name, "replaced", c.Annotations[ReplacesAnnotation])
			err = b.unprotectClaim(ctx, b.ahead, c.Name)
		}
		errs = append(errs, err)
	}
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		n := nodes[name]
		why, at, ours := protectedSince(n.Annotations)
		if _, drains := drainOf(n); !ours || drains {
			continue
		}
		over, there := settled[name]
		switch {
		case why == protectedDrain:
			over = b.now().Sub(at) >= b.cfg.ProtectIdle
		case !there: // its NodeClaim is gone, has not reported it yet, or reported another
			over = b.idleFor("node/"+name, idle) >= b.cfg.ProtectIdle
		}
		// What is over may have been copied to the Node by Karpenter while it was taken off
		// the NodeClaim. What is not is taken off with that of the NodeClaim.
		if over {
			errs = append(errs, b.unprotectNode(ctx, b.ahead, name))
		}
	}
	b.keepIdle(idle)
	return errors.Join(errs...)
}

// drains returns the Nodes of Karpenter in the cache, which are never written, and the
// tokens of the launches that drains on them wait for.
func (b *Backend) drains(ctx context.Context) (nodes map[string]*corev1.Node, waited map[string]bool, err error) {
	var list corev1.NodeList
	if err := b.client.List(ctx, &list, client.HasLabels{karpv1.NodePoolLabelKey}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("listing nodes: %w", err)
	}
	nodes, waited = map[string]*corev1.Node{}, map[string]bool{}
	for i := range list.Items {
		n := &list.Items[i]
		nodes[n.Name] = n
		d, _ := drainOf(n)
		for _, token := range d.After {
			waited[token] = true
		}
	}
	return nodes, waited, nil
}

// over reports whether the protection of a replacement is to end: its pods have come,
// or nothing is left of the drain that they come from.
func (b *Backend) over(ctx context.Context, c *karpv1.NodeClaim, nodes map[string]*corev1.Node, waited, idle map[string]bool) (bool, error) {
	if waited[c.Annotations[TokenAnnotation]] {
		return false, nil
	}
	_, at, _ := protectedSince(c.Annotations)
	replaced := c.Annotations[ReplacesAnnotation]
	if replaced == "" {
		return b.now().Sub(at) >= b.cfg.ProtectMax, nil
	}
	if !claimIs(c, karpv1.ConditionTypeInitialized) {
		return false, nil
	}
	if old := nodes[replaced]; old != nil {
		if _, drains := drainOf(old); drains || drained(old) {
			return false, nil
		}
	} else if busy, err := b.busy(ctx, c.Status.NodeName); err != nil || busy {
		return busy, err
	}
	return b.idleFor(c.Name, idle) >= b.cfg.ProtectIdle, nil
}

// idleFor returns how long nothing has been seen that a NodeClaim, or a Node that none
// reports ("node/" before its name), is protected for, and notes in idle that so it is.
func (b *Backend) idleFor(name string, idle map[string]bool) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	idle[name] = true
	if b.idle[name] == 0 {
		b.idle[name] = b.now()
	}
	return b.now().Sub(b.idle[name])
}

// keepIdle forgets what is not idle any more.
func (b *Backend) keepIdle(idle map[string]bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.idle, func(name string, _ policy.Time) bool { return !idle[name] })
}

// busy reports whether pods run, or are about to, on a node that a drain would have to
// move.
func (b *Backend) busy(ctx context.Context, node string) (bool, error) {
	var pods corev1.PodList
	if err := b.reader.List(ctx, &pods, client.MatchingFields{"spec.nodeName": node}); err != nil {
		return false, fmt.Errorf("listing the pods of node %s: %w", node, err)
	}
	return slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool { return !podutil.IsTerminating(&p) && moves(&p) }), nil
}

// unprotectClaim takes our protection off a NodeClaim, and then off its Node, to
// which Karpenter copied it.
func (b *Backend) unprotectClaim(ctx context.Context, w client.Writer, name string) error {
	var c karpv1.NodeClaim
	if there, err := b.there(ctx, "NodeClaim", name, &c); !there {
		return err
	}
	node := c.Status.NodeName
	if err := unprotect(ctx, w, &c); err != nil || node == "" {
		return err
	}
	return b.unprotectNode(ctx, w, node)
}

func (b *Backend) unprotectNode(ctx context.Context, w client.Writer, name string) error {
	var n corev1.Node
	if there, err := b.there(ctx, "node", name, &n); !there {
		return err
	}
	return unprotect(ctx, w, &n)
}
