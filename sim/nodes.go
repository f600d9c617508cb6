package sim

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/place"
	"github.com/spotter-dev/spotter/scenarios/chance"
	"github.com/spotter-dev/spotter/scenarios/weather"
)

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

// newNode puts a node into a free slot, launched now in slot s of market m.
func (r *run) newNode(pool policy.PoolID, m policy.MarketID, s int32) policy.NodeID {
	var id policy.NodeID
	if n := len(r.freeNodes); n > 0 {
		id = r.freeNodes[n-1]
		r.freeNodes = r.freeNodes[:n-1]
	} else {
		id = policy.NodeID(len(r.nodes))
		r.nodes = append(r.nodes, policy.Node{})
		r.nodeX = append(r.nodeX, nodeState{})
	}
	market, p := &r.world.Markets[m], &r.world.Pools[pool]
	typ := &r.world.Types[market.Type]
	x := &r.nodeX[id]
	*x = nodeState{gen: x.gen + 1, podsVersion: x.podsVersion + 1, dirty: x.dirty, changed: x.changed, slot: s, drain: -1, images: x.images[:0],
		spot: market.Capacity == policy.Spot, size: typ.VCPU}
	if r.stage.gpuWorld {
		x.size = typ.Allocatable.GPU
	}
	r.launched++
	x.born = r.launched
	r.nodes[id] = policy.Node{ID: id, Name: p.Name + "-" + strconv.Itoa(r.launched), Pool: pool, Market: m,
		Phase: policy.NodeLaunching, Allocatable: typ.Allocatable, VolumesMax: typ.VolumesMax, GPUResource: typ.GPUResource,
		Labels: r.labels(pool, m), Taints: p.Taints, Launched: r.q.now}
	r.pools[pool].Used = r.pools[pool].Used.Plus(typ.Capacity)
	r.kept[pool].use(r.q.now, r.window, r.pools[pool].Used)
	r.space.SetNode(&r.nodes[id])
	ms := &r.market[m]
	ms.take(s)
	ms.meet(r.q.now)
	ms.seen.Launches++
	ms.running++
	r.startMeter(id)
	r.joinGroup(id)
	r.kar.list(r, id)
	r.unconsolidated()
	r.touchNode(id)
	return id
}

func (r *run) labels(pool policy.PoolID, m policy.MarketID) []policy.Label {
	offers := r.stage.offers[pool]
	for i := range offers {
		if offers[i].Market == m {
			return offers[i].Labels
		}
	}
	return place.NodeLabels(r.world.Types, r.world.Zones, &r.world.Pools[pool], &r.world.Markets[m])
}

// launch buys a node and plans its life.
func (r *run) launch(pool policy.PoolID, m policy.MarketID, slot int32, token string, bid policy.Money) policy.NodeID {
	id := r.newNode(pool, m, slot)
	r.noteFallback(pool, m)
	n, x := &r.nodes[id], &r.nodeX[id]
	n.Token = token
	if r.world.Markets[m].Auction() {
		n.Bid = bid
	}
	if token != "" {
		r.tokens[token] = id
	}
	r.inflight = append(r.inflight, id)
	if r.q.now >= r.window.From {
		r.result.Launches++
	}
	r.log.add(r.q.now, logLaunch, n.Name, r.world.Markets[m].Name, int64(r.stage.curves[m].At(r.q.now)))
	// Two nodes in one slot at one instant are the same machine: the key says so.
	u := chance.New(r.cfg.Seed, "node-start", r.world.Markets[m].Name).At2(uint64(slot), uint64(r.q.now)).Float()
	least, most := r.delays.register(&r.world.Markets[m])
	join := time.Duration(float64(least+time.Duration(u*float64(most-least))) * r.slowFactor)
	r.q.add(r.q.now.Add(join), evRegistered, int32(id), 0, x.gen)
	r.planEnd(id)
	return id
}

// planEnd plans how the life of a node ends that was just launched: what the
// weather has for it, in an auction a price above its bid, and the pool's
// expireAfter.
func (r *run) planEnd(id policy.NodeID) {
	n, x := &r.nodes[id], &r.nodeX[id]
	if p := &r.world.Pools[n.Pool]; p.ExpireAfter > 0 && p.Provisioner != policy.ProvisionerNone {
		r.q.add(r.q.now.Add(p.ExpireAfter), evExpire, int32(id), 0, x.gen)
	}
	end := func(rec weather.Reclaim, outbid int32) policy.Time {
		if rec.Notice != 0 {
			r.q.add(max(rec.Notice, r.q.now), evNotice, int32(id), outbid, x.gen)
		}
		r.q.add(rec.At, evReclaim, int32(id), 0, x.gen)
		return rec.At
	}
	if rec, ok := r.weather.Reclaim(int(n.Market), int(x.slot), n.Launched); ok {
		x.reclaim = end(rec, 0)
	}
	// Both may be due: a zone may fail while a node that was outbid waits for its
	// end. What comes first takes the node, and neither is told of by the other.
	if lost, passed, ok := r.outbid(id); ok {
		x.outbid, x.passed = end(lost, 1), passed
	}
	if at, ok := r.weather.Recommendation(int(n.Market), int(x.slot), n.Launched); ok {
		r.q.add(max(at, r.q.now), evRecommend, int32(id), 0, x.gen)
	}
}

func (r *run) register(id policy.NodeID) {
	n := &r.nodes[id]
	if r.nodeX[id].billed {
		return // taken before it joined
	}
	n.Phase, n.Registered = policy.NodeRegistered, r.q.now
	r.space.SetNode(n)
	r.touchNode(id)
	r.log.add(r.q.now, logRegistered, n.Name, "", 0)
	r.q.add(r.q.now.Add(r.delays.Initialize), evInitialized, int32(id), 0, r.nodeX[id].gen)
}

func (r *run) initialize(id policy.NodeID) {
	n := &r.nodes[id]
	if r.nodeX[id].billed {
		return
	}
	n.Phase, n.Initialized = policy.NodeInitialized, r.q.now
	for i, x := range r.inflight {
		if x == id {
			r.inflight = append(r.inflight[:i], r.inflight[i+1:]...)
			break
		}
	}
	r.log.add(r.q.now, logInitialized, n.Name, "", 0)
	if g := r.groupOf(id); g != nil {
		g.recover(r.q.now)
	}
	r.open(id)
	r.wakeDrains(n.Token)
}

// open lets an initialized node take pods.
func (r *run) open(id policy.NodeID) {
	n := &r.nodes[id]
	r.hold(id, true)
	r.space.SetNode(n)
	r.sched.Changed(id)
	for _, t := range r.daemons {
		pod := policy.Pod{Template: t, Phase: policy.PodPending, Node: policy.None, Nominated: policy.None, VolumeZone: policy.None}
		if r.space.Check(&pod, id) == place.OK {
			r.bind(r.newPod(r.world.Templates[t].Workload), id)
		}
	}
	n.Nominated = 0
	r.touchNode(id)
	r.wantSchedule()
	r.wantScan()
	r.unconsolidated()
}

// hold counts a node as capacity held, or no longer.
func (r *run) hold(id policy.NodeID, held bool) {
	x := &r.nodeX[id]
	if x.held == held {
		return
	}
	x.held = held
	h, d := &r.held, int64(1)
	if !held {
		d = -1
	}
	h.advance(r.q.now, r.window)
	h.nodes += d
	h.size += d * x.size
	if x.spot {
		h.spotNodes += d
		h.spotSize += d * x.size
	}
	r.kept[r.nodes[id].Pool].hold(r.q.now, r.window, x.size, d, x.spot)
}

// notice tells that the provider takes a node at an instant: earlier than it may
// have told before.
func (r *run) notice(id policy.NodeID, at policy.Time) {
	n := &r.nodes[id]
	if r.nodeX[id].billed || n.ReclaimAt != 0 && n.ReclaimAt <= at {
		return
	}
	n.NoticeAt, n.ReclaimAt = r.q.now, at
	r.space.SetNode(n)
	r.touchNode(id)
	r.countReclaim(id)
	r.meetReclaim(id)
	if r.q.now >= r.window.From {
		r.result.Notices++
	}
	r.log.add(r.q.now, logNotice, n.Name, "", int64(n.ReclaimAt))
	if r.poolX[n.Pool].mixed {
		r.interrupted(id)
	}
	r.planStep(r.q.now)
}

func (r *run) recommend(id policy.NodeID) {
	n := &r.nodes[id]
	if n.Recommended != 0 || r.nodeX[id].billed {
		return
	}
	n.Recommended = r.q.now
	r.touchNode(id)
	if r.q.now >= r.window.From {
		r.result.Recommendations++
	}
	r.log.add(r.q.now, logRecommended, n.Name, "", 0)
	r.planStep(r.q.now)
}

// reclaim takes a node. Its pods serve no longer, but the cluster notices only
// after a while: until then its API, and so every snapshot, the scheduler and
// the provisioner, hold the node and its pods to be as they were.
func (r *run) reclaim(id policy.NodeID) {
	n, x := &r.nodes[id], &r.nodeX[id]
	if x.billed {
		return
	}
	r.countReclaim(id)
	r.log.add(r.q.now, logReclaimed, n.Name, r.world.Markets[n.Market].Name, 0)
	r.stop(id)
	x.lost = true
	for _, p := range slices.Clone(r.space.Pods(id)) {
		r.stranded(p)
	}
	r.q.add(r.q.now.Add(r.delays.Detect), evNodeGone, int32(id), 0, x.gen)
}

// countReclaim counts that the provider takes a node: once, when it says so or,
// without a notice, when it does so. A node that we empty and give back under a
// notice is lost to the provider all the same.
func (r *run) countReclaim(id policy.NodeID) {
	n, x := &r.nodes[id], &r.nodeX[id]
	if x.counted {
		return
	}
	x.counted = true
	outbid := x.passed != 0 && r.q.now >= x.passed
	if r.q.now >= r.window.From {
		r.result.Reclaims++
		if outbid {
			r.result.Outbid++
		}
		if r.cfg.Sample > 0 {
			r.result.Taken = append(r.result.Taken, Taken{r.q.now, n.Market})
		}
	}
	if outbid {
		r.log.add(r.q.now, logOutbid, n.Name, r.world.Markets[n.Market].Name, int64(n.Bid))
	}
}

// meetReclaim puts the loss of a node into the experience of its market, once:
// when it is announced, or else when the cluster has noticed it.
func (r *run) meetReclaim(id policy.NodeID) {
	if r.nodeX[id].met {
		return
	}
	r.nodeX[id].met = true
	ms := &r.market[r.nodes[id].Market]
	ms.meet(r.q.now)
	ms.seen.Reclaims++
	ms.seen.Reclaimed = r.q.now
}

// stranded makes the pod of a lost node serve no longer. Its controller learns
// of it when the node's loss is noticed.
func (r *run) stranded(id policy.PodID) {
	p, x := &r.pods[id], &r.podX[id]
	x.gen++ // whatever was planned for it will not happen
	x.lost = true
	r.missed(id, r.lossOf(p.Node))
	if !r.world.Templates[p.Template].DaemonSet && p.Phase != policy.PodTerminating && r.q.now >= r.window.From {
		r.result.ReclaimEvictions++
	}
	r.log.add(r.q.now, logLost, p.Name, "", 0)
	switch {
	case x.job >= 0 && x.gang >= 0:
		r.haltGang(x.gang)
	case x.job >= 0:
		r.interruptTask(id)
	}
	if p.Phase == policy.PodReady {
		if x.gang >= 0 {
			r.gangs[x.gang].ready--
		}
		r.serve(r.world.Templates[p.Template].Workload, -1, x.spot)
	}
}

// stop ends what a node costs and frees its slot.
func (r *run) stop(id policy.NodeID) {
	r.bill(id, r.q.now)
	r.hold(id, false)
	r.touched(id)
	r.market[r.nodes[id].Market].free(r.nodeX[id].slot)
	r.leaveGroup(id)
}

// vanish takes a node that is gone out of what the cluster counts.
func (r *run) vanish(id policy.NodeID) {
	n := &r.nodes[id]
	if r.nodeX[id].lost {
		r.meetReclaim(id)
	}
	r.market[n.Market].meet(r.q.now)
	r.market[n.Market].running--
	typ := &r.world.Types[r.world.Markets[n.Market].Type]
	r.pools[n.Pool].Used = r.pools[n.Pool].Used.Minus(typ.Capacity)
	r.kept[n.Pool].use(r.q.now, r.window, r.pools[n.Pool].Used)
	if n.Phase < policy.NodeInitialized {
		for i, y := range r.inflight {
			if y == id {
				r.inflight = append(r.inflight[:i], r.inflight[i+1:]...)
				break
			}
		}
	}
}

// bill charges a node that stops at t.
func (r *run) bill(id policy.NodeID, t policy.Time) {
	n, x := &r.nodes[id], &r.nodeX[id]
	x.billed = true
	var amount policy.Money
	if r.metered(n.Market) {
		amount = r.stopMeter(id, t)
	} else {
		amount = r.owed(id, t)
	}
	r.result.Bill += amount
	if x.spot {
		r.result.SpotBill += amount
	} else {
		r.result.OnDemandBill += amount
	}
	if r.cfg.Check {
		r.lives = append(r.lives, lived{n.Market, n.Launched, t, n.Bid, amount, x.born})
	}
	r.log.add(t, logBill, n.Name, "", int64(amount))
}

// deleteNode gives back a node that was emptied.
func (r *run) deleteNode(id policy.NodeID) {
	if !r.nodeX[id].billed {
		r.release(id)
		r.stop(id)
	}
	r.log.add(r.q.now, logDeleted, r.nodes[id].Name, "", 0)
	r.forgetNode(id)
}

// forgetNode removes the Node object, and with it the pods that were bound.
func (r *run) forgetNode(id policy.NodeID) {
	x := &r.nodeX[id]
	lost := x.lost
	r.vanish(id)
	if x.drain >= 0 {
		r.endDrain(int(x.drain))
	}
	cause := policy.EndEvicted
	if lost {
		cause = policy.EndReclaimed
	}
	for _, p := range slices.Clone(r.space.Pods(id)) {
		if r.pods[p].Phase != policy.PodTerminating {
			if lost {
				r.missed(p, r.lossOf(id)) // it may have come after the loss
			}
			r.retire(p)
		}
		r.podGone(p, cause)
	}
	n := &r.nodes[id]
	if x.nominated > 0 {
		for _, p := range r.pending {
			if r.pods[p].Nominated == id {
				r.pods[p].Nominated = policy.None
				r.touchPod(p)
			}
		}
	}
	r.space.RemoveNode(id)
	r.sched.Removed(id)
	if n.Token != "" {
		delete(r.tokens, n.Token)
		r.wakeDrains(n.Token)
	}
	r.kar.unlist(r, id)
	r.unconsolidated()
	n.Phase, n.Name = policy.NodeGone, ""
	r.nodeX[id].gen++
	r.touchNode(id)
	r.freeNodes = append(r.freeNodes, id)
	if lost {
		r.planStep(r.q.now)
	}
	if len(r.pending) > 0 {
		r.wantProvision()
	}
}

// expire empties a node that has reached the pool's expireAfter, as Karpenter does
// and as an Auto Scaling group with a greatest age of its instances: no other is
// bought first. Where nobody provisions nobody expires nodes either, and a policy
// may replace them. It is tried again for as long as the node is there: a drain may
// be given up, by a budget that allows none or because somebody else had begun it.
func (r *run) expire(id policy.NodeID) {
	if r.nodeX[id].billed {
		return
	}
	r.q.add(r.q.now.Add(r.delays.DrainMax+r.delays.EvictRetry), evExpire, int32(id), 0, r.nodeX[id].gen)
	actor := policy.ActorKarpenter
	if r.grouped(r.nodes[id].Pool) {
		actor = policy.ActorNTH // the group ends the instance, and this drains it first
	}
	if r.nodes[id].Phase == policy.NodeInitialized && r.nodeX[id].drain < 0 {
		r.startDrain(id, nil, 0, actor)
	}
}

func (r *run) touchNode(id policy.NodeID) {
	r.touched(id)
	r.changed(id)
	x := &r.nodeX[id]
	for v := range r.view {
		if bit := uint8(1) << v; x.dirty&bit == 0 {
			x.dirty |= bit
			r.view[v].nodes = append(r.view[v].nodes, id)
		}
	}
}

// startNodes puts up the nodes that all policies find when warm-up begins: the
// scenario's, else the cheapest on-demand packing. Pods are ready on them.
func (r *run) startNodes() {
	if len(r.world.Seeds) > 0 {
		for _, s := range r.world.Seeds {
			for k := range s.Count {
				slot, ok := r.market[s.Market].lowest(r.weather.Slots(int(s.Market)))
				if !ok {
					r.result.Warnings = append(r.result.Warnings, fmt.Sprintf("%d of %d nodes of %s are left out: the market has no more slots",
						s.Count-k, s.Count, r.world.Markets[s.Market].Name))
					break
				}
				_ = r.settle(s.Pool, s.Market, slot)
			}
		}
	} else {
		r.startPacked()
	}
	for i := range len(r.pods) {
		if id := policy.PodID(i); r.pods[id].Phase == policy.PodPending {
			if n, ok := r.sched.Pick(&r.pods[id]); ok {
				r.bind(id, n)
				r.podReady(id)
			} else {
				r.enqueue(id)
			}
		}
	}
}

// settle puts up a node that is initialized at once.
func (r *run) settle(pool policy.PoolID, m policy.MarketID, slot int32) policy.NodeID {
	id := r.newNode(pool, m, slot)
	n := &r.nodes[id]
	n.Phase, n.Registered, n.Initialized = policy.NodeInitialized, r.q.now, r.q.now
	if r.world.Markets[m].Auction() {
		n.Bid = r.standingBid(pool, []policy.MarketID{m})
	}
	r.log.add(r.q.now, logLaunch, n.Name, r.world.Markets[m].Name, 0)
	r.planEnd(id)
	r.open(id)
	return id
}

// startPacked buys the cheapest on-demand nodes that hold the first pods, as far
// as the pools' limits go, and puts each pod where it was packed.
func (r *run) startPacked() {
	var pods []policy.Pod
	for i := range r.pods {
		if r.pods[i].Phase == policy.PodPending {
			pods = append(pods, r.pods[i])
		}
	}
	if len(pods) == 0 {
		return
	}
	offers := r.stage.onDemand(r.q.now)
	bins, _, _ := r.space.Pack(pods, offers)
	for _, b := range bins {
		for _, o := range b.Offers {
			m := offers[o].Market
			pool := &r.pools[offers[o].Pool]
			if !allowed(pool.Limits, pool.Used, r.world.Types[r.world.Markets[m].Type].Capacity) {
				continue
			}
			slot, ok := r.market[m].lowest(r.weather.Slots(int(m)))
			if !ok {
				continue
			}
			n := r.settle(offers[o].Pool, m, slot)
			for _, i := range b.Pods {
				if id := pods[i].ID; r.space.Check(&r.pods[id], n) == place.OK {
					r.bind(id, n)
					r.podReady(id)
				}
			}
			break
		}
	}
}
