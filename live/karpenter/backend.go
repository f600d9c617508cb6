package karpenter

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
)

// The kinds of Karpenter that are written here.
var (
	groupVersion  = schema.GroupVersion{Group: "karpenter.sh", Version: "v1"}
	nodePoolKind  = groupVersion.WithKind("NodePool")
	nodeClaimKind = groupVersion.WithKind("NodeClaim")
)

// AddToScheme registers Karpenter's kinds with a scheme. A client given to New, and
// the manager given to SetupWithManager, need them.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(groupVersion, &karpv1.NodePool{}, &karpv1.NodePoolList{}, &karpv1.NodeClaim{}, &karpv1.NodeClaimList{})
	metav1.AddToGroupVersion(s, groupVersion)
	return nil
}

// A Backend steers, launches and drains through Karpenter. Its methods may be called
// from any goroutine.
type Backend struct {
	cfg    Config
	log    *slog.Logger
	client client.Client // reads from the cache
	ahead  client.Client // writes what a step waits for
	reader client.Reader // reads from the API server
	sink   backend.Sink

	mu         sync.Mutex
	pools      map[string]*poolState  // by CapacityPool
	nodePools  map[string]string      // CapacityPool by NodePool, as last seen
	claims     map[string]*seenClaim  // by NodeClaim
	launches   map[string]launchEnd   // by token, of launches that came to nothing
	released   map[string]bool        // NodeClaims that we deleted
	prepared   map[string]bool        // Nodes that we protected for a drain
	waiting    map[string]policy.Time // since when an empty Node waits for its volumes
	idle       map[string]policy.Time // since when nothing is seen that a NodeClaim or Node is protected for
	interrupts map[string]bool        // UIDs of interruption Events told of
	classKind  schema.GroupKind       // of node class, as found last
}

// A poolState is what is remembered of one CapacityPool between calls.
type poolState struct {
	wanted steering

	// written is when more than the weight and limits of a NodePool was last changed,
	// limited when anything was, and conflict when another manager held a field.
	written, limited, conflict policy.Time

	conditions map[string]metav1.Condition
}

// New returns a backend that reads through c and, where it must not be late, through
// r, and tells sink what it sees.
func New(cfg Config, c client.Client, r client.Reader, sink backend.Sink) (*Backend, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if c == nil || r == nil || sink == nil {
		return nil, fmt.Errorf("karpenter: a client, a reader and a sink are needed")
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Ahead == nil {
		cfg.Ahead = c
	}
	if cfg.Since == 0 {
		cfg.Since = policy.TimeOf(cfg.Clock.Now().Truncate(time.Second))
	}
	return &Backend{
		cfg: cfg, log: cfg.Log.With("backend", BackendName), client: c, ahead: cfg.Ahead, reader: r, sink: sink,
		pools: map[string]*poolState{}, nodePools: map[string]string{}, claims: map[string]*seenClaim{},
		launches: map[string]launchEnd{}, released: map[string]bool{},
		prepared: map[string]bool{}, waiting: map[string]policy.Time{}, idle: map[string]policy.Time{}, interrupts: map[string]bool{},
	}, nil
}

var _ backend.Backend = (*Backend)(nil)

func (b *Backend) now() policy.Time { return policy.TimeOf(b.cfg.Clock.Now()) }

// pool returns the state of a CapacityPool; b.mu is held.
func (b *Backend) pool(name string) *poolState {
	p := b.pools[name]
	if p == nil {
		p = &poolState{conditions: map[string]metav1.Condition{}}
		b.pools[name] = p
	}
	return p
}

// missing reports whether err, of a list, says that the API server does not know
// Karpenter's kinds.
func missing(err error) bool { return meta.IsNoMatchError(err) || apierrors.IsNotFound(err) }

// nodePoolsNow reads the NodePools from the API server.
func (b *Backend) nodePoolsNow(ctx context.Context) ([]karpv1.NodePool, error) {
	var list karpv1.NodePoolList
	if err := b.reader.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("listing NodePools: %w", err)
	}
	return list.Items, nil
}

// claimOf returns the NodeClaim of a node, as the API server has it; nil where there
// is none.
func (b *Backend) claimOf(ctx context.Context, node *corev1.Node) (*karpv1.NodeClaim, error) {
	var list karpv1.NodeClaimList
	if err := b.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing NodeClaims: %w", err)
	}
	name := ""
	for i := range list.Items {
		c := &list.Items[i]
		if c.Status.NodeName == node.Name || c.Status.ProviderID != "" && c.Status.ProviderID == node.Spec.ProviderID {
			name = c.Name
		}
	}
	if name == "" {
		return nil, nil
	}
	var c karpv1.NodeClaim
	if err := b.reader.Get(ctx, client.ObjectKey{Name: name}, &c); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return nil, nil
		}
		return nil, fmt.Errorf("reading NodeClaim %s: %w", name, err)
	}
	return &c, nil
}

// claimIs reports whether a condition of c is True.
func claimIs(c *karpv1.NodeClaim, kind string) bool {
	for i := range c.Status.Conditions {
		if x := &c.Status.Conditions[i]; x.Type == kind {
			return x.Status == metav1.ConditionTrue
		}
	}
	return false
}

// poolIsNot reports whether a condition of p is False, and why.
func poolIsNot(p *karpv1.NodePool, kind string) (bool, string) {
	for i := range p.Status.Conditions {
		if x := &p.Status.Conditions[i]; x.Type == kind && x.Status == metav1.ConditionFalse {
			return true, x.Message
		}
	}
	return false, ""
}
