package sim

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/place"
)

// A poolState is what a pool was told to buy.
type poolState struct {
	share    float64
	exact    bool
	fallback bool
	empty    bool         // remove empty nodes only, whatever the manifest says
	bid      policy.Money // in auctions; 0 is what a node is worth there
	allowed  []bool       // by market; nil means all of the pool
	launches int
	tried    int // candidates tried one by one since the last change
}

// defaultShare is what a pool buys before a policy has spoken: on-demand only,
// as all policies enter the warm-up on on-demand nodes.
func defaultShare(p *policy.Pool) float64 { return p.Share.Min }

// wantProvision opens the batch window of the provisioner, or leaves it open.
// New pods do not wait until those are tried again for which nothing was found.
func (r *run) wantProvision() {
	r.wantScan()
	if r.onlyGroups {
		return
	}
	at := r.q.now.Add(r.delays.BatchIdle)
	if r.provisionAt != 0 && (!r.fresh || r.provisionAt <= at) {
		return
	}
	r.batchFrom = r.q.now
	r.planProvision(at)
}

func (r *run) planProvision(at policy.Time) {
	r.provisionAt = at
	r.q.add(at, evProvision, 0, 0, 0)
}

// retryProvision is how long the provisioner waits after a refusal.
const retryProvision = 10 * time.Second

// provision buys nodes for the pending pods that have none on its way, as
// Karpenter does: first room on nodes that are on their way, then new nodes of
// each pool in order.
func (r *run) provision() {
	if r.provisionAt != r.q.now {
		return // overtaken by an earlier look
	}
	quiet, longest := r.lastPending.Add(r.delays.BatchIdle), r.batchFrom.Add(r.delays.BatchMax)
	if next := min(quiet, longest); next > r.q.now {
		r.planProvision(next)
		return
	}
	r.provisionAt, r.fresh = 0, false
	r.reserveNominated()
	pods := r.unplaced()
	r.space.Release()
	if len(pods) == 0 {
		return
	}
	refused := false
	for p := range r.pools {
		if r.pools[p].Provisioner != policy.ProvisionerKarpenter || len(pods) == 0 {
			continue
		}
		var bad bool
		pods, bad = r.provisionPool(policy.PoolID(p), pods)
		refused = refused || bad
	}
	for i := range pods {
		r.podX[pods[i].ID].stuck = !refused
	}
	if refused || len(pods) > 0 {
		after := retryProvision
		if !refused {
			after = r.delays.Unavailable // nothing to buy: look again when markets reopen
		}
		r.batchFrom = r.q.now.Add(after)
		r.planProvision(r.batchFrom)
	}
}

// reserveNominated keeps the places that pending pods were promised.
func (r *run) reserveNominated() {
	for _, id := range r.pending {
		p := &r.pods[id]
		if p.Phase == policy.PodPending && p.Nominated != policy.None {
			r.space.Reserve(p, p.Nominated)
		}
	}
}

// unplaced returns the pending pods that find no room on a node on its way,
// and promises places to the others.
func (r *run) unplaced() []policy.Pod {
	failed := r.failedScratch()
	var rest []policy.Pod
	for _, id := range r.pending {
		p := &r.pods[id]
		if p.Phase != policy.PodPending || p.Gated || p.Nominated != policy.None {
			continue
		}
		if failed[p.Template] && p.VolumeZone == policy.None {
			rest = append(rest, *p)
			continue
		}
		found := false
		for _, n := range r.inflight {
			if r.space.CheckExpected(p, n) == place.OK {
				r.space.Reserve(p, n)
				r.nominate(id, n)
				found = true
				break
			}
		}
		if !found {
			failed[p.Template] = true
			rest = append(rest, *p)
		}
	}
	return rest
}

func (r *run) nominate(id policy.PodID, n policy.NodeID) {
	r.pods[id].Nominated = n
	r.nodeX[n].nominated++
	r.nodes[n].Nominated = r.q.now
	r.touchPod(id)
	r.touchNode(n)
}

// offers lists what pool may buy now, of the capacity types wanted.
func (r *run) offers(pool policy.PoolID, spot, onDemand bool) []place.Offer {
	x, limits, used := &r.poolX[pool], r.pools[pool].Limits, r.pools[pool].Used
	out := r.offerBuf[:0]
	for _, o := range r.stage.offers[pool] {
		m := &r.world.Markets[o.Market]
		isSpot := m.Capacity == policy.Spot
		if isSpot && !spot || !isSpot && !onDemand || x.allowed != nil && !x.allowed[o.Market] {
			continue
		}
		price, offered := r.price(o.Market)
		if !offered || r.market[o.Market].unavailable > r.q.now || !allowed(limits, used, r.world.Types[m.Type].Capacity) {
			continue
		}
		o.Price = price
		out = append(out, o)
	}
	r.offerBuf = out
	return out
}

// allowed reports whether used and more stay within limits; zero components
// of limits are unlimited.
func allowed(limits, used, more policy.Resources) bool {
	sum := used.Plus(more)
	return (limits.CPU == 0 || sum.CPU <= limits.CPU) && (limits.Memory == 0 || sum.Memory <= limits.Memory) &&
		(limits.GPU == 0 || sum.GPU <= limits.GPU)
}

// provisionPool buys nodes of one pool for pods. It returns the pods that the
// pool cannot hold, and whether a launch was refused.
func (r *run) provisionPool(pool policy.PoolID, pods []policy.Pod) (rest []policy.Pod, refused bool) {
	x := &r.poolX[pool]
	offers := r.offers(pool, x.share > 0, x.share < 1)
	bins, unplaced := r.space.Provision(pods, offers)
	for _, b := range bins {
		if !r.launchBin(pool, pods, offers, b) {
			refused = true
		}
	}
	for _, i := range unplaced {
		rest = append(rest, pods[i])
	}
	if len(rest) == 0 || x.share < 1 || !x.fallback {
		return rest, refused
	}
	// Spot has no room for these, or no market is open: on-demand may take them.
	offers = r.offers(pool, false, true)
	bins, unplaced = r.space.Provision(rest, offers)
	for _, b := range bins {
		if !r.launchBin(pool, rest, offers, b) {
			refused = true
		}
	}
	var left []policy.Pod
	for _, i := range unplaced {
		left = append(left, rest[i])
	}
	return left, refused
}

// requestTypes is how many instance types a launch may name (Karpenter sends
// the 60 cheapest).
const requestTypes = 60

// launchBin buys the node of a bin, of the capacity type that brings the share
// nearest to what is wanted, and promises its place to the bin's pods.
func (r *run) launchBin(pool policy.PoolID, pods []policy.Pod, offers []place.Offer, b place.Bin) bool {
	var spot, onDemand []policy.MarketID
	for _, o := range b.Offers {
		m := offers[o].Market
		if r.world.Markets[m].Capacity == policy.Spot {
			spot = append(spot, m)
		} else {
			onDemand = append(onDemand, m)
		}
	}
	first, second := onDemand, spot
	if len(spot) > 0 && (len(onDemand) == 0 || r.wantsSpot(pool, spot[0])) {
		first, second = spot, onDemand
	}
	second = r.alternatives(pool, first, second)
	for _, markets := range [...][]policy.MarketID{first, second} {
		markets = r.cheapestTypes(markets)
		if len(markets) == 0 {
			continue
		}
		if n, ok := r.buy(pool, markets, ""); ok {
			for _, i := range b.Pods {
				r.nominate(pods[i].ID, n)
			}
			return true
		}
	}
	return false
}

// alternatives returns what is tried when the first capacity type is refused:
// on-demand in place of spot where the pool falls back, and never spot in place
// of on-demand beyond the wanted share.
func (r *run) alternatives(pool policy.PoolID, first, second []policy.MarketID) []policy.MarketID {
	if len(first) > 0 && (r.world.Markets[first[0]].Capacity != policy.Spot || !r.poolX[pool].fallback) {
		return nil
	}
	return second
}

// cheapestTypes cuts a list, cheapest first, after the first requestTypes
// instance types.
func (r *run) cheapestTypes(markets []policy.MarketID) []policy.MarketID {
	var types []policy.TypeID
	for i, m := range markets {
		if t := r.world.Markets[m].Type; !slices.Contains(types, t) {
			if len(types) == requestTypes {
				return markets[:i]
			}
			types = append(types, t)
		}
	}
	return markets
}

// wantsSpot reports whether a node of market m brings the pool's share nearer
// to the wanted one as spot than as on-demand.
func (r *run) wantsSpot(pool policy.PoolID, m policy.MarketID) bool {
	spot, total := r.sizes(pool)
	more := float64(r.sizeOf(m))
	wanted := r.poolX[pool].share * (float64(total) + more)
	// As spot it misses by |spot + more − wanted|, as on-demand by |spot − wanted|.
	return float64(spot)+more/2 <= wanted
}

func (r *run) sizeOf(m policy.MarketID) int64 {
	t := &r.world.Types[r.world.Markets[m].Type]
	if r.stage.gpuWorld {
		return t.Allocatable.GPU
	}
	return t.VCPU
}

// sizes returns the spot part and all of the capacity that pool holds or has on
// its way, nodes that are going left out.
func (r *run) sizes(pool policy.PoolID) (spot, total int64) {
	for i := range r.nodes {
		n, x := &r.nodes[i], &r.nodeX[i]
		if n.Pool != pool || n.Phase == policy.NodeGone || n.Phase > policy.NodeInitialized || x.drain >= 0 {
			continue
		}
		total += x.size
		if x.spot {
			spot += x.size
		}
	}
	return spot, total
}

// wantConsolidate plans a look for savings, now that something has changed.
func (r *run) wantConsolidate() {
	r.wantScan()
	after := time.Duration(-1)
	for i := range r.pools {
		if p := &r.pools[i]; p.Provisioner == policy.ProvisionerKarpenter && p.Consolidation != policy.ConsolidateNever {
			if after < 0 || p.ConsolidateAfter < after {
				after = p.ConsolidateAfter
			}
		}
	}
	if after < 0 {
		return
	}
	r.lookAt(max(r.q.now.Add(after), r.consolidated.Add(r.delays.Consolidate), r.q.now+1))
}

// lookAt plans a look for savings at t unless one is planned before.
func (r *run) lookAt(t policy.Time) {
	if r.consolidateAt == 0 || t < r.consolidateAt {
		r.consolidateAt = t
		r.q.add(t, evConsolidate, 0, 0, 0)
	}
}

// The counts that bound a look for savings: candidates replaced together, and
// tried one by one. (Karpenter bounds the first at 100, and the second by time;
// what is left is tried at the next look.)
const (
	multiMax  = 24
	singleMax = 24
)

// consolidate looks for nodes that can go: empty ones, then several at once,
// then one, as Karpenter does. One change is made at a time; a change leads to
// another look.
func (r *run) consolidate() {
	if r.consolidateAt != r.q.now {
		return // an earlier look took its place
	}
	r.consolidateAt, r.consolidated = 0, r.q.now
	again := false
	r.heldBack = false
	for p := range r.pools {
		pool := &r.pools[p]
		if pool.Provisioner != policy.ProvisionerKarpenter || pool.Consolidation == policy.ConsolidateNever {
			continue
		}
		r.refreshBudgets(policy.PoolID(p))
		candidates, due := r.candidates(policy.PoolID(p))
		if due != 0 {
			r.lookAt(max(due, r.q.now.Add(r.delays.Consolidate)))
		}
		var empty []policy.NodeID
		var used []policy.NodeID
		for _, n := range candidates {
			if r.nodeX[n].pods == 0 {
				empty = append(empty, n)
			} else if r.movable(n) {
				used = append(used, n)
			} else {
				r.heldBack = true
			}
		}
		budget := r.disruptable(policy.PoolID(p), policy.Empty)
		for _, n := range empty[:min(len(empty), budget)] {
			r.startDrain(n, nil, 0, policy.ActorKarpenter)
		}
		if len(empty) > 0 {
			again = true
		}
		if min(len(empty), budget) > 0 {
			continue
		}
		if pool.Consolidation != policy.WhenEmptyOrUnderutilized || r.poolX[p].exact || r.poolX[p].empty {
			continue
		}
		if r.unsettled() {
			r.heldBack = true
			continue
		}
		if r.consolidateUsed(policy.PoolID(p), used) {
			again = true
		}
	}
	if again {
		r.wantConsolidate()
	} else if r.hopeful() {
		r.lookAt(r.q.now.Add(r.delays.Reconsider))
	}
}

// hopeful reports whether a saving may come without a change in the cluster: a
// pool that wants all its capacity on spot holds on-demand nodes, and spot
// prices move and markets reopen by themselves.
func (r *run) hopeful() bool {
	return slices.ContainsFunc(r.nodes, func(n policy.Node) bool {
		return n.Usable() && n.Pool != policy.None && r.poolX[n.Pool].share >= 1 && !r.nodeX[n.ID].spot
	})
}

// unsettled reports whether nodes are on their way, or pods are pending for
// which one may still be bought. Pods for which nothing is to be had keep no
// node from being consolidated.
func (r *run) unsettled() bool {
	return len(r.inflight) > 0 || slices.ContainsFunc(r.pending, func(id policy.PodID) bool {
		return r.pods[id].Phase == policy.PodPending && !r.pods[id].Gated && !r.podX[id].stuck
	})
}

// candidates returns the nodes of pool that may be consolidated, cheapest to
// disrupt first, and when the next of the others will have been left alone for
// long enough; 0 for none.
func (r *run) candidates(pool policy.PoolID) (nodes []policy.NodeID, due policy.Time) {
	nodes = r.nodeBuf[:0]
	for i := range r.nodes {
		n, x := &r.nodes[i], &r.nodeX[i]
		if n.Pool != pool || !n.Usable() || n.DoNotDisrupt || n.ActedBy != policy.ActorNone {
			continue
		}
		if r.unrested(n.ID) {
			if t := x.changed.Add(r.pools[pool].ConsolidateAfter); due == 0 || t < due {
				due = t
			}
			continue
		}
		if x.nominated == 0 {
			nodes = append(nodes, n.ID)
		}
	}
	slices.SortFunc(nodes, func(a, b policy.NodeID) int {
		return cmp.Or(cmp.Compare(r.nodeX[a].pods, r.nodeX[b].pods), cmp.Compare(a, b))
	})
	r.nodeBuf = nodes
	return nodes, due
}

// unrested reports whether pods came to node id or left it within the pool's
// consolidateAfter. Karpenter counts from the last of them; until then it neither
// removes the node nor, since version 1.14, moves pods onto it from nodes that it
// would remove.
func (r *run) unrested(id policy.NodeID) bool {
	p := &r.pools[r.nodes[id].Pool]
	return p.Provisioner == policy.ProvisionerKarpenter && p.Consolidation != policy.ConsolidateNever &&
		r.q.now.Sub(r.nodeX[id].changed) < p.ConsolidateAfter
}

// shutUnrested lets node id take no pods for the rest of a look for savings.
func (r *run) shutUnrested(id policy.NodeID) {
	n := r.nodes[id]
	n.Phase = policy.NodeDraining
	r.space.SetNode(&n)
	r.sched.changed(id)
	r.closed = append(r.closed, id)
}

// reopenUnrested ends what shutUnrested began.
func (r *run) reopenUnrested() {
	for _, id := range r.closed {
		r.space.SetNode(&r.nodes[id])
		r.sched.changed(id)
	}
	r.closed = r.closed[:0]
}

// movable reports whether every pod of n may be evicted now.
func (r *run) movable(n policy.NodeID) bool {
	for _, id := range r.space.Pods(n) {
		p, t := &r.pods[id], &r.world.Templates[r.pods[id].Template]
		if t.DaemonSet || p.Phase == policy.PodTerminating {
			continue
		}
		if p.DoNotDisrupt || t.NotSafeToEvict || len(t.PDBs) > 1 || len(t.PDBs) == 1 && r.pdbs[t.PDBs[0]].Allowed == 0 {
			return false
		}
	}
	return true
}

// consolidateUsed removes or replaces the largest group of the first candidates
// for which at most one cheaper node is needed, else one candidate.
func (r *run) consolidateUsed(pool policy.PoolID, used []policy.NodeID) bool {
	budget := r.disruptable(pool, policy.Underutilized)
	if budget == 0 || len(used) == 0 {
		return false
	}
	defer r.reopenUnrested()
	// Karpenter seeks the largest number of first candidates by bisection.
	low, high := 2, min(len(used), budget, multiMax)
	if r.poolX[pool].tried > 0 {
		high = 0 // done in this round
	}
	var best *replacement
	for low <= high {
		mid := (low + high) / 2
		if c := r.try(pool, used[:mid]); c != nil {
			best, low = c, mid+1
		} else {
			high = mid - 1
		}
	}
	if best != nil {
		return r.carryOut(pool, best)
	}
	return r.consolidateOne(pool, used)
}

// consolidateOne goes on through the candidates from where the last look ended,
// until one of them can go. It reports whether there is more to look at.
func (r *run) consolidateOne(pool policy.PoolID, used []policy.NodeID) bool {
	x, o := &r.poolX[pool], r.newOutlook(pool)
	tries := 0
	for ; x.tried < len(used) && tries < singleMax; x.tried++ {
		n := used[x.tried]
		if r.hopeless(n, o) {
			continue
		}
		tries++
		if c := r.try(pool, []policy.NodeID{n}); c != nil {
			x.tried = 0
			return r.carryOut(pool, c)
		}
	}
	more := x.tried < len(used)
	if !more {
		x.tried = 0
	}
	return more
}

// An outlook is what tells cheaply that a node cannot be consolidated.
type outlook struct {
	// The node with most CPU free, how much that is, and the next most.
	roomiest       policy.NodeID
	room, nextRoom int64

	// replacements are what may stand in for an on-demand node, and for a spot
	// node; each with its price.
	forOnDemand, forSpot []place.Offer
}

func (r *run) newOutlook(pool policy.PoolID) *outlook {
	o := &outlook{roomiest: policy.None}
	for i := range r.nodes {
		if !r.nodes[i].Usable() || r.unrested(policy.NodeID(i)) {
			continue
		}
		if free := r.space.Free(policy.NodeID(i)).CPU; free > o.room {
			o.roomiest, o.room, o.nextRoom = policy.NodeID(i), free, o.room
		} else {
			o.nextRoom = max(o.nextRoom, free)
		}
	}
	o.forOnDemand = slices.Clone(r.replacing(pool, false))
	o.forSpot = slices.Clone(r.replacing(pool, true))
	return o
}

// hopeless reports that no pod of n has room elsewhere, and that no cheaper node
// holds them all: then there is no need to try.
func (r *run) hopeless(n policy.NodeID, o *outlook) bool {
	room := o.room
	if n == o.roomiest {
		room = o.nextRoom
	}
	var need policy.Resources
	for _, id := range r.space.Pods(n) {
		t := &r.world.Templates[r.pods[id].Template]
		if t.DaemonSet || r.pods[id].Phase == policy.PodTerminating {
			continue
		}
		if t.Requests.CPU <= room {
			return false
		}
		need = need.Plus(t.Requests)
	}
	offers := o.forOnDemand
	if r.nodeX[n].spot {
		offers = o.forSpot
	}
	price, _ := r.price(r.nodes[n].Market)
	for i := range offers {
		if offers[i].Price < price && need.Within(offers[i].Allocatable) {
			return false
		}
	}
	return true
}

// replacing lists what may stand in for a node of the pool. Spot is not replaced
// by spot (Karpenter's default), and on-demand by spot only where all the pool
// may be spot.
func (r *run) replacing(pool policy.PoolID, fromSpot bool) []place.Offer {
	if fromSpot {
		return nil
	}
	share := r.poolX[pool].share
	return r.offers(pool, share >= 1, share < 1)
}

// A replacement is a group of nodes that can go, and the markets of the one
// node that is needed instead; none if the others have room.
type replacement struct {
	nodes   []policy.NodeID
	markets []policy.MarketID
}

// try finds out whether nodes can go for less money: it takes their pods off
// them, as they will be once evicted, and lets the scheduler place them. All is
// put back at the end.
func (r *run) try(pool policy.PoolID, nodes []policy.NodeID) *replacement {
	var cost policy.Money
	spot := false
	moved := r.movedBuf[:0]
	for _, n := range nodes {
		price, _ := r.price(r.nodes[n].Market)
		cost += price
		spot = spot || r.nodeX[n].spot
		closed := r.nodes[n]
		closed.Phase = policy.NodeDraining
		r.space.SetNode(&closed)
		first := len(moved)
		for _, id := range r.space.Pods(n) {
			if !r.world.Templates[r.pods[id].Template].DaemonSet && r.pods[id].Phase != policy.PodTerminating {
				moved = append(moved, r.pods[id])
			}
		}
		for i := first; i < len(moved); i++ {
			r.space.Unbind(&moved[i], n)
		}
		r.sched.changed(n)
	}
	r.movedBuf = moved
	slices.SortStableFunc(moved, func(a, b policy.Pod) int {
		return cmp.Or(cmp.Compare(r.comesBackLate(&a), r.comesBackLate(&b)),
			cmp.Compare(r.world.Templates[b.Template].Priority, r.world.Templates[a.Template].Priority))
	})
	left := r.placeMoved(moved)
	var markets []policy.MarketID
	ok := len(left) == 0
	if !ok {
		markets = r.cheaper(pool, left, cost, spot)
		ok = len(markets) > 0 && r.holdsUp(pool, markets[0], moved)
	}
	r.space.Release()
	for i := range moved {
		r.space.Bind(&moved[i], moved[i].Node)
	}
	for _, n := range nodes {
		r.space.SetNode(&r.nodes[n])
		r.sched.changed(n)
	}
	for _, n := range r.touchedBuf {
		r.sched.changed(n)
	}
	if !ok {
		return nil
	}
	return &replacement{slices.Clone(nodes), markets}
}

// comesBackLate is 1 for a pod of a StatefulSet, which is made anew only once the
// evicted one has ended. Others are made at once and take their places first.
func (r *run) comesBackLate(p *policy.Pod) int {
	if w := r.world.Templates[p.Template].Workload; r.world.Workloads[w].Kind == policy.KindStatefulSet {
		return 1
	}
	return 0
}

// holdsUp reports whether moved pods all find a place once there is a node of
// market m: the scheduler may well put others of them there than were meant for
// it, and what is then left over would be bought for again, and so on for ever.
func (r *run) holdsUp(pool policy.PoolID, m policy.MarketID, moved []policy.Pod) bool {
	r.space.Release()
	for _, n := range r.touchedBuf {
		r.sched.changed(n)
	}
	typ := &r.world.Types[r.world.Markets[m].Type]
	n := policy.Node{ID: policy.NodeID(len(r.nodes)), Name: "expected", Pool: pool, Market: m, Phase: policy.NodeInitialized,
		VolumesMax: typ.VolumesMax, GPUResource: typ.GPUResource, Labels: r.labels(pool, m), Taints: r.world.Pools[pool].Taints}
	n.Allocatable = typ.Allocatable.Minus(r.space.Daemons(n.Labels, n.Taints))
	r.space.SetNode(&n)
	r.sched.changed(n.ID)
	left := r.placeMoved(moved)
	r.space.Release()
	r.space.RemoveNode(n.ID)
	r.sched.changed(n.ID)
	return len(left) == 0
}

// placeMoved reserves places for pods that have lost theirs, in the order in
// which they would be scheduled, and returns those for which there is none.
func (r *run) placeMoved(moved []policy.Pod) (left []policy.Pod) {
	touched := r.touchedBuf[:0]
	for i := range moved {
		p := moved[i]
		p.Node, p.Phase = policy.None, policy.PodPending
		to, ok := r.sched.pick(&p)
		for ok && int(to) < len(r.nodes) && r.unrested(to) {
			r.shutUnrested(to)
			to, ok = r.sched.pick(&p)
		}
		if !ok {
			left = append(left, p)
			continue
		}
		r.space.Reserve(&p, to)
		r.sched.changed(to)
		touched = append(touched, to)
	}
	r.touchedBuf = touched
	return left
}

// cheaper returns the markets, cheapest first, in which one node for the pods
// costs less than cost.
func (r *run) cheaper(pool policy.PoolID, pods []policy.Pod, cost policy.Money, fromSpot bool) []policy.MarketID {
	offers := slices.DeleteFunc(r.replacing(pool, fromSpot), func(o place.Offer) bool { return o.Price >= cost })
	if len(offers) == 0 {
		return nil
	}
	bins, unplaced := r.space.Provision(pods, offers)
	if len(unplaced) > 0 || len(bins) != 1 {
		return nil
	}
	var out []policy.MarketID
	for _, o := range bins[0].Offers {
		out = append(out, offers[o].Market)
	}
	return r.cheapestTypes(out)
}

// carryOut launches what is needed and drains what can go after it.
func (r *run) carryOut(pool policy.PoolID, c *replacement) bool {
	var after []string
	if len(c.markets) > 0 {
		r.poolX[pool].launches++
		token := "karpenter-" + r.pools[pool].Name + "-" + strconv.Itoa(r.poolX[pool].launches)
		if _, ok := r.buy(pool, c.markets, token); !ok {
			return false
		}
		after = []string{token}
	}
	for _, n := range c.nodes {
		r.startDrain(n, after, 0, policy.ActorKarpenter)
	}
	return true
}
