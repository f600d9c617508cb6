package rackspace

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/live/backend"
)

// Name is the name of the backend.
const Name = "rackspace"

// owner is the field manager of Spotter's writes.
const owner = client.FieldOwner("spotter")

// Types of the conditions that this backend sets on a CapacityPool.
const (
	CredentialsInvalid  = "CredentialsInvalid"
	CloudspaceReachable = "CloudspaceReachable"
)

// A Backend buys capacity at Rackspace Spot. Its methods are safe for concurrent use.
type Backend struct {
	cfg    *Config
	client client.Client
	reader client.Reader
	sink   backend.Sink
	feed   *Feed

	accounts *accountTable
	state    *stateTable
	ledger   *ledger
	orders   *orderBook
	buyer    *buyer
	repair   *ledgerRepair
	poller   *poller
}

// New returns a backend that reads CapacityPools and Nodes from c and the ledger and secrets from
// r, and reports to s.
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
	b := &Backend{cfg: &cfg, client: c, reader: r, sink: s, feed: cfg.Feed, state: newStateTable(&cfg, cfg.Feed)}
	b.accounts = &accountTable{cfg: b.cfg, reader: r, byKey: map[accountKey]*account{}}
	b.ledger = &ledger{cfg: b.cfg, client: c, reader: r, sink: s, state: b.state}
	b.orders = &orderBook{cfg: b.cfg, client: c, accounts: b.accounts, state: b.state}
	b.buyer = &buyer{cfg: b.cfg, sink: s, feed: b.feed, accounts: b.accounts, state: b.state, ledger: b.ledger}
	b.repair = &ledgerRepair{cfg: b.cfg, client: c, state: b.state, ledger: b.ledger, orders: b.orders}
	b.poller = &poller{cfg: b.cfg, client: c, reader: r, feed: b.feed, accounts: b.accounts, state: b.state}
	return b, nil
}

var _ backend.Backend = (*Backend)(nil)

// Feed returns the market feed that this backend updates.
func (b *Backend) Feed() *Feed { return b.feed }

// Conditions returns the conditions of a CapacityPool that concern Rackspace; nil for a pool of
// another backend.
func (b *Backend) Conditions(pool string) []metav1.Condition {
	return b.state.conditions(pool)
}

// held converts an error that a user can fix to a [backend.Held]. It returns other errors
// unchanged.
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
		return backend.Hold("Forbidden", "Spotter lacks a permission that it needs: %v", err)
	case errors.As(err, &f) && f.Status == 403:
		return backend.Hold("Forbidden", "Rackspace denies this to these credentials: %v", err)
	case errors.As(err, &f) && f.Status == 404:
		return backend.Hold("CloudspaceNotFound", "Rackspace does not have this cloudspace or its organization: %v", err)
	}
	return err
}
