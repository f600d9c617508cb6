package karpenter

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/live/drain"
	"github.com/spotter-dev/spotter/policy/kube"
)

// A reservation is a slot in the disruption budgets of a NodePool for a node that Spotter drains.
// The cache may not show the drain yet.
type reservation struct {
	nodePool string

	// version is the resourceVersion of the Node from which the cache shows the drain; empty while
	// the mark is being written.
	version string
}

// shown reports whether n, from the cache, is at least as new as the reservation.
func (r *reservation) shown(n *corev1.Node) bool {
	if r.version == "" {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(n.ResourceVersion, r.version)
	return err != nil || order >= 0
}

// A budgetTable counts the slots that Spotter's drains use in the disruption budgets of NodePools.
// It counts and reserves slots under one lock, so that the budgets are never exceeded. After a
// restart, it is rebuilt from the marks on Nodes.
type budgetTable struct {
	cfg *Config
	api *apiReader

	mu        sync.Mutex
	reserved  map[string]reservation // by Node, for drains whose mark the cache may not show yet
	inherited map[string]bool        // NodePools whose Nodes were read for the marks of the previous leader
}

// reserve reserves a slot in the budgets of the NodePool of a node that is about to be drained. It
// returns a [backend.Held] if Karpenter could not have disrupted the node itself. Concurrent calls
// cannot exceed the budgets. Under a notice, a slot is reserved in any case.
func (t *budgetTable) reserve(ctx context.Context, claim *karpv1.NodeClaim, node *corev1.Node, notice bool) error {
	name := claim.Labels[karpv1.NodePoolLabelKey]
	if notice {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.reserved[node.Name] = reservation{nodePool: name}
		return nil
	}
	pool := &karpv1.NodePool{}
	switch there, err := t.api.there(ctx, "NodePool", name, pool); {
	case err != nil:
		return err
	case !there:
		return backend.Hold("NodePoolMissing", "the NodePool of node %s does not exist", node.Name)
	}
	if until := NominatedUntil(pool, node); until.After(t.cfg.Clock.Now()) {
		return backend.Hold("Nominated", "node %s is new, and Karpenter may still assign pods to it, until %s", node.Name,
			until.UTC().Format(time.RFC3339))
	}
	if err := t.inherit(ctx, name); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	var nodes corev1.NodeList // listed under the lock: an older list would lack drains that were shown and then freed
	if err := t.api.client.List(ctx, &nodes, client.MatchingLabels{karpv1.NodePoolLabelKey: name},
		client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the nodes of NodePool %s: %w", name, err)
	}
	total, down := t.disrupted(nodes.Items, node.Name)
	allowed, err := pool.GetAllowedDisruptionsByReason(clockOf{passive: t.cfg.Clock}, total,
		karpv1.DisruptionReasonUnderutilized)
	if err != nil {
		return fmt.Errorf("reading the budgets of NodePool %s: %w", name, err)
	}
	if down >= allowed {
		return backend.Hold("DisruptionBudget", "the budgets of NodePool %s allow %d disrupted nodes, and %d already are",
			name, allowed, down)
	}
	t.reserved[node.Name] = reservation{nodePool: name}
	return nil
}

// disrupted counts the nodes of a NodePool as Karpenter counts them for its budgets (total), and
// those of them, except the node with the name, that are not ready, are ending or are being drained
// by Spotter (down). The caller must hold t.mu.
func (t *budgetTable) disrupted(nodes []corev1.Node, name string) (total, down int) {
	for i := range nodes {
		n := &nodes[i]
		if n.Labels[karpv1.NodeInitializedLabelKey] != "true" {
			continue
		}
		total++
		r, reserved := t.reserved[n.Name]
		if n.Name != name && (reserved && !r.shown(n) || drained(n) || !kube.IsReady(n) || !n.DeletionTimestamp.IsZero() ||
			kube.IsTainted(n, karpv1.DisruptedTaintKey)) {
			down++
		}
	}
	return total, down
}

// inherit determines, once for each NodePool, which of its nodes Spotter is draining, since the
// cache may not yet show the last writes of the previous leader.
func (t *budgetTable) inherit(ctx context.Context, nodePool string) error {
	t.mu.Lock()
	done := t.inherited[nodePool]
	t.mu.Unlock()
	if done {
		return nil
	}
	var list metav1.PartialObjectMetadataList
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
	if err := t.api.reader.List(ctx, &list, client.MatchingLabels{karpv1.NodePoolLabelKey: nodePool}); err != nil {
		return fmt.Errorf("listing the nodes of NodePool %s: %w", nodePool, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range list.Items {
		n := &list.Items[i]
		if _, there := t.reserved[n.Name]; !there && protectedFor(n, protectedDrain) {
			t.reserved[n.Name] = reservation{nodePool, n.ResourceVersion}
		}
	}
	t.inherited[nodePool] = true
	return nil
}

// keepOnly forgets which other NodePools were read.
func (t *budgetTable) keepOnly(nodePools map[string]bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.inherited, func(name string, _ bool) bool { return !nodePools[name] })
}

// settled records the result of the write for which a slot was reserved: from version, the cache
// shows it. If the API server refused the write, the slot is freed. If the result is unknown, the
// slot is kept: the drain tries again or is undone.
func (t *budgetTable) settled(node, version string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var status apierrors.APIStatus
	switch {
	case err == nil:
		r := t.reserved[node]
		r.version = version
		t.reserved[node] = r
	case errors.As(err, &status) && status.Status().Code < 500:
		delete(t.reserved, node)
	}
}

// free frees the slot of a node.
func (t *budgetTable) free(node string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.reserved, node)
}

// freeShown frees the slots whose drains the cache shows by itself. nodes must contain all nodes of
// Karpenter in the cache.
func (t *budgetTable) freeShown(nodes map[string]*corev1.Node) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, r := range t.reserved {
		if n := nodes[name]; r.version != "" && (n == nil || r.shown(n)) {
			delete(t.reserved, name)
		}
	}
}

// nominatedFor is the time beyond consolidateAfter for which Karpenter keeps a nomination.
const nominatedFor = 30 * time.Second

// NominatedUntil returns the time until which a young node counts as nominated for pods: Karpenter
// keeps nominations in memory only.
func NominatedUntil(pool *karpv1.NodePool, node *corev1.Node) time.Time {
	d := nominatedFor
	if after := pool.Spec.Disruption.ConsolidateAfter.Duration; after != nil {
		d += *after
	}
	return node.CreationTimestamp.Add(d)
}

// A clockOf provides the time to Karpenter's code, which calls only Now.
type clockOf struct {
	clock.RealClock
	passive clock.PassiveClock
}

// Now returns the time of the passive clock.
func (c clockOf) Now() time.Time { return c.passive.Now() }

// drained reports whether Spotter is draining a node.
func drained(n *corev1.Node) bool {
	return protectedFor(n, protectedDrain) || kube.IsTainted(n, drain.TaintDraining)
}
