// Package share measures what a pool holds on spot and on demand, in the unit of its
// spot share. It knows snapshots and no policy.
package share

import "github.com/spotter-dev/spotter/policy"

// A Holding is what a pool has in the unit of its spot share: vCPUs, or GPUs
// in a pool all of whose markets have them.
type Holding struct {
	// Spot and Fixed are the capacity held on spot, and on demand or reserved,
	// of initialized nodes that nobody is emptying.
	Spot, Fixed int64

	// Nodes is the number of those nodes.
	Nodes int

	// Arriving holds, by capacity type, what is launching or joining, and
	// ArrivingOurs the part of it that plans asked for.
	Arriving, ArrivingOurs [3]int64

	// Waiting holds, by capacity type, initialized nodes whose drain by us has
	// been ordered and not begun; WaitingNodes is their number.
	Waiting      [3]int64
	WaitingNodes int

	// ArrivingNodes is the number of nodes in ArrivingOurs.
	ArrivingNodes int
}

// Of returns what pool has.
func Of(s *policy.Snapshot, pool policy.PoolID) Holding {
	var h Holding
	gpus := CountsGPUs(s, pool)
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.Pool == pool {
			h.add(s, n, gpus)
		}
	}
	return h
}

// Add counts n, a node of the pool. Who knows which nodes changed adds these alone, and
// the others with Hold.
func (h *Holding) Add(s *policy.Snapshot, n *policy.Node) { h.add(s, n, CountsGPUs(s, n.Pool)) }

func (h *Holding) add(s *policy.Snapshot, n *policy.Node, gpus bool) {
	if n.Market == policy.None || n.Phase == policy.NodeGone || n.Phase >= policy.NodeDraining {
		return
	}
	m := &s.Markets[n.Market]
	size := unitsOf(&s.Types[m.Type], gpus)
	switch {
	case n.Phase < policy.NodeInitialized:
		h.Arriving[m.Capacity] += size
		if n.Token != "" {
			h.ArrivingOurs[m.Capacity] += size
			h.ArrivingNodes++
		}
	case n.ActedBy == policy.ActorUs:
		h.Waiting[m.Capacity] += size
		h.WaitingNodes++
	case n.ActedBy != policy.ActorNone || n.ReclaimAt != 0:
	default:
		h.hold(m, size, 1)
	}
}

// Hold counts so many initialized nodes of market m of the pool that nobody is emptying.
func (h *Holding) Hold(s *policy.Snapshot, pool policy.PoolID, m policy.MarketID, nodes int) {
	h.hold(&s.Markets[m], Units(s, pool, m), nodes)
}

func (h *Holding) hold(m *policy.Market, size int64, nodes int) {
	if m.Capacity == policy.Spot {
		h.Spot += int64(nodes) * size
	} else {
		h.Fixed += int64(nodes) * size
	}
	h.Nodes += nodes
}

// Share returns the part of h that is spot, 0 when there is nothing.
func (h *Holding) Share() float64 {
	if h.Spot+h.Fixed == 0 {
		return 0
	}
	return float64(h.Spot) / float64(h.Spot+h.Fixed)
}

// Units returns what a node of market m counts in the share of pool.
func Units(s *policy.Snapshot, pool policy.PoolID, m policy.MarketID) int64 {
	return unitsOf(&s.Types[s.Markets[m].Type], CountsGPUs(s, pool))
}

// CountsGPUs reports whether the share of pool is measured in GPUs: whether
// all of its markets have them.
func CountsGPUs(s *policy.Snapshot, pool policy.PoolID) bool {
	markets := s.Pools[pool].Markets
	for _, m := range markets {
		if s.Types[s.Markets[m].Type].Capacity.GPU == 0 {
			return false
		}
	}
	return len(markets) > 0
}

// unitsOf returns what a node of type t counts.
func unitsOf(t *policy.InstanceType, gpus bool) int64 {
	if gpus {
		return t.Capacity.GPU
	}
	return t.VCPU
}
