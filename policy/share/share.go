// Package share measures the Spot and on-demand capacity of a pool in the unit of its Spot share.
// It depends on snapshots, but not on any policy.
package share

import "github.com/spotter-dev/spotter/policy"

// A Holding is the capacity of a pool in the unit of its Spot share: GPUs if all markets of the
// pool have GPUs, otherwise vCPUs.
type Holding struct {
	// Spot and Fixed are the capacity on Spot, and on demand or reserved, of initialized nodes that
	// no controller is draining.
	Spot, Fixed int64

	// Nodes is the number of these nodes.
	Nodes int

	// Arriving is the capacity of launching and joining nodes, by capacity type. ArrivingOurs is
	// the part of it that plans requested.
	Arriving, ArrivingOurs [3]int64

	// Waiting is the capacity of initialized nodes, by capacity type, for which Spotter ordered a
	// drain that has not started. WaitingNodes is their number.
	Waiting      [3]int64
	WaitingNodes int

	// ArrivingNodes is the number of nodes in ArrivingOurs.
	ArrivingNodes int
}

// Of returns the Holding of pool.
func Of(s *policy.Snapshot, pool policy.PoolID) Holding {
	held, gpus := s.Held(pool), CountsGPUs(s, pool)
	units := func(state policy.HeldState, c policy.CapacityType) int64 {
		if gpus {
			return held[state][c].GPU
		}
		return held[state][c].VCPU
	}
	nodes := func(state policy.HeldState) (n int) {
		for _, x := range held[state] {
			n += int(x.Nodes)
		}
		return n
	}
	h := Holding{
		Spot:  units(policy.HeldStanding, policy.Spot),
		Fixed: units(policy.HeldStanding, policy.OnDemand) + units(policy.HeldStanding, policy.Reserved),
		Nodes: nodes(policy.HeldStanding), WaitingNodes: nodes(policy.HeldWaiting), ArrivingNodes: nodes(policy.HeldOrdered),
	}
	for _, c := range [...]policy.CapacityType{policy.OnDemand, policy.Spot, policy.Reserved} {
		h.ArrivingOurs[c], h.Waiting[c] = units(policy.HeldOrdered, c), units(policy.HeldWaiting, c)
		h.Arriving[c] = units(policy.HeldArriving, c) + h.ArrivingOurs[c]
	}
	return h
}

// Share returns the Spot fraction of h, or 0 if h is empty.
func (h *Holding) Share() float64 {
	if h.Spot+h.Fixed == 0 {
		return 0
	}
	return float64(h.Spot) / float64(h.Spot+h.Fixed)
}

// Units returns the size of a node of market m in the unit of the pool's share.
func Units(s *policy.Snapshot, pool policy.PoolID, m policy.MarketID) int64 {
	return unitsOf(&s.Types[s.Markets[m].Type], CountsGPUs(s, pool))
}

// CountsGPUs reports whether the share of pool is measured in GPUs, which is the case if all of its
// markets have GPUs.
func CountsGPUs(s *policy.Snapshot, pool policy.PoolID) bool {
	markets := s.Pools[pool].Markets
	for _, m := range markets {
		if s.Types[s.Markets[m].Type].Capacity.GPU == 0 {
			return false
		}
	}
	return len(markets) > 0
}

// unitsOf returns the size of a node of type t.
func unitsOf(t *policy.InstanceType, gpus bool) int64 {
	if gpus {
		return t.Capacity.GPU
	}
	return t.VCPU
}
