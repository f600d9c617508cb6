package rackspace

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// A reading is what one look at the API, the ledger and the cluster showed.
type reading struct {
	at     policy.Time
	before uint64 // the count of writes when it began
	pools  []v1alpha1.CapacityPool
	ledger []v1alpha1.SpotNode
	nodes  map[string]*corev1.Node // by SpotNode, and by node pool

	// listed are the node pools of the accounts that answered, by name.
	listed   map[string]*nodePool
	answered map[string]bool       // CapacityPools whose account did
	orphans  map[string]accountKey // by CapacityPool that was deleted and has orders still
}

// A stray is a node pool of ours that the ledger does not name.
type stray struct {
	order  order
	broken error // why order cannot be read
	since  policy.Time
	last   policy.Time // when it was last listed
}

// Run polls until the context ends. It writes nothing.
func (b *Backend) Run(ctx context.Context) error {
	tick := b.cfg.Clock.NewTicker(b.cfg.Poll)
	defer tick.Stop()
	for {
		if err := b.Poll(ctx); err != nil && ctx.Err() == nil {
			b.cfg.Log.Warn("polling Rackspace Spot failed and is tried again", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C():
		}
	}
}

// Poll reads what the API, the ledger and the cluster show, and reports to the sink. A
// cloudspace that does not answer leaves its machines as they were.
func (b *Backend) Poll(ctx context.Context) error {
	r, err := b.read(ctx)
	if err != nil {
		return err
	}
	for _, report := range b.absorb(r) {
		report(b.sink)
	}
	return nil
}

func (b *Backend) read(ctx context.Context) (*reading, error) {
	r := &reading{listed: map[string]*nodePool{}, answered: map[string]bool{}, nodes: map[string]*corev1.Node{}}
	b.mu.Lock()
	r.before = b.writes
	b.mu.Unlock()
	var pools v1alpha1.CapacityPoolList
	if err := b.client.List(ctx, &pools); err != nil {
		return nil, fmt.Errorf("listing CapacityPools: %w", err)
	}
	for _, p := range pools.Items {
		if p.Spec.Backend.Rackspace != nil {
			r.pools = append(r.pools, p)
		}
	}
	b.reportUnjudged(r.pools)
	r.orphans = b.orphans(r.pools)
	if err := b.readCloud(ctx, r); err != nil {
		return nil, err
	}
	// The ledger and the cluster are read after the cloud: what is ordered in
	// between is in the ledger and only seems not to be listed yet.
	var ledger v1alpha1.SpotNodeList
	if err := b.reader.List(ctx, &ledger); err != nil {
		return nil, fmt.Errorf("listing SpotNodes: %w", err)
	}
	r.ledger = ledger.Items
	if len(r.pools) > 0 || len(r.ledger) > 0 {
		var nodes corev1.NodeList
		if err := b.client.List(ctx, &nodes); err != nil {
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
	r.at = b.now()
	return r, nil
}

// newer returns the node that joined later: a machine that was exchanged leaves the
// old Node behind for a while.
func newer(a, b *corev1.Node) *corev1.Node {
	if a != nil && a.CreationTimestamp.After(b.CreationTimestamp.Time) {
		return a
	}
	return b
}

// orphans returns the accounts of pools that are not among those there are, and of which
// orders are left: what each named last, else that of another pool of the cloudspace.
func (b *Backend) orphans(there []v1alpha1.CapacityPool) map[string]accountKey {
	b.mu.Lock()
	defer b.mu.Unlock()
	left := map[string]accountKey{}
	for _, m := range b.machines {
		name := m.order.pool
		if slices.ContainsFunc(there, func(x v1alpha1.CapacityPool) bool { return x.Name == name }) {
			continue
		}
		if p := b.pools[name]; p != nil {
			left[name] = p.account
		} else if i := slices.IndexFunc(there, func(x v1alpha1.CapacityPool) bool { return x.Spec.Backend.Rackspace.Cloudspace == m.order.cloudspace }); i >= 0 {
			left[name] = b.keyOf(&there[i])
		}
	}
	return left
}

// readCloud reads each account once.
func (b *Backend) readCloud(ctx context.Context, r *reading) error {
	results := map[accountKey]error{}
	read := func(pool string, k accountKey) error {
		err, done := results[k]
		if !done {
			err = b.failed(k, b.readAccount(ctx, k, r))
			results[k] = err
		}
		if err != nil && ctx.Err() == nil {
			b.cfg.Log.Warn("a cloudspace cannot be read", "pool", pool, "cloudspace", k.cloudspace, "error", err)
		}
		r.answered[pool] = err == nil
		return err
	}
	for i := range r.pools {
		p := &r.pools[i]
		err := read(p.Name, b.keyOf(p))
		if ctx.Err() != nil {
			return ctx.Err()
		}
		b.judge(p.Name, p.Generation, err)
	}
	for name, k := range r.orphans {
		_ = read(name, k) // it is logged, and its orders stay as they were
	}
	return ctx.Err()
}

// readAccount reads the node pools of a cloudspace and the server classes. All of
// it must be had: half a list would look like machines that are gone.
func (b *Backend) readAccount(ctx context.Context, k accountKey, r *reading) error {
	a, err := b.open(ctx, k)
	if err != nil {
		return err
	}
	classes, err := a.cloud.serverClasses(ctx)
	if err != nil {
		return err
	}
	b.feed.learn(classes, []string{a.region})
	if b.cfg.Located != nil {
		b.cfg.Located(k.cloudspace, a.region)
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

// absorb takes in a reading and returns what the sink is to learn, in order.
func (b *Backend) absorb(r *reading) []func(backend.Sink) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var reports []func(backend.Sink)
	for i := range r.pools {
		reports = append(reports, b.absorbPool(&r.pools[i], r)...)
	}
	for name, k := range r.orphans {
		b.pool(name).account, b.pool(name).active = k, false
	}
	maps.DeleteFunc(b.pools, func(name string, p *poolState) bool {
		if p.answered = r.at; !r.answered[name] {
			p.answered = 0
		}
		_, left := r.orphans[name]
		return !left && !slices.ContainsFunc(r.pools, func(p v1alpha1.CapacityPool) bool { return p.Name == name })
	})
	known, ours := map[string]bool{}, map[string]bool{}
	for i := range r.ledger {
		n := &r.ledger[i]
		o, err := orderOf(n)
		if err != nil {
			b.cfg.Log.Warn("an entry of the ledger cannot be read", "error", err)
			continue
		}
		if b.erased[n.Name] > r.before {
			continue
		}
		known[n.Name], ours[o.nodePool] = true, true
		m := b.machines[n.Name]
		if m == nil {
			m = newMachine(n, o)
			b.machines[n.Name] = m
		} else if m.written <= r.before {
			n.DeepCopyInto(&m.spot)
		}
		reports = append(reports, b.absorbMachine(m, r)...)
	}
	for _, name := range slices.Sorted(maps.Keys(b.machines)) {
		m := b.machines[name]
		if known[name] || m.written > r.before {
			ours[m.order.nodePool] = true
			continue
		}
		delete(b.machines, name)
		reports = append(reports, func(s backend.Sink) { s.DropMachine(Name, name) })
	}
	b.absorbStrays(r, ours)
	maps.DeleteFunc(b.erased, func(_ string, at uint64) bool { return at <= r.before })
	return reports
}

func (b *Backend) absorbPool(p *v1alpha1.CapacityPool, r *reading) (reports []func(backend.Sink)) {
	x := b.pool(p.Name)
	x.account = b.keyOf(p)
	x.active = p.Spec.Mode == v1alpha1.ModeActive
	if last := steerOf(p); last.Since != "" && instant(last.Since) > instant(x.steer.Since) {
		x.steer = last
		reports = append(reports, func(s backend.Sink) {
			s.SetSteer(p.Name, policy.SteerState{Set: true, Share: last.Share, Since: instant(last.Since)})
		})
	}
	return reports
}

// absorbMachine takes in what was seen of one machine. One that was changed since
// the reading began is left to the next.
func (b *Backend) absorbMachine(m *machine, r *reading) (reports []func(backend.Sink)) {
	if m.written > r.before {
		return nil
	}
	node := r.nodes[m.order.name]
	if node == nil {
		node = r.nodes[m.order.nodePool]
	}
	if r.answered[m.order.pool] {
		v := view{now: r.at, node: node}
		if p := r.listed[m.order.nodePool]; p != nil {
			v.listed, v.given, v.size = true, p.given(), max(p.given(), p.Spec.Desired)
			price, ok := b.feed.marketPrice(m.order.class)
			v.above = ok && m.order.capacity == policy.Spot && price > cmp.Or(bidOf(p), m.order.bid)
		}
		m.see(v, &b.cfg)
	} else {
		m.seeNode(node)
	}
	return b.report(m)
}

// tell returns what the sink has not heard of m.
func (b *Backend) report(m *machine) (reports []func(backend.Sink)) {
	meet := func(done *bool, k backend.EventKind, at policy.Time) {
		if !*done && at != 0 {
			*done = true
			e := backend.Event{Kind: k, Pool: m.order.pool, Market: m.order.market, At: at}
			reports = append(reports, func(s backend.Sink) { s.Meet(e) })
		}
	}
	heard := m.reported
	meet(&m.reported.launch, backend.MetLaunch, m.won)
	meet(&m.reported.refusal, backend.MetRefusal, m.failed)
	meet(&m.reported.reclaim, backend.MetReclaim, m.reclaimed)
	if m.ended() {
		if !m.reported.dropped {
			m.reported.dropped = true
			reports = append(reports, func(s backend.Sink) { s.DropMachine(Name, m.order.name) })
		}
	} else {
		x := m.machine()
		reports = append(reports, func(s backend.Sink) { s.SetMachine(Name, x) })
		if n, ok := m.notice(b.cfg.Notice); ok && !m.reported.notice {
			m.reported.notice = true
			reports = append(reports, func(s backend.Sink) { s.Notice(n); s.Wake("outbid") })
		}
	}
	if m.reported.refusal != heard.refusal || m.reported.reclaim != heard.reclaim {
		word := map[bool]string{true: "lost", false: "refused"}[m.reclaimed != 0]
		reports = append(reports, func(s backend.Sink) { s.Wake(word) })
	}
	return reports
}

// absorbStrays notes the node pools that carry our label and are not in the ledger.
func (b *Backend) absorbStrays(r *reading, ours map[string]bool) {
	for name, p := range r.listed {
		if ours[name] || p.Spec.CustomLabels[spotNodeLabel] == "" {
			continue
		}
		x := b.strays[name]
		if x == nil {
			x = &stray{since: r.at}
			x.order, x.broken = orderOfPool(p)
			x.order.pool = p.Spec.CustomLabels[poolLabel]
			b.strays[name] = x
		}
		x.last = r.at
	}
	for name, x := range b.strays {
		if ours[name] || x.last != r.at {
			delete(b.strays, name)
		}
	}
}

// nodeOf reads the Node of a machine from the cluster.
func (b *Backend) nodeOf(ctx context.Context, m *machine) (*corev1.Node, error) {
	b.mu.Lock()
	name := m.node
	b.mu.Unlock()
	if name == "" {
		return nil, nil
	}
	var n corev1.Node
	if err := b.client.Get(ctx, client.ObjectKey{Name: name}, &n); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return &n, nil
}
