package sim

import (
	"strconv"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/scenarios/chance"
	"github.com/spotter-dev/spotter/sim/engine"
	"github.com/spotter-dev/spotter/sim/market"
	"github.com/spotter-dev/spotter/sim/scheduler"
)

// launches put up nodes: those that are bought, from the order until they take pods, and those that
// are there when warm-up begins.
type launches struct {
	*environment
	nodes         *nodes
	autoscaler    *autoscaler
	bills         *bills
	consolidation *consolidation
	drains        *drains
	faults        *faults
	groups        *scalingGroups
	karpenter     *karpenterProvisioner
	market        *market.Market
	pods          *pods
	pools         *pools
	queue         *schedulingQueue
	reclaims      *reclaims
	sched         *scheduler.Scheduler
	space         *placement.Space
	workloads     *workloads

	launched int
	tokens   map[string]policy.NodeID
	inflight []policy.NodeID // launched and not yet initialized
}

// An order is what a node is bought as: in a slot of a market, with the labels of a choice that
// its pool has.
type order struct {
	pool   policy.PoolID
	market policy.MarketID
	slot   int32
	choice int
}

// add puts a node into a free slot, launched now.
func (la *launches) add(o order) policy.NodeID {
	pool, m, s := o.pool, o.market, o.slot
	var id policy.NodeID
	if n := len(la.nodes.free); n > 0 {
		id = la.nodes.free[n-1]
		la.nodes.free = la.nodes.free[:n-1]
	} else {
		id = policy.NodeID(len(la.nodes.all))
		la.nodes.all = append(la.nodes.all, policy.Node{})
		la.nodes.state = append(la.nodes.state, nodeState{})
	}
	market, p := &la.scenario.Markets[m], &la.scenario.Pools[pool]
	typ := &la.scenario.Types[market.Type]
	x := &la.nodes.state[id]
	*x = nodeState{gen: x.gen + 1, dirty: x.dirty, slot: s, drain: -1, images: x.images[:0],
		spot: market.Capacity == policy.Spot, size: typ.VCPU}
	if la.prepared.inGPUs {
		x.size = typ.Allocatable.GPU
	}
	la.autoscaler.scaleDown.add(id)
	la.launched++
	x.born = la.launched
	la.nodes.all[id] = policy.Node{ID: id, Name: p.Name + "-" + strconv.Itoa(la.launched), Pool: pool, Market: m,
		Phase: policy.NodeLaunching, Allocatable: la.scenario.AllocatableOf(pool, market.Type), VolumesMax: typ.VolumesMax, GPUResource: typ.GPUResource,
		Labels: la.labels(o), Taints: p.Taints, Launched: la.q.Now}
	if own := la.prepared.own(pool); own != nil {
		la.nodes.all[id].DoNotDisrupt = own.DoNotDisrupt
	}
	la.pools.all[pool].Used = la.pools.all[pool].Used.Plus(typ.Capacity)
	la.pools.bounds[pool].use(la.q.Now, la.window, la.pools.all[pool].Used)
	la.space.SetNode(&la.nodes.all[id])
	la.market.Launch(m, s)
	la.consolidation.noteReserved(m)
	la.bills.start(id)
	la.consolidation.tracker.list(id)
	la.groups.join(id)
	la.consolidation.noteChange()
	la.nodes.touch(id)
	return id
}

func (la *launches) labels(o order) []policy.Label {
	offers := la.prepared.offers[o.pool]
	for i := range offers {
		if offers[i].Market == o.market && offers[i].Choice == o.choice {
			return offers[i].Labels
		}
	}
	return placement.NodeLabels(la.scenario.Types, la.scenario.Zones, &la.scenario.Pools[o.pool], &la.scenario.Markets[o.market])
}

// launch buys a node and plans its life.
func (la *launches) launch(o order, token string, bid policy.Money) policy.NodeID {
	id, pool, m, slot := la.add(o), o.pool, o.market, o.slot
	la.pools.noteFallback(pool, m)
	n, x := &la.nodes.all[id], &la.nodes.state[id]
	n.Token = token
	if la.scenario.Markets[m].Auction() {
		n.Bid = bid
	}
	if token != "" {
		la.tokens[token] = id
	}
	la.inflight = append(la.inflight, id)
	if la.q.Now >= la.window.From {
		la.result.Launches++
	} else {
		la.result.WarmUpLaunches++
	}
	la.log.Add(la.q.Now, engine.RecordLaunch, n.Name, la.scenario.Markets[m].Name, int64(la.prepared.prices.Charges()[m].At(la.q.Now)))
	// Two nodes in one slot at one instant are the same machine: the key says so.
	u := chance.New(la.cfg.Seed, "node-start", la.scenario.Markets[m].Name).At2(uint64(slot), uint64(la.q.Now)).Float()
	least, most := la.delays.register(&la.scenario.Markets[m])
	join := time.Duration(float64(least+time.Duration(u*float64(most-least))) * la.faults.slowFactor)
	la.q.Add(la.q.Now.Add(join), engine.NodeRegistered, int32(id), 0, x.gen)
	la.reclaims.planEnd(id)
	return id
}

func (la *launches) register(id policy.NodeID) {
	n := &la.nodes.all[id]
	if la.nodes.state[id].billed {
		return // taken before it joined
	}
	n.Phase, n.Registered = policy.NodeRegistered, la.q.Now
	la.space.SetNode(n)
	la.nodes.touch(id)
	la.log.Add(la.q.Now, engine.RecordRegistered, n.Name, "", 0)
	la.q.Add(la.q.Now.Add(la.delays.Initialize), engine.NodeInitialized, int32(id), 0, la.nodes.state[id].gen)
}

func (la *launches) initialize(id policy.NodeID) {
	n := &la.nodes.all[id]
	if la.nodes.state[id].billed {
		return
	}
	n.Phase, n.Initialized = policy.NodeInitialized, la.q.Now
	for i, x := range la.inflight {
		if x == id {
			la.inflight = append(la.inflight[:i], la.inflight[i+1:]...)
			break
		}
	}
	la.log.Add(la.q.Now, engine.RecordInitialized, n.Name, "", 0)
	if g := la.groups.groupOf(id); g != nil {
		g.recover(la.q.Now)
	}
	la.open(id)
	la.drains.wake(n.Token)
	if n.ReclaimAt != 0 && la.pools.state[n.Pool].mixed {
		la.karpenter.interrupted(id) // the notice came while the node was launching
	}
}

// open lets an initialized node take pods.
func (la *launches) open(id policy.NodeID) {
	n := &la.nodes.all[id]
	la.nodes.hold(id, true)
	la.space.SetNode(n)
	la.sched.Changed(id)
	for _, t := range la.workloads.daemons {
		pod := policy.Pod{Template: t, Phase: policy.PodPending, Node: policy.None, Nominated: policy.None, VolumeZone: policy.None}
		if la.space.Check(&pod, id) == placement.OK {
			la.pods.bind(la.pods.add(la.scenario.Templates[t].Workload), id)
		}
	}
	n.Nominated = 0
	la.nodes.touch(id)
	la.queue.want()
	la.autoscaler.want()
	la.consolidation.noteChange()
}

// addReady puts up a node that is initialized at once.
func (la *launches) addReady(o order) policy.NodeID {
	id, pool, m := la.add(o), o.pool, o.market
	n := &la.nodes.all[id]
	n.Phase, n.Registered, n.Initialized = policy.NodeInitialized, la.q.Now, la.q.Now
	if la.scenario.Markets[m].Auction() {
		n.Bid = la.pools.standingBid(pool, []policy.MarketID{m})
	}
	la.log.Add(la.q.Now, engine.RecordLaunch, n.Name, la.scenario.Markets[m].Name, 0)
	la.reclaims.planEnd(id)
	la.open(id)
	return id
}
