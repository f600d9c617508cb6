package policy

// A HeldState is how a node counts in what its pool holds.
type HeldState uint8

// The states. A node is not held if it is gone or on its way out, if the provider takes it, or if
// another controller drains it.
const (
	NotHeld      HeldState = iota
	HeldStanding           // initialized, and no controller is draining it
	HeldWaiting            // initialized, and our drain of it was ordered and has not begun
	HeldArriving           // launching or joining, and no plan requested it
	HeldOrdered            // launching or joining as a plan asked
	heldStates
)

// Held returns how n counts in what its pool holds.
func (n *Node) Held() HeldState {
	switch {
	case n.Pool == None || n.Market == None || n.Phase == NodeGone || n.Phase >= NodeDraining:
		return NotHeld
	case n.Phase < NodeInitialized && n.Token != "":
		return HeldOrdered
	case n.Phase < NodeInitialized:
		return HeldArriving
	case n.ActedBy == ActorUs:
		return HeldWaiting
	case n.ActedBy != ActorNone || n.ReclaimAt != 0:
		return NotHeld
	}
	return HeldStanding
}

// Held is a number of nodes, and the vCPUs and accelerators that their types have.
type Held struct{ Nodes, VCPU, GPU int64 }

// A PoolHeld is what a pool holds, by HeldState and CapacityType.
type PoolHeld [heldStates][3]Held

// add adds (1) a node of a type, or takes it off (-1).
func (x *PoolHeld) add(state HeldState, c CapacityType, t *InstanceType, sign int64) {
	h := &x[state][c]
	h.Nodes, h.VCPU, h.GPU = h.Nodes+sign, h.VCPU+sign*t.VCPU, h.GPU+sign*t.Capacity.GPU
}

// Held returns what pool holds.
func (s *Snapshot) Held(pool PoolID) (x PoolHeld) {
	if m := s.Mark(); m.of != nil {
		return m.of.held.of(pool)
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if state := n.Held(); n.Pool == pool && state != NotHeld {
			m := &s.Markets[n.Market]
			x.add(state, m.Capacity, &s.Types[m.Type], 1)
		}
	}
	return x
}

// A poolsHeld keeps what all pools hold while nodes change.
type poolsHeld struct {
	pools []PoolHeld
	nodes []heldNode
}

// A heldNode is a node as it was counted.
type heldNode struct {
	pool   PoolID
	market MarketID
	state  HeldState
}

// read recounts the node of slot id.
func (x *poolsHeld) read(s *Snapshot, id NodeID) {
	for len(x.nodes) <= int(id) {
		x.nodes = append(x.nodes, heldNode{})
	}
	n := &s.Nodes[id]
	now, was := heldNode{n.Pool, n.Market, n.Held()}, x.nodes[id]
	if now == was {
		return
	}
	x.nodes[id] = now
	x.count(s, was, -1)
	x.count(s, now, 1)
}

func (x *poolsHeld) count(s *Snapshot, n heldNode, sign int64) {
	if n.state == NotHeld {
		return
	}
	for len(x.pools) <= int(n.pool) {
		x.pools = append(x.pools, PoolHeld{})
	}
	m := &s.Markets[n.market]
	x.pools[n.pool].add(n.state, m.Capacity, &s.Types[m.Type], sign)
}

func (x *poolsHeld) of(pool PoolID) PoolHeld {
	if int(pool) >= len(x.pools) {
		return PoolHeld{}
	}
	return x.pools[pool]
}
