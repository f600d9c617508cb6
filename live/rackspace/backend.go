package rackspace

import (
	"errors"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// Name is the name of the backend.
const Name = "rackspace"

// owner is the field manager of what we write.
const owner = client.FieldOwner("spotter")

// The types of the conditions of a CapacityPool that are ours to tell.
const (
	CredentialsInvalid  = "CredentialsInvalid"
	CloudspaceReachable = "CloudspaceReachable"
)

// A Backend buys at Rackspace Spot. Its methods may be called by any number of
// goroutines.
type Backend struct {
	cfg    Config
	client client.Client
	reader client.Reader
	sink   backend.Sink
	feed   *Feed

	// mu guards what follows. It is never held during a call of an API.
	mu       sync.Mutex
	accounts map[accountKey]*account
	machines map[string]*machine // by the name of the SpotNode
	strays   map[string]*stray   // by the name of the node pool
	pools    map[string]*poolState
	writes   uint64            // counts changes of machines made by calls
	erased   map[string]uint64 // the SpotNodes that were deleted, by that count
}

// A poolState is what is known of a CapacityPool.
type poolState struct {
	conditions []metav1.Condition
	steer      steer
	active     bool        // its mode
	account    accountKey  // what it names, also once it is deleted
	answered   policy.Time // when its cloudspace was last read; zero when the last try failed

	// bought is what was launched upon the snapshot of boughtAt, which cannot hold
	// it yet.
	bought   policy.Resources
	boughtAt policy.Time
}

// New returns a backend that reads CapacityPools and Nodes from c, the ledger and
// secrets from r, and reports to s what it learns.
func New(cfg Config, c client.Client, r client.Reader, s backend.Sink) (*Backend, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if cfg.Feed == nil {
		feed, err := NewFeed(cfg)
		if err != nil {
			return nil, err
		}
		cfg.Feed = feed
	}
	return &Backend{
		cfg: cfg, client: c, reader: r, sink: s, feed: cfg.Feed,
		accounts: map[accountKey]*account{}, machines: map[string]*machine{}, strays: map[string]*stray{}, pools: map[string]*poolState{}, erased: map[string]uint64{},
	}, nil
}

var _ backend.Backend = (*Backend)(nil)

// Feed returns the feed that learns from this backend.
func (b *Backend) Feed() *Feed { return b.feed }

func (b *Backend) now() policy.Time { return policy.TimeOf(b.cfg.Clock.Now()) }

// pool returns what is known of a CapacityPool; b.mu is held.
func (b *Backend) pool(name string) *poolState {
	p := b.pools[name]
	if p == nil {
		p = &poolState{}
		b.pools[name] = p
	}
	return p
}

// Conditions returns what holds of a CapacityPool as far as Rackspace is concerned;
// nil for one that is not ours.
func (b *Backend) Conditions(pool string) []metav1.Condition {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.pools[pool]; p != nil {
		return append([]metav1.Condition(nil), p.conditions...)
	}
	return nil
}

// reportUnjudged has pools that were never judged say so: a cloudspace may take long to answer.
func (b *Backend) reportUnjudged(pools []v1alpha1.CapacityPool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range pools {
		p := b.pool(pools[i].Name)
		if len(p.conditions) > 0 {
			continue
		}
		meta.SetStatusCondition(&p.conditions, metav1.Condition{
			Type: CloudspaceReachable, Status: metav1.ConditionFalse, Reason: "NotRead", Message: "The cloudspace was not read yet since this replica began.",
			ObservedGeneration: pools[i].Generation, LastTransitionTime: metav1.NewTime(b.cfg.Clock.Now()),
		})
	}
}

// judge writes the conditions of a pool from how the last reading of its account
// went. It is data for the status of the pool, which is not ours to write.
func (b *Backend) judge(pool string, generation int64, err error) {
	invalid := metav1.Condition{Type: CredentialsInvalid, Status: metav1.ConditionFalse, Reason: "Accepted", Message: "Rackspace accepts the credentials."}
	reachable := metav1.Condition{Type: CloudspaceReachable, Status: metav1.ConditionTrue, Reason: "Read", Message: "The node pools of the cloudspace were read."}
	if err != nil {
		reachable.Status, reachable.Reason, reachable.Message = metav1.ConditionFalse, "NotRead", err.Error()
		if errors.Is(err, errCredentials) {
			invalid.Status, invalid.Reason, invalid.Message = metav1.ConditionTrue, "Refused", err.Error()
			if apierrors.IsNotFound(err) {
				invalid.Reason = "SecretNotFound"
			}
		} else {
			invalid.Status, invalid.Reason, invalid.Message = metav1.ConditionUnknown, "NotAsked", "The API of Rackspace did not answer."
		}
	}
	b.feed.unplaced(err)
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.pool(pool)
	for _, c := range []metav1.Condition{invalid, reachable} {
		c.ObservedGeneration = generation
		c.LastTransitionTime = metav1.NewTime(b.cfg.Clock.Now())
		meta.SetStatusCondition(&p.conditions, c)
	}
}

// held turns what a user can mend into a [backend.Held]; any other error stays.
func held(err error) error {
	var f *fault
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errCredentials):
		return backend.Hold(CredentialsInvalid, "%v", err)
	case meta.IsNoMatchError(err):
		return backend.Hold("LedgerMissing", "The CustomResourceDefinition of SpotNode is not installed: %v", err)
	case apierrors.IsForbidden(err):
		return backend.Hold("Forbidden", "Spotter may not do what it must: %v", err)
	case errors.As(err, &f) && f.Status == 403:
		return backend.Hold("Forbidden", "Rackspace does not let these credentials do that: %v", err)
	case errors.As(err, &f) && f.Status == 404:
		return backend.Hold("CloudspaceNotFound", "Rackspace does not know the cloudspace or its organisation: %v", err)
	}
	return err
}

// spotNodeOf returns the machine that a node is, by its labels.
func (b *Backend) spotNodeOf(labels map[string]string, node string) (*machine, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if m := b.machines[labels[spotNodeLabel]]; m != nil {
		return m, nil
	}
	for _, m := range b.machines {
		if m.order.nodePool == labels[poolNameLabel] {
			return m, nil
		}
	}
	if n := labels[poolNameLabel]; n != "" {
		return nil, backend.Hold("NotOurs", "Node %s is of node pool %s, which Spotter did not make. The API cannot say which machine of a pool is to go, so it is left.", node, n)
	}
	return nil, backend.Hold("NotOurs", "Node %s was not made by Spotter.", node)
}
