package sim

import (
	"strconv"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/scenarios/chance"
	"github.com/spotter-dev/spotter/scenarios/weather"
	"github.com/spotter-dev/spotter/sim/engine"
	"github.com/spotter-dev/spotter/sim/market"
	"github.com/spotter-dev/spotter/sim/scheduler"
)

// nodes are the nodes of the cluster, from their launch until their Node object goes away.
type nodes struct {
	*environment
	autoscaler    *autoscaler
	bills         *bills
	consolidation *consolidation
	decider       *decider
	drains        *drains
	faults        *faults
	groups        *scalingGroups
	karpenter     *karpenterProvisioner
	market        *market.Market
	observer      *observer
	pods          *pods
	pools         *pools
	queue         *schedulingQueue
	sched         *scheduler.Scheduler
	serving       *serving
	space         *placement.Space
	watch         *watch
	workloads     *workloads

	all      []policy.Node
	state    []nodeState
	free     []policy.NodeID // slots without a node
	launched int
	tokens   map[string]policy.NodeID
	inflight []policy.NodeID // launched and not yet initialized
	held     holding
}

// A nodeState is what the simulator knows of a node beyond its policy.Node.
type nodeState struct {
	gen       int32 // changes whenever the slot gets a new owner
	born      int   // how many nodes were launched up to this one
	slot      int32 // of its market
	drain     int32 // index into run.drains, or -1
	pods      int32 // bound to it, DaemonSets' left out
	nominated int32 // pending pods that were promised a place
	dirty     uint8
	changed   bool // since candidates for disruption were listed
	spot      bool
	billed    bool // its bill is made: it runs no longer
	lost      bool // the provider took it, though the cluster may not know yet
	held      bool // it counts as capacity held
	counted   bool // its reclaim is counted
	met       bool // its reclaim is in the experience that snapshots show
	stood     bool // it was not needed when the Cluster Autoscaler looked last

	// recheckAt is when the Cluster Autoscaler considers the node again that it
	// could not empty in thought.
	recheckAt policy.Time
	gentle    bool // a drain of ours may leave no workload below what it must have

	// podEvent is when a pod came to it or began to leave it last, as Karpenter
	// notes it, 0 for never; DaemonSets' do not count. nominatedUntil is until when
	// Karpenter does not disrupt it as a pod was promised a place here.
	podEvent, nominatedUntil policy.Time

	// podsVersion changes with the pods here, their readiness and deletion costs.
	podsVersion uint64

	// nameKey stands for the random letters that Karpenter ends its name with.
	nameKey uint64

	// unneeded is since when the Cluster Autoscaler could do without it; 0 when
	// it cannot.
	unneeded policy.Time

	// reclaim is when the weather takes the node, and outbid when it is to go
	// since the market price passed its bid at passed; 0 is never.
	reclaim, outbid, passed policy.Time

	size   int64    // vCPU, or GPUs where those are counted
	images []uint64 // bit set of templates whose image it has
}

// firstOf reports whether template t has not run here before, and notes that
// it has now.
func (x *nodeState) firstOf(t int) bool {
	for len(x.images) <= t/64 {
		x.images = append(x.images, 0)
	}
	bit := uint64(1) << (t % 64)
	first := x.images[t/64]&bit == 0
	x.images[t/64] |= bit
	return first
}

// add puts a node into a free slot, launched now in slot s of market m.
func (ns *nodes) add(pool policy.PoolID, m policy.MarketID, s int32) policy.NodeID {
	var id policy.NodeID
	if n := len(ns.free); n > 0 {
		id = ns.free[n-1]
		ns.free = ns.free[:n-1]
	} else {
		id = policy.NodeID(len(ns.all))
		ns.all = append(ns.all, policy.Node{})
		ns.state = append(ns.state, nodeState{})
	}
	market, p := &ns.scenario.Markets[m], &ns.scenario.Pools[pool]
	typ := &ns.scenario.Types[market.Type]
	x := &ns.state[id]
	*x = nodeState{gen: x.gen + 1, podsVersion: x.podsVersion + 1, dirty: x.dirty, changed: x.changed, slot: s, drain: -1, images: x.images[:0],
		spot: market.Capacity == policy.Spot, size: typ.VCPU}
	if ns.prepared.inGPUs {
		x.size = typ.Allocatable.GPU
	}
	ns.launched++
	x.born = ns.launched
	ns.all[id] = policy.Node{ID: id, Name: p.Name + "-" + strconv.Itoa(ns.launched), Pool: pool, Market: m,
		Phase: policy.NodeLaunching, Allocatable: typ.Allocatable, VolumesMax: typ.VolumesMax, GPUResource: typ.GPUResource,
		Labels: ns.labels(pool, m), Taints: p.Taints, Launched: ns.q.Now}
	ns.pools.all[pool].Used = ns.pools.all[pool].Used.Plus(typ.Capacity)
	ns.pools.bounds[pool].use(ns.q.Now, ns.window, ns.pools.all[pool].Used)
	ns.space.SetNode(&ns.all[id])
	ns.market.Launch(m, s)
	ns.bills.start(id)
	ns.groups.join(id)
	ns.consolidation.list(id)
	ns.consolidation.noteChange()
	ns.touch(id)
	return id
}

func (ns *nodes) labels(pool policy.PoolID, m policy.MarketID) []policy.Label {
	offers := ns.prepared.offers[pool]
	for i := range offers {
		if offers[i].Market == m {
			return offers[i].Labels
		}
	}
	return placement.NodeLabels(ns.scenario.Types, ns.scenario.Zones, &ns.scenario.Pools[pool], &ns.scenario.Markets[m])
}

// launch buys a node and plans its life.
func (ns *nodes) launch(pool policy.PoolID, m policy.MarketID, slot int32, token string, bid policy.Money) policy.NodeID {
	id := ns.add(pool, m, slot)
	ns.pools.noteFallback(pool, m)
	n, x := &ns.all[id], &ns.state[id]
	n.Token = token
	if ns.scenario.Markets[m].Auction() {
		n.Bid = bid
	}
	if token != "" {
		ns.tokens[token] = id
	}
	ns.inflight = append(ns.inflight, id)
	if ns.q.Now >= ns.window.From {
		ns.result.Launches++
	}
	ns.log.Add(ns.q.Now, engine.RecordLaunch, n.Name, ns.scenario.Markets[m].Name, int64(ns.prepared.prices.Charges()[m].At(ns.q.Now)))
	// Two nodes in one slot at one instant are the same machine: the key says so.
	u := chance.New(ns.cfg.Seed, "node-start", ns.scenario.Markets[m].Name).At2(uint64(slot), uint64(ns.q.Now)).Float()
	least, most := ns.delays.register(&ns.scenario.Markets[m])
	join := time.Duration(float64(least+time.Duration(u*float64(most-least))) * ns.faults.slowFactor)
	ns.q.Add(ns.q.Now.Add(join), engine.NodeRegistered, int32(id), 0, x.gen)
	ns.planEnd(id)
	return id
}

// planEnd plans how the life of a node ends that was just launched: what the
// weather has for it, in an auction a price above its bid, and the pool's
// expireAfter.
func (ns *nodes) planEnd(id policy.NodeID) {
	n, x := &ns.all[id], &ns.state[id]
	if p := &ns.scenario.Pools[n.Pool]; p.ExpireAfter > 0 && p.Provisioner != policy.ProvisionerNone {
		ns.q.Add(ns.q.Now.Add(p.ExpireAfter), engine.NodeExpires, int32(id), 0, x.gen)
	}
	end := func(rec weather.Reclaim, outbid int32) policy.Time {
		if rec.Notice != 0 {
			ns.q.Add(max(rec.Notice, ns.q.Now), engine.NodeNotice, int32(id), outbid, x.gen)
		}
		ns.q.Add(rec.At, engine.NodeReclaimed, int32(id), 0, x.gen)
		return rec.At
	}
	if rec, ok := ns.market.Reclaim(n.Market, x.slot); ok {
		x.reclaim = end(rec, 0)
	}
	// Both may be due: a zone may fail while a node that was outbid waits for its
	// end. What comes first takes the node, and neither is told of by the other.
	if lost, passed, ok := ns.market.Outbid(n.Market, x.slot, n.Launched, n.Bid); ok {
		x.outbid, x.passed = end(lost, 1), passed
	}
	if at, ok := ns.market.Recommendation(n.Market, x.slot); ok {
		ns.q.Add(max(at, ns.q.Now), engine.NodeRecommendation, int32(id), 0, x.gen)
	}
}

func (ns *nodes) register(id policy.NodeID) {
	n := &ns.all[id]
	if ns.state[id].billed {
		return // taken before it joined
	}
	n.Phase, n.Registered = policy.NodeRegistered, ns.q.Now
	ns.space.SetNode(n)
	ns.touch(id)
	ns.log.Add(ns.q.Now, engine.RecordRegistered, n.Name, "", 0)
	ns.q.Add(ns.q.Now.Add(ns.delays.Initialize), engine.NodeInitialized, int32(id), 0, ns.state[id].gen)
}

func (ns *nodes) initialize(id policy.NodeID) {
	n := &ns.all[id]
	if ns.state[id].billed {
		return
	}
	n.Phase, n.Initialized = policy.NodeInitialized, ns.q.Now
	for i, x := range ns.inflight {
		if x == id {
			ns.inflight = append(ns.inflight[:i], ns.inflight[i+1:]...)
			break
		}
	}
	ns.log.Add(ns.q.Now, engine.RecordInitialized, n.Name, "", 0)
	if g := ns.groups.groupOf(id); g != nil {
		g.recover(ns.q.Now)
	}
	ns.open(id)
	ns.drains.wake(n.Token)
}

// open lets an initialized node take pods.
func (ns *nodes) open(id policy.NodeID) {
	n := &ns.all[id]
	ns.hold(id, true)
	ns.space.SetNode(n)
	ns.sched.Changed(id)
	for _, t := range ns.workloads.daemons {
		pod := policy.Pod{Template: t, Phase: policy.PodPending, Node: policy.None, Nominated: policy.None, VolumeZone: policy.None}
		if ns.space.Check(&pod, id) == placement.OK {
			ns.pods.bind(ns.pods.add(ns.scenario.Templates[t].Workload), id)
		}
	}
	n.Nominated = 0
	ns.touch(id)
	ns.queue.want()
	ns.autoscaler.want()
	ns.consolidation.noteChange()
}

// hold counts a node as capacity held, or no longer.
func (ns *nodes) hold(id policy.NodeID, held bool) {
	x := &ns.state[id]
	if x.held == held {
		return
	}
	x.held = held
	h, d := &ns.held, int64(1)
	if !held {
		d = -1
	}
	h.advance(ns.q.Now, ns.window)
	h.nodes += d
	h.size += d * x.size
	if x.spot {
		h.spotNodes += d
		h.spotSize += d * x.size
	}
	ns.pools.bounds[ns.all[id].Pool].hold(ns.q.Now, ns.window, x.size, d, x.spot)
}

func (ns *nodes) touch(id policy.NodeID) {
	ns.watch.node(id)
	ns.consolidation.noteNode(id)
	x := &ns.state[id]
	for v := range ns.observer.view {
		if bit := uint8(1) << v; x.dirty&bit == 0 {
			x.dirty |= bit
			ns.observer.view[v].nodes = append(ns.observer.view[v].nodes, id)
		}
	}
}
