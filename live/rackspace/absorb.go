package rackspace

import (
	"cmp"
	"maps"
	"slices"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// A stray is a node pool with Spotter's label that is not in the ledger.
type stray struct {
	order  order
	broken error // the error of reading order
	since  policy.Time
	last   policy.Time // when it was last listed
}

// orphans returns the accounts of deleted pools that still have orders, by name of the pool: the
// account that the pool last named, else that of another pool in the same cloudspace.
func (t *stateTable) orphans(there []v1alpha1.CapacityPool) map[string]accountKey {
	t.mu.Lock()
	defer t.mu.Unlock()
	left := map[string]accountKey{}
	for _, m := range t.machines {
		name := m.order.pool
		if slices.ContainsFunc(there, func(x v1alpha1.CapacityPool) bool { return x.Name == name }) {
			continue
		}
		if p := t.pools[name]; p != nil {
			left[name] = p.account
		} else if i := slices.IndexFunc(there, func(x v1alpha1.CapacityPool) bool { return x.Spec.Backend.Rackspace.Cloudspace == m.order.cloudspace }); i >= 0 {
			left[name] = t.cfg.keyOf(&there[i])
		}
	}
	return left
}

// absorb updates the state with a reading and returns the reports for the sink, in order.
func (t *stateTable) absorb(r *reading) []func(backend.Sink) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var reports []func(backend.Sink)
	for i := range r.pools {
		reports = append(reports, t.absorbPool(&r.pools[i], r)...)
	}
	for name, k := range r.orphans {
		t.pool(name).account, t.pool(name).active = k, false
	}
	maps.DeleteFunc(t.pools, func(name string, p *poolState) bool {
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
			t.cfg.Log.Warn("an entry of the ledger cannot be read", "error", err)
			continue
		}
		if t.erased[n.Name] > r.before {
			continue
		}
		known[n.Name], ours[o.nodePool] = true, true
		m := t.machines[n.Name]
		if m == nil {
			m = newMachine(n, o)
			t.machines[n.Name] = m
		} else if m.written <= r.before {
			n.DeepCopyInto(&m.spot)
		}
		reports = append(reports, t.absorbMachine(m, r)...)
	}
	for _, name := range slices.Sorted(maps.Keys(t.machines)) {
		m := t.machines[name]
		if known[name] || m.written > r.before {
			ours[m.order.nodePool] = true
			continue
		}
		delete(t.machines, name)
		reports = append(reports, func(s backend.Sink) { s.DropMachine(Name, name) })
	}
	t.absorbStrays(r, ours)
	maps.DeleteFunc(t.erased, func(_ string, at uint64) bool { return at <= r.before })
	return reports
}

func (t *stateTable) absorbPool(p *v1alpha1.CapacityPool, r *reading) (reports []func(backend.Sink)) {
	x := t.pool(p.Name)
	x.account = t.cfg.keyOf(p)
	x.active = p.Spec.Mode.Acts()
	if last := steerOf(p); last.Since != "" && instant(last.Since) > instant(x.steer.Since) {
		x.steer = last
		reports = append(reports, func(s backend.Sink) {
			s.SetSteer(p.Name, last.state())
		})
	}
	return reports
}

// absorbMachine updates the state of one machine. A machine that was written since the reading
// started is left to the next reading.
func (t *stateTable) absorbMachine(m *machine, r *reading) (reports []func(backend.Sink)) {
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
			price, ok := t.feed.marketPrice(m.order.class)
			v.above = ok && m.order.capacity == policy.Spot && price > cmp.Or(bidOf(p), m.order.bid)
		}
		m.see(v, t.cfg)
	} else {
		m.seeNode(node)
	}
	return t.report(m)
}

// report returns the changes of m that were not reported to the sink yet.
func (t *stateTable) report(m *machine) (reports []func(backend.Sink)) {
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
		if n, ok := m.notice(t.cfg.Notice); ok && !m.reported.notice {
			m.reported.notice = true
			reports = append(reports, func(s backend.Sink) { s.Notice(n); s.Wake(backend.WakeOutbid) })
		}
	}
	if m.reported.refusal != heard.refusal || m.reported.reclaim != heard.reclaim {
		word := map[bool]string{true: backend.WakeLost, false: backend.WakeRefused}[m.reclaimed != 0]
		reports = append(reports, func(s backend.Sink) { s.Wake(word) })
	}
	return reports
}

// absorbStrays records the node pools that have Spotter's label and are not in the ledger.
func (t *stateTable) absorbStrays(r *reading, ours map[string]bool) {
	for name, p := range r.listed {
		if ours[name] || p.Spec.CustomLabels[spotNodeLabel] == "" {
			continue
		}
		x := t.strays[name]
		if x == nil {
			x = &stray{since: r.at}
			x.order, x.broken = orderOfPool(p)
			x.order.pool = p.Spec.CustomLabels[poolLabel]
			t.strays[name] = x
		}
		x.last = r.at
	}
	for name, x := range t.strays {
		if ours[name] || x.last != r.at {
			delete(t.strays, name)
		}
	}
}
