package karpenter

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/awslabs/operatorpkg/status"
	"golang.org/x/sync/semaphore"
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

	// launchTurn is held by who makes a NodeClaim: how many may have no machine is counted
	// before.
	launchTurn *semaphore.Weighted

	// mu guards what follows. All of it is made anew after a restart, from the objects of
	// the cluster or the next plan, and what else its loss costs stands beside it.
	mu         sync.Mutex
	pools      map[string]*poolState  // by CapacityPool
	launches   map[string]launchEnd   // by token, of launches that came to nothing; one is tried once more
	reserved   map[string]reservation // by Node, of drains whose mark the cache may not show yet
	inherited  map[string]bool        // NodePools whose Nodes were read for the marks of the leader before
	idle       map[string]policy.Time // since when nothing is seen that a NodeClaim or Node is protected for; it is so for longer
	interrupts map[string]bool        // UIDs and reasons of interruption Events reported; one is reported again
	classKind  schema.GroupKind       // of node class, as found last
	absent     policy.Time            // when Karpenter was last found not to be installed
	classes    classList
}

// A poolState is what is remembered of one CapacityPool between calls.
type poolState struct {
	// turn is held by who writes the NodePools of the pool.
	turn *semaphore.Weighted

	// wanted is what the pool is to buy. What is in force is read off its NodePools after
	// a restart, and what waits to be written is ordered again by the next plan.
	wanted steering

	// written is when more than the weight and limits of a NodePool was last changed,
	// limited when anything was, and conflict when another manager held a field. The
	// first is on the NodePools too; without the others one write comes sooner.
	written, limited, conflict policy.Time

	// refused is what was in the way when the NodePools of the pool in this generation, in
	// any where it is 0, were last read or written; nil where nothing was. The next write
	// finds it again.
	refused    *backend.Held
	generation int64

	conditions map[string]metav1.Condition
}

// New returns a backend that reads through c and, where it must not be late, through
// r, and reports to sink what it sees.
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
		launchTurn: semaphore.NewWeighted(1),
		pools:      map[string]*poolState{}, launches: map[string]launchEnd{}, reserved: map[string]reservation{},
		inherited: map[string]bool{}, idle: map[string]policy.Time{}, interrupts: map[string]bool{},
	}, nil
}

var _ backend.Backend = (*Backend)(nil)

func (b *Backend) now() policy.Time { return policy.TimeOf(b.cfg.Clock.Now()) }

// pool returns the state of a CapacityPool; b.mu is held.
func (b *Backend) pool(name string) *poolState {
	p := b.pools[name]
	if p == nil {
		p = &poolState{turn: semaphore.NewWeighted(1), conditions: map[string]metav1.Condition{}}
		b.pools[name] = p
	}
	return p
}

// missing reports whether err, of a list, says that the API server does not know
// Karpenter's kinds.
func missing(err error) bool { return meta.IsNoMatchError(err) || apierrors.IsNotFound(err) }

// claimOf returns the NodeClaim of a node, as the API server has it; nil where there
// is none.
func (b *Backend) claimOf(ctx context.Context, node *corev1.Node) (*karpv1.NodeClaim, error) {
	all, err := b.cachedClaims(ctx)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(c karpv1.NodeClaim) bool {
		return c.Status.NodeName == node.Name || launched(&c) && c.Status.ProviderID == node.Spec.ProviderID
	})
	if i < 0 {
		return nil, nil
	}
	var c karpv1.NodeClaim
	if there, err := b.there(ctx, "NodeClaim", all[i].Name, &c); !there {
		return nil, err
	}
	return &c, nil
}

// there reads an object from the API server and reports whether it is there.
func (b *Backend) there(ctx context.Context, kind, name string, o client.Object) (bool, error) {
	err := b.reader.Get(ctx, client.ObjectKey{Name: name}, o)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading %s %s: %w", kind, name, err)
	}
	return err == nil, nil
}

// observed has Karpenter's own reading of conditions leave the object as it is: the cache
// shares it.
var observed = status.WithObservedOnly()

// claimIs reports whether a condition of c is True.
func claimIs(c *karpv1.NodeClaim, kind string) bool { return c.StatusConditions(observed).IsTrue(kind) }

// poolIsNot reports whether a condition of p is False, and why.
func poolIsNot(p *karpv1.NodePool, kind string) (bool, string) {
	x := p.StatusConditions(observed).Get(kind)
	if !x.IsFalse() {
		return false, ""
	}
	return true, x.Message
}
