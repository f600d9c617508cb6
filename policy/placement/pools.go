package placement

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// A poolSet contains the pools of a batch: their requirements on labels and the remainder of their
// limits.
type poolSet struct {
	sv     *Solver
	table  *classTable
	groups *groupTable

	pooled  bool // selling and closed are up to date
	keys    int  // number of topology keys when pools were read
	noRules Pool // used for pools that the batch does not list
	selling []poolState
	closed  []poolState // pools without offers

	lenient bool // a pool has a taint with the effect PreferNoSchedule
}

// A poolState is the state of a pool while claims are opened in it.
type poolState struct {
	id     policy.PoolID
	rules  *Pool
	open   bitset  // positions of its offers within the remainder of its limits
	all    bitset  // positions of its offers that have enough resources for DaemonSets
	sets   keysets // its requirements on labels
	taints []policy.Taint
	left   policy.Resources // remainder of its limits
	never  bitset           // relaxations whose pods can never get a claim

	// shapes are the shapes of all of its offers. most is their maximum per resource.
	shapes []int32
	most   policy.Resources
}

// learn adds the label values that pools name, unless that was done for the current topology keys.
func (pl *poolSet) learn() {
	table := pl.table
	if pl.pooled && pl.keys == len(table.keys) {
		return
	}
	for i := range pl.sv.b.Pools {
		table.learn(&pl.sv.b.Pools[i])
	}
	pl.keys = len(table.keys)
}

// begin opens the pools for an attempt. It reads them if they have not been read, or if rebuilt
// reports that the layout of labels changed.
func (pl *poolSet) begin(rebuilt bool) {
	if rebuilt || !pl.pooled {
		pl.makePools()
		pl.pooled = true
	}
	for i := range pl.selling {
		pl.open(&pl.selling[i])
	}
}

// makePools reads the properties that do not change between attempts.
func (pl *poolSet) makePools() {
	pl.selling, pl.closed = pl.selling[:0], pl.closed[:0]
	pl.lenient = false
	ot := pl.sv.offerTable
	for _, positions := range ot.ofPool {
		o := &pl.sv.b.Offers[ot.rank[positions.next(0)]]
		x := poolState{id: o.Pool, all: ot.roomy(positions), open: slices.Clone(positions), taints: o.Taints,
			sets: pl.groups.layout.make()}
		x.rules = pl.rulesOf(o.Pool)
		pl.readRules(&x)
		pl.ownLabels(&x, positions)
		x.shapes = ot.shapesOf(x.all, nil)
		x.most = ot.most(x.shapes)
		pl.selling = append(pl.selling, x)
	}
	pl.closePools()
}

// roomy returns the positions whose nodes have enough resources for their DaemonSets. Other nodes
// accept no pods, whatever the pods request (fits in nodeclaim.go adds both requests).
func (ot *offerTable) roomy(positions bitset) bitset {
	list := slices.Clone(positions)
	for s := range ot.shapes {
		if r := &ot.shapes[s].free; min(r.CPU, r.Memory, r.Storage, r.GPU) < 0 {
			list.andNot(ot.ofShape[s])
		}
	}
	return list
}

// rulesOf returns the properties of a pool in the batch.
func (pl *poolSet) rulesOf(id policy.PoolID) *Pool {
	rules := &pl.noRules
	for i := range pl.sv.b.Pools {
		if pl.sv.b.Pools[i].ID == id {
			rules = &pl.sv.b.Pools[i]
		}
	}
	return rules
}

// open prepares a pool for an attempt.
func (pl *poolSet) open(x *poolState) {
	x.rules = pl.rulesOf(x.id)
	x.never = resize(x.never, (len(pl.groups.relaxations)+63)/64)
	x.left = x.rules.Limits.Minus(x.rules.Used)
	copy(x.open, x.all)
	pl.keepWithin(x)
}

// readRules reads a pool's requirements on labels, and its taints if its offers have none.
func (pl *poolSet) readRules(x *poolState) {
	for i := range x.rules.Requirements {
		pl.groups.require(&x.sets, &x.rules.Requirements[i])
	}
	if x.taints == nil {
		x.taints = x.rules.Taints
	}
	pl.lenient = pl.lenient ||
		slices.ContainsFunc(x.taints, func(t policy.Taint) bool { return t.Effect == policy.PreferNoSchedule })
}

// closePools reads the pools without offers. Their domains count for topology spread too.
func (pl *poolSet) closePools() {
	for i := range pl.sv.b.Pools {
		rules := &pl.sv.b.Pools[i]
		if slices.ContainsFunc(pl.selling, func(x poolState) bool { return x.rules == rules }) {
			continue
		}
		x := poolState{rules: rules, sets: pl.groups.layout.make()}
		pl.readRules(&x)
		pl.closed = append(pl.closed, x)
	}
}

// instanceLabels are labels that Karpenter knows for every instance type, even if the pool does not
// name them.
var instanceLabels = []string{
	labelZone, "topology.kubernetes.io/region", "node.kubernetes.io/instance-type", "kubernetes.io/arch",
	"kubernetes.io/os", "karpenter.sh/capacity-type",
}

// ownLabels adds the labels that a pool sets on its nodes to its requirements. These are the labels
// that are equal on all of its offers.
func (pl *poolSet) ownLabels(x *poolState, positions bitset) {
	for key := 1; key < len(pl.table.keys); key++ {
		if x.sets.kind[key] != unbounded || slices.Contains(instanceLabels, pl.table.keys[key].name) {
			continue
		}
		for d, of := range pl.sv.offerTable.ofDomain[key] {
			if d > 0 && positions.within(of) {
				x.sets.kind[key] = oneOf
				x.sets.of(&pl.groups.layout, int32(key)).set(int32(d - 1))
			}
		}
	}
}

// keepWithin removes the offers whose capacity exceeds the remainder of the pool's limits
// (filterByRemainingResources in scheduler.go).
func (pl *poolSet) keepWithin(x *poolState) {
	limits := &x.rules.Limits
	if *limits == (policy.Resources{}) {
		return
	}
	for at := x.open.next(0); at >= 0; at = x.open.next(at + 1) {
		c := &pl.sv.b.Offers[pl.sv.offerTable.rank[at]].Capacity
		if limits.CPU > 0 && c.CPU > x.left.CPU || limits.Memory > 0 && c.Memory > x.left.Memory ||
			limits.Storage > 0 && c.Storage > x.left.Storage || limits.GPU > 0 && c.GPU > x.left.GPU ||
			limits.Pods > 0 && c.Pods > x.left.Pods {
			x.open.clear(at)
		}
	}
}

// take subtracts the largest node that c may become from the remainder of the pool's limits
// (subtractMax in scheduler.go).
func (pl *poolSet) take(x *poolState, c *nodeClaim) {
	if x.rules.Limits == (policy.Resources{}) {
		return
	}
	var most policy.Resources
	for at := c.alive.next(0); at >= 0; at = c.alive.next(at + 1) {
		r := &pl.sv.b.Offers[pl.sv.offerTable.rank[at]].Capacity
		most = most.Max(*r)
	}
	x.left = x.left.Minus(most)
	pl.keepWithin(x)
}
