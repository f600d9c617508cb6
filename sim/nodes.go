package sim

import (
	"fmt"
	"slices"
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

// notice tells that the provider takes a node at an instant: earlier than it may
// have told before.
func (ns *nodes) notice(id policy.NodeID, at policy.Time) {
	n := &ns.all[id]
	if ns.state[id].billed || n.ReclaimAt != 0 && n.ReclaimAt <= at {
		return
	}
	n.NoticeAt, n.ReclaimAt = ns.q.Now, at
	ns.space.SetNode(n)
	ns.touch(id)
	ns.countReclaim(id)
	ns.noteReclaim(id)
	if ns.q.Now >= ns.window.From {
		ns.result.Notices++
	}
	ns.log.Add(ns.q.Now, engine.RecordNotice, n.Name, "", int64(n.ReclaimAt))
	if ns.pools.state[n.Pool].mixed {
		ns.karpenter.interrupted(id)
	}
	ns.decider.plan(ns.q.Now)
}

func (ns *nodes) recommend(id policy.NodeID) {
	n := &ns.all[id]
	if n.Recommended != 0 || ns.state[id].billed {
		return
	}
	n.Recommended = ns.q.Now
	ns.touch(id)
	if ns.q.Now >= ns.window.From {
		ns.result.Recommendations++
	}
	ns.log.Add(ns.q.Now, engine.RecordRecommended, n.Name, "", 0)
	ns.decider.plan(ns.q.Now)
}

// reclaim takes a node. Its pods serve no longer, but the cluster notices only
// after a while: until then its API, and so every snapshot, the scheduler and
// the provisioner, hold the node and its pods to be as they were.
func (ns *nodes) reclaim(id policy.NodeID) {
	n, x := &ns.all[id], &ns.state[id]
	if x.billed {
		return
	}
	ns.countReclaim(id)
	ns.log.Add(ns.q.Now, engine.RecordReclaimed, n.Name, ns.scenario.Markets[n.Market].Name, 0)
	ns.stop(id)
	x.lost = true
	for _, p := range slices.Clone(ns.space.Pods(id)) {
		ns.pods.strand(p)
	}
	ns.q.Add(ns.q.Now.Add(ns.delays.Detect), engine.NodeGone, int32(id), 0, x.gen)
}

// countReclaim counts that the provider takes a node: once, when it says so or,
// without a notice, when it does so. A node that we empty and give back under a
// notice is lost to the provider all the same.
func (ns *nodes) countReclaim(id policy.NodeID) {
	n, x := &ns.all[id], &ns.state[id]
	if x.counted {
		return
	}
	x.counted = true
	outbid := x.passed != 0 && ns.q.Now >= x.passed
	if ns.q.Now >= ns.window.From {
		ns.result.Reclaims++
		if outbid {
			ns.result.Outbid++
		}
		if ns.cfg.Sample > 0 {
			ns.result.Taken = append(ns.result.Taken, Taken{ns.q.Now, n.Market})
		}
	}
	if outbid {
		ns.log.Add(ns.q.Now, engine.RecordOutbid, n.Name, ns.scenario.Markets[n.Market].Name, int64(n.Bid))
	}
}

// noteReclaim puts the loss of a node into the experience of its market, once:
// when it is announced, or else when the cluster has noticed it.
func (ns *nodes) noteReclaim(id policy.NodeID) {
	if ns.state[id].met {
		return
	}
	ns.state[id].met = true
	ns.market.Reclaimed(ns.all[id].Market)
}

// strand makes the pod of a lost node serve no longer. Its controller learns
// of it when the node's loss is noticed.
func (ps *pods) strand(id policy.PodID) {
	p, x := &ps.all[id], &ps.state[id]
	x.gen++ // whatever was planned for it will not happen
	x.lost = true
	ps.serving.missed(id, ps.serving.lossOf(p.Node))
	if !ps.scenario.Templates[p.Template].DaemonSet && p.Phase != policy.PodTerminating && ps.q.Now >= ps.window.From {
		ps.result.ReclaimEvictions++
	}
	ps.log.Add(ps.q.Now, engine.RecordLost, p.Name, "", 0)
	switch {
	case x.job >= 0 && x.gang >= 0:
		ps.gangs.halt(x.gang)
	case x.job >= 0:
		ps.jobs.interruptTask(id)
	}
	if p.Phase == policy.PodReady {
		if x.gang >= 0 {
			ps.gangs.all[x.gang].ready--
		}
		ps.serving.serve(ps.scenario.Templates[p.Template].Workload, -1, x.spot)
	}
}

// stop ends what a node costs and frees its slot.
func (ns *nodes) stop(id policy.NodeID) {
	ns.bills.charge(id, ns.q.Now)
	ns.hold(id, false)
	ns.watch.node(id)
	ns.market.Free(ns.all[id].Market, ns.state[id].slot)
	ns.groups.leave(id)
}

// vanish takes a node that is gone out of what the cluster counts.
func (ns *nodes) vanish(id policy.NodeID) {
	n := &ns.all[id]
	if ns.state[id].lost {
		ns.noteReclaim(id)
	}
	ns.market.Forget(n.Market)
	typ := &ns.scenario.Types[ns.scenario.Markets[n.Market].Type]
	ns.pools.all[n.Pool].Used = ns.pools.all[n.Pool].Used.Minus(typ.Capacity)
	ns.pools.bounds[n.Pool].use(ns.q.Now, ns.window, ns.pools.all[n.Pool].Used)
	if n.Phase < policy.NodeInitialized {
		for i, y := range ns.inflight {
			if y == id {
				ns.inflight = append(ns.inflight[:i], ns.inflight[i+1:]...)
				break
			}
		}
	}
}

// charge charges a node that stops at t.
func (bs *bills) charge(id policy.NodeID, t policy.Time) {
	n, x := &bs.nodes.all[id], &bs.nodes.state[id]
	x.billed = true
	var amount policy.Money
	if bs.committed(n.Market) {
		amount = bs.stop(id, t)
	} else {
		amount = bs.owed(id, t)
	}
	bs.result.Bill += amount
	if x.spot {
		bs.result.SpotBill += amount
	} else {
		bs.result.OnDemandBill += amount
	}
	if bs.cfg.Check {
		bs.checker.lives = append(bs.checker.lives, lifetime{n.Market, n.Launched, t, n.Bid, amount, x.born})
	}
	bs.log.Add(t, engine.RecordBill, n.Name, "", int64(amount))
}

// delete gives back a node that was emptied.
func (ns *nodes) delete(id policy.NodeID) {
	if !ns.state[id].billed {
		ns.groups.release(id)
		ns.stop(id)
	}
	ns.log.Add(ns.q.Now, engine.RecordDeleted, ns.all[id].Name, "", 0)
	ns.forget(id)
}

// forget removes the Node object, and with it the pods that were bound.
func (ns *nodes) forget(id policy.NodeID) {
	x := &ns.state[id]
	lost := x.lost
	ns.vanish(id)
	if x.drain >= 0 {
		ns.drains.end(int(x.drain))
	}
	cause := policy.EndEvicted
	if lost {
		cause = policy.EndReclaimed
	}
	for _, p := range slices.Clone(ns.space.Pods(id)) {
		if ns.pods.all[p].Phase != policy.PodTerminating {
			if lost {
				ns.serving.missed(p, ns.serving.lossOf(id)) // it may have come after the loss
			}
			ns.pods.retire(p)
		}
		ns.pods.remove(p, cause)
	}
	n := &ns.all[id]
	if x.nominated > 0 {
		for _, p := range ns.queue.pending {
			if ns.pods.all[p].Nominated == id {
				ns.pods.all[p].Nominated = policy.None
				ns.pods.touch(p)
			}
		}
	}
	ns.space.RemoveNode(id)
	ns.sched.Removed(id)
	if n.Token != "" {
		delete(ns.tokens, n.Token)
		ns.drains.wake(n.Token)
	}
	ns.consolidation.unlist(id)
	ns.consolidation.noteChange()
	n.Phase, n.Name = policy.NodeGone, ""
	ns.state[id].gen++
	ns.touch(id)
	ns.free = append(ns.free, id)
	if lost {
		ns.decider.plan(ns.q.Now)
	}
	if len(ns.queue.pending) > 0 {
		ns.karpenter.want()
	}
}

// expire empties a node that has reached the pool's expireAfter, as Karpenter does
// and as an Auto Scaling group with a greatest age of its instances: no other is
// bought first. Where nobody provisions nobody expires nodes either, and a policy
// may replace them. It is tried again for as long as the node is there: a drain may
// be given up, by a budget that allows none or because somebody else had begun it.
func (ns *nodes) expire(id policy.NodeID) {
	if ns.state[id].billed {
		return
	}
	ns.q.Add(ns.q.Now.Add(ns.delays.DrainMax+ns.delays.EvictRetry), engine.NodeExpires, int32(id), 0, ns.state[id].gen)
	actor := policy.ActorKarpenter
	if ns.groups.serves(ns.all[id].Pool) {
		actor = policy.ActorNTH // the group ends the instance, and this drains it first
	}
	if ns.all[id].Phase == policy.NodeInitialized && ns.state[id].drain < 0 {
		ns.drains.start(id, nil, 0, actor)
	}
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

// start puts up the nodes that all policies find when warm-up begins: the
// scenario's, else the cheapest on-demand packing. Pods are ready on them.
func (ns *nodes) start() {
	if len(ns.scenario.Seeds) > 0 {
		for _, s := range ns.scenario.Seeds {
			for k := range s.Count {
				slot, ok := ns.market.Slot(s.Market)
				if !ok {
					ns.result.Warnings = append(ns.result.Warnings, fmt.Sprintf("%d of %d nodes of %s are left out: the market has no more slots",
						s.Count-k, s.Count, ns.scenario.Markets[s.Market].Name))
					break
				}
				_ = ns.addReady(s.Pool, s.Market, slot)
			}
		}
	} else {
		ns.startPacked()
	}
	for i := range len(ns.pods.all) {
		if id := policy.PodID(i); ns.pods.all[id].Phase == policy.PodPending {
			if n, ok := ns.sched.Pick(&ns.pods.all[id]); ok {
				ns.pods.bind(id, n)
				ns.pods.ready(id)
			} else {
				ns.queue.enqueue(id)
			}
		}
	}
}

// addReady puts up a node that is initialized at once.
func (ns *nodes) addReady(pool policy.PoolID, m policy.MarketID, slot int32) policy.NodeID {
	id := ns.add(pool, m, slot)
	n := &ns.all[id]
	n.Phase, n.Registered, n.Initialized = policy.NodeInitialized, ns.q.Now, ns.q.Now
	if ns.scenario.Markets[m].Auction() {
		n.Bid = ns.pools.standingBid(pool, []policy.MarketID{m})
	}
	ns.log.Add(ns.q.Now, engine.RecordLaunch, n.Name, ns.scenario.Markets[m].Name, 0)
	ns.planEnd(id)
	ns.open(id)
	return id
}

// startPacked buys the cheapest on-demand nodes that hold the first pods, as far
// as the pools' limits go, and puts each pod where it was packed.
func (ns *nodes) startPacked() {
	var pods []policy.Pod
	for i := range ns.pods.all {
		if ns.pods.all[i].Phase == policy.PodPending {
			pods = append(pods, ns.pods.all[i])
		}
	}
	if len(pods) == 0 {
		return
	}
	offers := ns.prepared.onDemand(ns.q.Now)
	bins, _, _ := ns.space.Pack(pods, offers)
	for _, b := range bins {
		for _, o := range b.Offers {
			m := offers[o].Market
			pool := &ns.pools.all[offers[o].Pool]
			if !allowed(pool.Limits, pool.Used, ns.scenario.Types[ns.scenario.Markets[m].Type].Capacity) {
				continue
			}
			slot, ok := ns.market.Slot(m)
			if !ok {
				continue
			}
			n := ns.addReady(offers[o].Pool, m, slot)
			for _, i := range b.Pods {
				if id := pods[i].ID; ns.space.Check(&ns.pods.all[id], n) == placement.OK {
					ns.pods.bind(id, n)
					ns.pods.ready(id)
				}
			}
			break
		}
	}
}
