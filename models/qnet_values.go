package models

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// valueOwn sets the values of each pool's actions from rows of [PoolFeaturesQ]. A pool without an
// offered Spot market in scope has no values.
func (f *Trained) valueOwn(s *policy.Snapshot, memory *policy.Memory) error {
	v, net := &f.pools, f.bundle.Actions
	v.rows.Collect(s, memory)
	v.asked, v.in = v.asked[:0], v.in[:0]
	for i := range s.Pools {
		p := &s.Pools[i]
		p.Actions = nil
		switch {
		case p.Mode == policy.ModeOff || p.Share.Exact: // there is nothing to choose
		case !f.covers(s, p):
			f.counts.Unvalued++
		default:
			at := len(v.in)
			v.in = slices.Grow(v.in, net.Width)[:at+net.Width]
			v.rows.Row(p.ID, v.in[at:])
			v.asked = append(v.asked, p.ID)
		}
	}
	return f.askPools(s)
}

// covers reports whether p has an offered Spot market in scope.
func (f *Trained) covers(s *policy.Snapshot, p *policy.Pool) bool {
	return slices.ContainsFunc(p.Markets, func(id policy.MarketID) bool {
		m := &s.Markets[id]
		return m.Capacity == policy.Spot && m.Offered && f.kinds[m.Type].covered
	})
}

// ordinaryPool writes the features of an ordinary pool.
func ordinaryPool(row []float32) {
	s := &policy.Snapshot{
		Now: 1_700_000_000_000, Zones: []string{"a"},
		Types: []policy.InstanceType{{VCPU: 4, Allocatable: policy.Resources{CPU: 4000, Memory: 16 << 30, Pods: 50}}},
		Markets: []policy.Market{
			{Name: "a/on-demand", Offered: true, Price: policy.Dollars(0.97), OnDemand: policy.Dollars(0.97)},
			{ID: 1, Name: "a/spot", Capacity: policy.Spot, Offered: true, Price: policy.Dollars(0.31),
				OnDemand: policy.Dollars(0.97)},
		},
		Pools: []policy.Pool{{Name: "a", Mode: policy.ModeActive, Markets: []policy.MarketID{0, 1},
			Share: policy.ShareRange{Max: 1}}},
	}
	var rows PoolRows
	rows.Collect(s, &policy.Memory{})
	rows.Row(0, row)
}
