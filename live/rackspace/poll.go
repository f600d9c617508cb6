package rackspace

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// A reading is the result of one read of the API, the ledger and the cluster.
type reading struct {
	at     policy.Time
	before uint64 // count of writes when the read started
	pools  []v1alpha1.CapacityPool
	ledger []v1alpha1.SpotNode
	nodes  map[string]*corev1.Node // by name of the SpotNode and of the node pool

	// listed contains the node pools of the accounts that could be read, by name.
	listed   map[string]*nodePool
	answered map[string]bool       // CapacityPools whose account could be read
	orphans  map[string]accountKey // accounts by name of deleted CapacityPools that still have orders
}

// Run polls until the context ends. It writes nothing.
func (b *Backend) Run(ctx context.Context) error {
	tick := b.cfg.Clock.NewTicker(b.cfg.Poll)
	defer tick.Stop()
	for {
		if err := b.Poll(ctx); err != nil && ctx.Err() == nil {
			b.cfg.Log.Warn("polling Rackspace Spot failed and is retried", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C():
		}
	}
}

// Poll reads the state of the API, the ledger and the cluster, and reports changes to the sink. The
// machines of a cloudspace that cannot be read keep their state.
func (b *Backend) Poll(ctx context.Context) error {
	r, err := b.poller.read(ctx)
	if err != nil {
		return err
	}
	for _, report := range b.state.absorb(r) {
		report(b.sink)
	}
	return nil
}

func (p *poller) read(ctx context.Context) (*reading, error) {
	r := &reading{listed: map[string]*nodePool{}, answered: map[string]bool{}, nodes: map[string]*corev1.Node{}}
	p.state.mu.Lock()
	r.before = p.state.writes
	p.state.mu.Unlock()
	var pools v1alpha1.CapacityPoolList
	if err := p.client.List(ctx, &pools); err != nil {
		return nil, fmt.Errorf("listing CapacityPools: %w", err)
	}
	for _, p := range pools.Items {
		if p.Spec.Backend.Rackspace != nil {
			r.pools = append(r.pools, p)
		}
	}
	p.state.reportUnjudged(r.pools)
	r.orphans = p.state.orphans(r.pools)
	if err := p.readCloud(ctx, r); err != nil {
		return nil, err
	}
	// The ledger and the cluster are read after the cloud: an order that is placed between the two
	// reads is then in the ledger and counts as not listed yet.
	var ledger v1alpha1.SpotNodeList
	if err := p.reader.List(ctx, &ledger); err != nil {
		return nil, fmt.Errorf("listing SpotNodes: %w", err)
	}
	r.ledger = ledger.Items
	if len(r.pools) > 0 || len(r.ledger) > 0 {
		var nodes corev1.NodeList
		if err := p.client.List(ctx, &nodes); err != nil {
			return nil, fmt.Errorf("listing nodes: %w", err)
		}
		for i := range nodes.Items {
			n := &nodes.Items[i]
			for _, key := range []string{n.Labels[spotNodeLabel], n.Labels[poolNameLabel]} {
				if key != "" {
					r.nodes[key] = newer(r.nodes[key], n)
				}
			}
		}
	}
	r.at = p.cfg.now()
	return r, nil
}

// A poller reads the state of the API, the ledger and the cluster. It writes nothing.
type poller struct {
	cfg      *Config
	client   client.Client
	reader   client.Reader
	feed     *Feed
	accounts *accountTable
	state    *stateTable
}

// newer returns the node that joined later: when a machine is replaced, its old Node remains for a
// while.
func newer(a, b *corev1.Node) *corev1.Node {
	if a != nil && a.CreationTimestamp.After(b.CreationTimestamp.Time) {
		return a
	}
	return b
}

// readCloud reads each account once.
func (p *poller) readCloud(ctx context.Context, r *reading) error {
	results := map[accountKey]error{}
	read := func(pool string, k accountKey) error {
		err, done := results[k]
		if !done {
			err = p.accounts.failed(k, p.readAccount(ctx, k, r))
			results[k] = err
		}
		if err != nil && ctx.Err() == nil {
			p.cfg.Log.Warn("a cloudspace cannot be read", "pool", pool, "cloudspace", k.cloudspace, "error", err)
		}
		r.answered[pool] = err == nil
		return err
	}
	for i := range r.pools {
		x := &r.pools[i]
		err := read(x.Name, p.cfg.keyOf(x))
		if ctx.Err() != nil {
			return ctx.Err()
		}
		p.state.setConditions(x.Name, x.Generation, err)
	}
	for name, k := range r.orphans {
		_ = read(name, k) // errors are logged, and the orders keep their state
	}
	p.accounts.keepOnly(results)
	return ctx.Err()
}

// readAccount reads the node pools of a cloudspace and the server classes. Any error discards the
// result, because machines that are missing in a partial list would count as gone.
func (p *poller) readAccount(ctx context.Context, k accountKey, r *reading) error {
	a, err := p.accounts.open(ctx, k)
	if err != nil {
		return err
	}
	classes, err := a.cloud.serverClasses(ctx)
	if err != nil {
		return err
	}
	p.feed.learn(classes, []string{a.region})
	if p.cfg.Located != nil {
		p.cfg.Located(k.cloudspace, a.region)
	}
	var all []nodePool
	for _, kind := range []kind{spotPools, onDemandPools} {
		pools, err := a.cloud.pools(ctx, a.namespace, k.cloudspace, kind)
		if err != nil {
			return err
		}
		all = append(all, pools...)
	}
	for i := range all {
		r.listed[all[i].Metadata.Name] = &all[i]
	}
	return nil
}
