package cluster_test

import (
	"slices"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// A ledger is a book that knows what a snapshot knows of markets.
type ledger struct {
	s      *policy.Snapshot
	met    []backend.Event
	filled uint64

	// filling is called while a snapshot is being made, if it is not nil.
	filling func()
}

func (b *ledger) Use([]*v1alpha1.CapacityPool) {}
func (b *ledger) Settle(*policy.Snapshot)      {}
func (b *ledger) Generation() uint64           { return 1 }
func (b *ledger) Meet(e backend.Event)         { b.met = append(b.met, e) }
func (b *ledger) Fill(s *policy.Snapshot, _ policy.Time) {
	b.filled++
	if b.filling != nil {
		b.filling()
	}
	s.Types, s.Zones, s.Markets, s.Quotas = b.s.Types, b.s.Zones, slices.Clone(b.s.Markets), b.s.Quotas
	s.Commitments = slices.Clone(b.s.Commitments)
	s.Sources = append(s.Sources[:0], policy.Source{Name: "prices", At: b.s.Now})
}

func (b *ledger) Choose(p *v1alpha1.CapacityPool) []policy.MarketID {
	for i := range b.s.Pools {
		if b.s.Pools[i].Name == p.Name {
			return b.s.Pools[i].Markets
		}
	}
	return nil
}

func (b *ledger) Lookup(name string) policy.MarketID {
	for i := range b.s.Markets {
		if b.s.Markets[i].Name == name {
			return policy.MarketID(i)
		}
	}
	return policy.None
}

func (b *ledger) Find(provider, region, zone, kind string, c policy.CapacityType) policy.MarketID {
	return b.Lookup(provider + "/" + region + "/" + zone + "/" + kind + "/" + c.String())
}
