package policy

// A HeldState is how a node counts towards the capacity of its pool.
type HeldState uint8

// The states. A node is not held if it is gone or leaving, if it is under notice, or if another
// controller drains it.
const (
	NotHeld      HeldState = iota
	HeldStanding           // initialized, and no controller is draining it
	HeldWaiting            // initialized, and a drain of it by Spotter was ordered and has not started
	HeldArriving           // launching or joining, and no plan requested it
	HeldOrdered            // launching or joining at the request of a plan
	heldStates
)

// Held returns how n counts towards the capacity of its pool.
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

// A Held is a number of nodes, with the total vCPUs and accelerators of their types.
type Held struct{ Nodes, VCPU, GPU int64 }

// A PoolHeld is the capacity of a pool, by HeldState and CapacityType.
type PoolHeld [heldStates][3]Held

// add adds (sign 1) or removes (sign -1) a node of a type.
func (x *PoolHeld) add(state HeldState, c CapacityType, t *InstanceType, sign int64) {
	h := &x[state][c]
	h.Nodes, h.VCPU, h.GPU = h.Nodes+sign, h.VCPU+sign*t.VCPU, h.GPU+sign*t.Capacity.GPU
}

// Held returns the capacity of pool.
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

// A poolsHeld tracks the capacity of all pools as nodes change.
type poolsHeld struct {
	pools []PoolHeld
	nodes []heldNode
}

// A heldNode is the state of a node as it was last counted.
type heldNode struct {
	pool   PoolID
	market MarketID
	state  HeldState
}

// read recounts the node with the given id.
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
