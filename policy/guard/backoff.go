package guard

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// remember returns m with the moves that were allowed: when each pool was last moved, and until
// when each drained node must not be tried again. It undoes what the policy recorded of moves that
// were held.
func (r *review) remember(m policy.Memory) policy.Memory {
	for i := range r.pools {
		if !r.pools[i].planned {
			continue
		}
		pm := m.Pool(r.s.Pools[i].Name)
		pm.Moved = r.before.Pool(pm.Name).Moved
		if r.pools[i].moved {
			pm.Moved = r.s.Now
			pm.Backoff = r.backoff(policy.PoolID(i), pm.Backoff)
		}
		m = m.With(pm)
	}
	return m
}

// backoff returns list without nodes that are gone and with the nodes of pool that are drained now.
func (r *review) backoff(pool policy.PoolID, list []policy.Backoff) []policy.Backoff {
	there := make([]bool, len(list))
	filter := (&policy.PoolMemory{Backoff: list}).Filter(-1)
	for i := range r.s.Nodes {
		if n := &r.s.Nodes[i]; n.Pool == pool && n.Live() && filter.May(n.Name) {
			if at, ok := policy.FindBackoff(list, n.Name); ok {
				there[at] = true
			}
		}
	}
	next := make([]policy.Backoff, 0, len(list)+len(r.leaving))
	for i := range list {
		if there[i] {
			next = append(next, list[i])
		}
	}
	for i := range r.leaving {
		n := &r.s.Nodes[r.leaving[i].node]
		if !r.leaving[i].allowed || n.Pool != pool || n.ReclaimAt != 0 {
			continue
		}
		at, ok := policy.FindBackoff(next, n.Name)
		if !ok {
			next = slices.Insert(next, at, policy.Backoff{Node: n.Name})
		}
		b := &next[at]
		b.Tries++
		wait := r.cfg.BackoffMax
		if shift := b.Tries - 1; shift < 16 {
			wait = min(wait, r.cfg.BackoffMin<<shift)
		}
		b.Until = r.s.Now.Add(wait)
	}
	return next
}
