package sim

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/place"
	"github.com/spotter-dev/spotter/scenarios/chance"
	"github.com/spotter-dev/spotter/sim/karpenter"
)

// A consolidation is Karpenter's disruption controller in a run. It looks at the
// cluster every ten seconds; looks that can find nothing are not played.
type consolidation struct {
	disruptor karpenter.Disruptor
	state     karpenter.ConsolidationState

	// at is when the next look is, or the validation of command; 0 for none.
	// polled is when the last look without a command was.
	at, polled policy.Time
	command    *karpenter.Command

	// held says that a pod that becomes ready may let a node go.
	held bool

	// order lists the nodes by name, in which Karpenter tries them. Names end in
	// random letters, so that within a pool the order is drawn.
	order []policy.NodeID

	// changed lists nodes since candidates were listed last: see karpenter.Cluster.
	changed []policy.NodeID

	kinds []policy.WorkloadKind
	modes []policy.Consolidation
	rules []place.Pool

	// offers are as they were listed at last; they hold until a time, 0 for none.
	offers        []place.Offer
	offersVersion uint64
	offersUntil   policy.Time
}

// The rhythm of the disruption controller (disruption/controller.go, pollingPeriod;
// consolidation.go, commandValidationDelay).
const (
	pollingPeriod   = 10 * time.Second
	validationDelay = 15 * time.Second
)

// nominationWindow is how long a node is not disrupted after a pod was promised a
// place there: twice the longest batch window (state/statenode.go).
func (r *run) nominationWindow() time.Duration { return max(2*r.delays.BatchMax, 10*time.Second) }

func (r *run) keepNominated(n policy.NodeID) {
	r.nodeX[n].nominatedUntil = r.q.now.Add(r.nominationWindow())
	r.changed(n)
}

// list puts a new node into its place among the others by name.
func (k *consolidation) list(r *run, id policy.NodeID) {
	n := &r.nodes[id]
	r.nodeX[id].nameKey = uint64(chance.New(r.cfg.Seed, "node-name", n.Name))
	at, _ := slices.BinarySearchFunc(k.order, id, r.byName)
	k.order = slices.Insert(k.order, at, id)
}

// unlist removes a node that is gone, while its name is still known.
func (k *consolidation) unlist(r *run, id policy.NodeID) {
	if at, ok := slices.BinarySearchFunc(k.order, id, r.byName); ok {
		k.order = slices.Delete(k.order, at, at+1)
	}
}

func (r *run) byName(a, b policy.NodeID) int {
	x, y := &r.nodes[a], &r.nodes[b]
	return cmp.Or(cmp.Compare(r.pools[x.Pool].Name, r.pools[y.Pool].Name),
		cmp.Compare(r.nodeX[a].nameKey, r.nodeX[b].nameKey), cmp.Compare(a, b))
}

// unconsolidated says that the cluster changed in a way that may let Karpenter save.
func (r *run) unconsolidated() {
	r.kar.state.Mark(r.q.now)
	if r.consolidates() {
		r.pollAt(r.q.now)
	}
}

// consolidates reports whether any pool does.
func (r *run) consolidates() bool {
	return slices.ContainsFunc(r.pools, func(p policy.Pool) bool {
		return p.Provisioner == policy.ProvisionerKarpenter && p.Consolidation != policy.ConsolidateNever
	})
}

// pollAt plans the first look at or after t, unless one is planned before or a
// command is being validated.
func (r *run) pollAt(t policy.Time) {
	k := &r.kar
	since := max(t.Sub(k.polled), 1)
	t = k.polled.Add((since + pollingPeriod - 1) / pollingPeriod * pollingPeriod)
	if k.command == nil && (k.at == 0 || t < k.at) {
		k.at = t
		r.q.add(t, evConsolidate, 0, 0, 0)
	}
}

// disrupt looks for something to disrupt, or carries out what was found a while ago
// if it still holds. One thing is done at a time.
func (r *run) disrupt() {
	k := &r.kar
	if k.at != r.q.now {
		return // an earlier look took its place
	}
	k.at = 0
	c := r.cluster()
	from := karpenter.Emptiness
	if cmd := k.command; cmd != nil {
		k.command = nil
		if k.disruptor.Valid(c, cmd) && r.start(cmd) {
			// Karpenter looks again at once.
			k.at = r.q.now + 1
			r.q.add(k.at, evConsolidate, 0, 0, 0)
			return
		}
		from = cmd.Method + 1
	}
	k.command = k.disruptor.Next(c, from, &k.state)
	if r.cfg.Check {
		r.checkCandidates(c)
	}
	for _, id := range k.changed {
		r.nodeX[id].changed = false
	}
	k.changed = k.changed[:0]
	if k.command != nil {
		k.at = r.q.now.Add(validationDelay)
		r.q.add(k.at, evConsolidate, 0, 0, 0)
		return
	}
	k.polled = r.q.now
	at, held := k.disruptor.Due(&k.state)
	k.held = held
	if at != 0 {
		r.pollAt(at)
	}
	r.pollAt(k.state.Ends())
}

// cluster returns the state that Karpenter's decisions are taken on.
func (r *run) cluster() *karpenter.Cluster {
	k := &r.kar
	if k.kinds == nil {
		for i := range r.world.Workloads {
			k.kinds = append(k.kinds, r.world.Workloads[i].Kind)
		}
	}
	k.modes = k.modes[:0]
	for p := range r.pools {
		r.refreshBudgets(policy.PoolID(p))
		mode := r.pools[p].Consolidation
		if mode != policy.ConsolidateNever && (r.poolX[p].exact || r.poolX[p].empty) {
			mode = policy.WhenEmpty
		}
		k.modes = append(k.modes, mode)
	}
	return &karpenter.Cluster{Now: r.q.now, Nodes: r.nodes, Pods: r.pods, Pools: r.pools, Templates: r.world.Templates,
		Kinds: k.kinds, PDBs: r.pdbs, Markets: r.world.Markets, Space: r.space, Order: k.order, Pending: r.pending, Changed: k.changed, Tracked: true,
		Consolidation: k.modes, View: karpenterView{r}}
}

// A karpenterView answers what Karpenter asks of a run.
type karpenterView struct{ r *run }

// Price returns what a market costs; 0 where nothing is offered.
func (v karpenterView) Price(m policy.MarketID) policy.Money {
	if p, ok := v.r.price(m); ok {
		return p
	}
	return 0
}

// LastPodEvent returns when pods came to a node or began to leave it last.
func (v karpenterView) LastPodEvent(n policy.NodeID) policy.Time { return v.r.lastPodEvent(n) }

// NominatedUntil returns until when a pod was promised a place on a node. As long as
// the pod waits the promise is renewed.
func (v karpenterView) NominatedUntil(n policy.NodeID) policy.Time {
	x := &v.r.nodeX[n]
	if x.nominated > 0 {
		return v.r.q.now.Add(v.r.nominationWindow())
	}
	return x.nominatedUntil
}

// Offers lists what replacements may be of each pool: both where one NodePool allows
// both, spot where all of it may be spot, else on-demand. (A pool that is part spot is two NodePools in the cluster, of which
// the one for spot is full.)
func (v karpenterView) Offers() ([]place.Offer, uint64) {
	r, k := v.r, &v.r.kar
	if r.q.now < k.offersUntil {
		return k.offers, k.offersVersion
	}
	k.offers, k.offersUntil = r.replacements(k.offers[:0]), policy.Time(math.MaxInt64)
	k.offersVersion++
	for p := range r.stage.offers {
		for i := range r.stage.offers[p] {
			k.offersUntil = min(k.offersUntil, r.offerChanges(r.stage.offers[p][i].Market))
		}
	}
	return k.offers, k.offersVersion
}

// replacements adds to list what new nodes may be that Karpenter replaces others by.
func (r *run) replacements(list []place.Offer) []place.Offer {
	for _, h := range r.listHalves() {
		pool := &r.pools[h.pool]
		limits := pool.Limits
		pool.Limits = policy.Resources{} // Pools has them
		if share := r.poolX[h.pool].share; h.second || r.poolX[h.pool].mixed {
			list = r.addHalf(list, h)
		} else if !r.poolX[h.pool].divided() { // its NodePool for spot is full
			list = r.addOffers(list, h.pool, h.id, share >= 1, share < 1)
		}
		pool.Limits = limits
	}
	return list
}

// offerChanges returns when the price of a market changes next, or it can be asked again.
func (r *run) offerChanges(m policy.MarketID) policy.Time {
	r.price(m) // moves the cursor
	next := policy.Time(math.MaxInt64)
	if c, ms := &r.stage.prices[m], &r.market[m]; ms.cursor+1 < len(c.At) {
		next = c.At[ms.cursor+1]
	}
	if until := r.market[m].unavailable; until > r.q.now {
		next = min(next, until)
	}
	return next
}

// Pools lists what the NodePools ask for once some nodes are gone.
func (v karpenterView) Pools(without []policy.NodeID) []place.Pool {
	r, k := v.r, &v.r.kar
	k.rules = k.rules[:0]
	for _, h := range r.listHalves() {
		rules := r.rules(h)
		for i := 0; rules.Limits != (policy.Resources{}) && i < len(without); i++ {
			if n := &r.nodes[without[i]]; n.Pool == h.pool {
				rules.Used = rules.Used.Minus(r.world.Types[r.world.Markets[n.Market].Type].Capacity)
			}
		}
		k.rules = append(k.rules, rules)
	}
	return k.rules
}

// CapacityTypes says what a half of a pool buys.
func (v karpenterView) CapacityTypes(p policy.PoolID) (spot, onDemand bool) {
	pools := policy.PoolID(len(v.r.pools))
	if p >= pools {
		return false, true
	}
	if v.r.poolX[p].mixed {
		return true, true
	}
	spot = v.r.poolX[p].share >= 1
	return spot, !spot
}

// PodsVersion changes with the pods of a node.
func (v karpenterView) PodsVersion(n policy.NodeID) uint64 { return v.r.nodeX[n].podsVersion }

// podEventsApart is how far apart two pod events of a node are, for the second to
// count (nodeclaim/podevents/controller.go, dedupeTimeout).
const podEventsApart = 10 * time.Second

// podEvent notes that a pod came to a node or began to leave it.
func (r *run) podEvent(n policy.NodeID) {
	if x := &r.nodeX[n]; x.podEvent == 0 || r.q.now.Sub(x.podEvent) >= podEventsApart {
		x.podEvent = r.q.now
		r.changed(n)
	}
}

// podsChanged notes that the pods of a node are others, or became ready.
func (r *run) podsChanged(n policy.NodeID) {
	r.nodeX[n].podsVersion++
	r.changed(n)
}

// changed notes that a node may be a candidate now, or none any more.
func (r *run) changed(n policy.NodeID) {
	if x := &r.nodeX[n]; !x.changed {
		x.changed = true
		r.kar.changed = append(r.kar.changed, n)
	}
}

func (r *run) lastPodEvent(n policy.NodeID) policy.Time {
	if t := r.nodeX[n].podEvent; t != 0 {
		return t
	}
	return r.nodes[n].Initialized
}

// start carries out a command: it launches what is needed, and drains what can go
// after it. Nothing is done where the launch is refused.
func (r *run) start(cmd *karpenter.Command) bool {
	var after []string
	if x := cmd.Replacement; x != nil {
		pool := x.Pool % policy.PoolID(len(r.pools))
		r.poolX[pool].launches++
		token := "karpenter-" + r.pools[pool].Name + "-" + strconv.Itoa(r.poolX[pool].launches)
		if _, ok := r.buy(pool, r.request(x.Markets), token); !ok {
			return false
		}
		after = []string{token}
	}
	for _, x := range cmd.Candidates {
		r.startDrain(x.Node, after, 0, policy.ActorKarpenter)
	}
	for _, n := range cmd.Targets {
		r.keepNominated(n)
	}
	return true
}
