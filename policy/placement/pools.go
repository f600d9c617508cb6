package placement

import (
	"math"
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// A poolSet contains the pools of a batch. Everything but withinLimits, left and impossible of its
// pools is read once per batch; begin resets those for an attempt. The solver calls learn before the
// layout of labels is made, and begin after it.
type poolSet struct {
	solver *Solver
	table  *classTable
	groups *groupTable

	read          bool // the pools of this batch have been read
	keys          int  // number of topology keys when pools were read
	noRules       Pool // used for pools that the batch does not list
	withOffers    []poolState
	withoutOffers []poolState

	lenient bool // a pool has a taint with the effect PreferNoSchedule
}

// A poolState is the state of a pool while claims are opened in it.
type poolState struct {
	id           policy.PoolID
	rules        *Pool
	withinLimits bitset         // positions of its offers within left
	all          bitset         // positions of its offers that have enough resources for DaemonSets
	sets         keysets        // its requirements on labels
	taints       []policy.Taint // equal on all of its offers
	impossible   bitset         // relaxations whose pods can never get a claim

	// left is the remainder of its limits; the largest number for a resource without a limit.
	left policy.Resources

	// shapes are the shapes of all of its offers. most is their maximum per resource.
	shapes []int32
	most   policy.Resources
}

// learn adds the label values that pools name, unless that was done for the current topology keys.
func (p *poolSet) learn() {
	if p.read && p.keys == len(p.table.keys) {
		return
	}
	for i := range p.solver.b.Pools {
		p.table.learn(&p.solver.b.Pools[i])
	}
	p.keys = len(p.table.keys)
}

// begin resets the pools for an attempt. It reads them if they have not been read, or if rebuilt
// reports that the layout of labels changed.
func (p *poolSet) begin(rebuilt bool) {
	if rebuilt || !p.read {
		p.makePools()
		p.read = true
	}
	for i := range p.withOffers {
		p.reset(&p.withOffers[i])
	}
}

// makePools reads the properties that do not change between attempts.
func (p *poolSet) makePools() {
	p.withOffers = p.withOffers[:0]
	offers := p.solver.offerTable
	for _, positions := range offers.ofPool {
		first := &p.solver.b.Offers[offers.rank[positions.next(0)]]
		state := poolState{id: first.Pool, rules: p.rulesOf(first.Pool), all: offers.roomy(positions),
			withinLimits: slices.Clone(positions), taints: first.Taints, sets: p.groups.layout.make()}
		p.readRules(&state)
		p.ownLabels(&state, positions)
		state.shapes = offers.shapesOf(state.all, nil)
		state.most = offers.most(state.shapes)
		p.withOffers = append(p.withOffers, state)
	}
	p.readPoolsWithoutOffers()
	lenient := func(x poolState) bool {
		return slices.ContainsFunc(x.taints, func(t policy.Taint) bool { return t.Effect == policy.PreferNoSchedule })
	}
	p.lenient = slices.ContainsFunc(p.withOffers, lenient) || slices.ContainsFunc(p.withoutOffers, lenient)
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

// rulesOf returns the Pool of the batch with this ID, or an empty one.
func (p *poolSet) rulesOf(id policy.PoolID) *Pool {
	for i := range p.solver.b.Pools {
		if p.solver.b.Pools[i].ID == id {
			return &p.solver.b.Pools[i]
		}
	}
	return &p.noRules
}

// reset prepares a pool for an attempt.
func (p *poolSet) reset(state *poolState) {
	state.rules = p.rulesOf(state.id)
	state.impossible = resize(state.impossible, (len(p.groups.relaxations)+63)/64)
	limits, used := &state.rules.Limits, &state.rules.Used
	state.left = policy.Resources{
		CPU: remainder(limits.CPU, used.CPU), Memory: remainder(limits.Memory, used.Memory),
		Storage: remainder(limits.Storage, used.Storage), GPU: remainder(limits.GPU, used.GPU),
		Pods: remainder(limits.Pods, used.Pods),
	}
	copy(state.withinLimits, state.all)
	p.keepWithin(state)
}

// remainder returns how much of a limit is left, and the largest number if there is no limit.
func remainder(limit, used int64) int64 {
	if limit <= 0 {
		return math.MaxInt64
	}
	return limit - used
}

// readRules reads a pool's requirements on labels, and its taints if its offers have none.
func (p *poolSet) readRules(state *poolState) {
	for i := range state.rules.Requirements {
		p.groups.require(&state.sets, &state.rules.Requirements[i])
	}
	if state.taints == nil {
		state.taints = state.rules.Taints
	}
}

// readPoolsWithoutOffers reads the pools without offers. Their domains count for topology spread too.
func (p *poolSet) readPoolsWithoutOffers() {
	p.withoutOffers = p.withoutOffers[:0]
	for i := range p.solver.b.Pools {
		rules := &p.solver.b.Pools[i]
		if slices.ContainsFunc(p.withOffers, func(x poolState) bool { return x.id == rules.ID }) {
			continue
		}
		state := poolState{id: rules.ID, rules: rules, sets: p.groups.layout.make()}
		p.readRules(&state)
		p.withoutOffers = append(p.withoutOffers, state)
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
func (p *poolSet) ownLabels(state *poolState, positions bitset) {
	for key := 1; key < len(p.table.keys); key++ {
		if state.sets.kind[key] != unbounded || slices.Contains(instanceLabels, p.table.keys[key].name) {
			continue
		}
		for domain, inDomain := range p.solver.offerTable.ofDomain[key] {
			if domain > 0 && positions.within(inDomain) {
				state.sets.kind[key] = oneOf
				state.sets.of(&p.groups.layout, int32(key)).set(int32(domain - 1))
			}
		}
	}
}

// keepWithin removes the offers whose capacity exceeds the remainder of the pool's limits
// (filterByRemainingResources in scheduler.go).
func (p *poolSet) keepWithin(state *poolState) {
	if state.rules.Limits == (policy.Resources{}) {
		return
	}
	for at := state.withinLimits.next(0); at >= 0; at = state.withinLimits.next(at + 1) {
		if !p.solver.b.Offers[p.solver.offerTable.rank[at]].Capacity.Within(state.left) {
			state.withinLimits.clear(at)
		}
	}
}

// take subtracts the largest node that c may become from the remainder of the pool's limits
// (subtractMax in scheduler.go).
func (p *poolSet) take(state *poolState, c *nodeClaim) {
	if state.rules.Limits == (policy.Resources{}) {
		return
	}
	var most policy.Resources
	for at := c.alive.next(0); at >= 0; at = c.alive.next(at + 1) {
		r := &p.solver.b.Offers[p.solver.offerTable.rank[at]].Capacity
		most = most.Max(*r)
	}
	state.left = state.left.Minus(most)
	p.keepWithin(state)
}
