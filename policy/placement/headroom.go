package placement

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// A Headroom is the capacity that can still be launched under the limits of a pool and the
// provider's quotas. It decreases as launches are planned.
type Headroom struct {
	s      *policy.Snapshot
	pool   policy.PoolID
	used   policy.Resources
	quotas []int64 // remainder of each of Snapshot.Quotas, in vCPUs
}

// HeadroomOf returns the headroom of one pool.
func HeadroomOf(s *policy.Snapshot, pool policy.PoolID) Headroom {
	r := Headroom{s: s, pool: pool, used: s.Pools[pool].Used, quotas: make([]int64, len(s.Quotas))}
	for i := range s.Quotas {
		r.quotas[i] = s.Quotas[i].VCPU
	}
	return r
}

// Headrooms returns the headroom of every pool, indexed by pool. They share the provider's quotas.
func Headrooms(s *policy.Snapshot) []Headroom {
	headrooms := make([]Headroom, len(s.Pools))
	for i := range headrooms {
		headrooms[i] = HeadroomOf(s, policy.PoolID(i))
		headrooms[i].quotas = headrooms[0].quotas
	}
	return headrooms
}

// Clone returns an independent copy.
func (r *Headroom) Clone() Headroom {
	c := *r
	c.quotas = slices.Clone(r.quotas)
	return c
}

// Has reports whether the headroom allows one more node in m.
func (r *Headroom) Has(m policy.MarketID) bool { return r.blocks(m) == "" }

// blocks returns the reason why the headroom does not allow a node in m: a limit of the pool, as
// named in its manifest, or a quota. It is empty if a node is allowed.
func (r *Headroom) blocks(m policy.MarketID) string {
	x := &r.s.Markets[m]
	t := &r.s.Types[x.Type]
	limits, after := r.s.Pools[r.pool].Limits, r.used.Plus(t.Capacity)
	for i, c := range [...][2]int64{
		{limits.CPU, after.CPU}, {limits.Memory, after.Memory}, {limits.GPU, after.GPU}, {limits.Storage, after.Storage},
	} {
		if c[0] > 0 && c[1] > c[0] {
			return [...]string{"limits.cpu", "limits.memory", "limits.gpu", "limits.storage"}[i]
		}
	}
	for i := range r.s.Quotas {
		if r.counts(&r.s.Quotas[i], x, t) && r.quotas[i] < t.VCPU {
			return "a provider quota"
		}
	}
	return ""
}

// Take subtracts one node in any of markets. The provider chooses the market, so each resource is
// counted at its maximum over them.
func (r *Headroom) Take(markets []policy.MarketID) {
	var most policy.Resources
	vcpu := make([]int64, len(r.quotas))
	for _, m := range markets {
		x := &r.s.Markets[m]
		t := &r.s.Types[x.Type]
		c := &t.Capacity
		most.CPU, most.Memory = max(most.CPU, c.CPU), max(most.Memory, c.Memory)
		most.GPU, most.Storage = max(most.GPU, c.GPU), max(most.Storage, c.Storage)
		for i := range r.s.Quotas {
			if r.counts(&r.s.Quotas[i], x, t) {
				vcpu[i] = max(vcpu[i], t.VCPU)
			}
		}
	}
	r.used = r.used.Plus(most)
	for i := range vcpu {
		r.quotas[i] -= vcpu[i]
	}
}

// counts reports whether a node of type t in market m counts against q.
func (r *Headroom) counts(q *policy.Quota, m *policy.Market, t *policy.InstanceType) bool {
	return q.Region == m.Region && q.Capacity == m.Capacity &&
		(len(q.Families) == 0 || slices.Contains(q.Families, t.Family))
}
