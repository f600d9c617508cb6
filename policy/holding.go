package policy

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

// Holding returns what pool has.
func (s *Snapshot) Holding(pool PoolID) Holding {
	var h Holding
	gpus := s.CountsGPUs(pool)
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Pool != pool || n.Market == None || n.Phase == NodeGone || n.Phase >= NodeDraining {
			continue
		}
		m := &s.Markets[n.Market]
		size := s.Types[m.Type].shareUnits(gpus)
		switch {
		case n.Phase < NodeInitialized:
			h.Arriving[m.Capacity] += size
			if n.Token != "" {
				h.ArrivingOurs[m.Capacity] += size
				h.ArrivingNodes++
			}
		case n.ActedBy == ActorUs:
			h.Waiting[m.Capacity] += size
			h.WaitingNodes++
		case n.ActedBy != ActorNone || n.ReclaimAt != 0:
		case m.Capacity == Spot:
			h.Spot += size
			h.Nodes++
		default:
			h.Fixed += size
			h.Nodes++
		}
	}
	return h
}

// Share returns the part of h that is spot, 0 when there is nothing.
func (h *Holding) Share() float64 {
	if h.Spot+h.Fixed == 0 {
		return 0
	}
	return float64(h.Spot) / float64(h.Spot+h.Fixed)
}

// ShareUnits returns what a node of market m counts in the share of pool.
func (s *Snapshot) ShareUnits(pool PoolID, m MarketID) int64 {
	return s.Types[s.Markets[m].Type].shareUnits(s.CountsGPUs(pool))
}

// CountsGPUs reports whether the share of pool is measured in GPUs: whether
// all of its markets have them.
func (s *Snapshot) CountsGPUs(pool PoolID) bool {
	markets := s.Pools[pool].Markets
	for _, m := range markets {
		if s.Types[s.Markets[m].Type].Capacity.GPU == 0 {
			return false
		}
	}
	return len(markets) > 0
}

func (t *InstanceType) shareUnits(gpus bool) int64 {
	if gpus {
		return t.Capacity.GPU
	}
	return t.VCPU
}
