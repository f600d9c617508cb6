package nodepools

import (
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/scenarios/chance"
	"github.com/spotter-dev/spotter/sim/engine"
	"github.com/spotter-dev/spotter/sim/karpenter"
)

// A consolidation is Karpenter's disruption controller in a run. It looks at the
// cluster every ten seconds; looks that can find nothing are left out.
type consolidation struct {
	*Karpenter

	disruptor karpenter.Disruptor
	state     karpenter.ConsolidationState

	poll    polling
	command *karpenter.Command

	// due is when a node may be a candidate by time alone, 0 for never; held says that a
	// pod that becomes ready may let a node go. seen are the changes of state that the last
	// look saw.
	due  policy.Time
	held bool
	seen uint64

	offers replacementOffers

	// reread says that all nodes must be read at the next evaluation.
	reread bool

	launches []int // by pool, of replacements

	modes []policy.Consolidation
	rules []placement.Pool
}

// replacementOffers are what new nodes may be, as it was listed at last. It holds until a
// time, 0 for none.
type replacementOffers struct {
	list    []placement.Offer
	version uint64
	until   policy.Time
}

// forget has the offers listed again.
func (o *replacementOffers) forget() { o.until = 0 }

// noteReserved has the offers listed again where a reservation holds one node more or less.
func (k *consolidation) noteReserved(n policy.NodeID) {
	if k.Scenario.Markets[k.Nodes.All[n].Market].Capacity == policy.Reserved {
		k.offers.forget()
	}
}

// A polling is when the controller looks.
type polling struct {
	at        policy.Time // the next look, the end of a search or the validation of a command; 0 for none
	last      policy.Time // the end of the last look without a command
	searching bool        // at is the end of a search
}

// The rhythm of the disruption controller (disruption/controller.go, pollingPeriod;
// consolidation.go, commandValidationDelay).
const (
	pollingPeriod   = 10 * time.Second
	validationDelay = 15 * time.Second
)

// firstPoll returns an instant before the run at which the controller looked. It looks every ten
// seconds from the start of its process on, which has nothing to do with what happens in the
// cluster (disruption/controller.go, Reconcile).
func firstPoll(seed uint64) policy.Time {
	return policy.Time(chance.New(seed, "karpenter-poll", "").IntN(int(pollingPeriod.Milliseconds())))
}

// noteChange says that the cluster changed in a way that may let Karpenter save.
func (k *consolidation) noteChange() {
	k.state.Mark(k.Clock.Now)
	k.look()
}

// notePodReady has the controller look where a pod that becomes ready, or may be disrupted, may let
// a node go.
func (k *consolidation) notePodReady(policy.PodID) {
	if k.held {
		k.pollAt(k.Clock.Now)
	}
}

// look has the controller look at its next turn, where methods that found nothing since the
// last change stay idle.
func (k *consolidation) look() {
	if k.consolidates() {
		k.pollAt(k.Clock.Now)
	}
}

// consolidates reports whether any pool does.
func (k *consolidation) consolidates() bool {
	return slices.ContainsFunc(k.Pools.All, func(p policy.Pool) bool {
		return p.Provisioner == policy.ProvisionerKarpenter && p.Consolidation != policy.ConsolidateNever
	})
}

// pollAt plans the first look at or after t, unless one is planned before or a
// command is being validated.
func (k *consolidation) pollAt(t policy.Time) {
	since := max(t.Sub(k.poll.last), 1)
	t = k.poll.last.Add((since + pollingPeriod - 1) / pollingPeriod * pollingPeriod)
	if k.command == nil && !k.poll.searching && (k.poll.at == 0 || t < k.poll.at) {
		k.poll.at = t
		k.Clock.Add(t, engine.Disrupt, 0, 0, 0)
	}
}

// disrupt looks for something to disrupt, or carries out what was found a while ago
// if it still holds. One thing is done at a time.
func (k *consolidation) disrupt() {
	if k.poll.at != k.Clock.Now {
		return // an earlier look took its place
	}
	k.poll.at = 0
	if k.poll.searching {
		k.poll.searching = false
		k.conclude()
		return
	}
	if k.idle() {
		if k.Check {
			k.checkCandidates(k.cluster())
		}
		k.pause()
		return
	}
	k.seen = k.state.Changes()
	c := k.cluster()
	from := karpenter.Emptiness
	if cmd := k.command; cmd != nil {
		k.command = nil
		if k.disruptor.Valid(c, cmd) && k.carryOut(cmd) {
			// Karpenter looks again at once.
			k.plan(time.Millisecond)
			return
		}
		from = cmd.Method + 1
	}
	k.command = k.disruptor.Next(c, from, &k.state)
	if k.Check {
		k.checkCandidates(c)
	}
	k.tracker.forgetChanges()
	took := k.disruptor.Took().Truncate(time.Millisecond)
	if took == 0 {
		k.conclude()
		return
	}
	k.poll.searching = true
	k.plan(took)
}

// plan has the next event of a look come after a time.
func (k *consolidation) plan(after time.Duration) {
	k.poll.at = k.Clock.Now.Add(after)
	k.Clock.Add(k.poll.at, engine.Disrupt, 0, 0, 0)
}

// conclude ends a search: what it found is validated later.
func (k *consolidation) conclude() {
	k.disruptor.Settle(k.Clock.Now, &k.state)
	if k.command != nil {
		k.plan(validationDelay)
		return
	}
	k.pause()
}

// pause plans the next look after one that found nothing.
func (k *consolidation) pause() {
	k.poll.last = k.Clock.Now
	at, held := k.disruptor.Due(&k.state)
	k.due, k.held = at, held
	if at != 0 {
		k.pollAt(max(at, k.Clock.Now))
	}
	if k.disruptor.Again() || k.seen != k.state.Changes() || len(k.tracker.changed) > 0 {
		k.pollAt(k.Clock.Now)
	}
	k.pollAt(k.state.Ends())
}

// idle reports that a look finds nothing, as the last one had no candidate and nothing is
// another since. Karpenter looks every ten seconds then.
func (k *consolidation) idle() bool {
	return k.command == nil && k.disruptor.Idle() && (k.due == 0 || k.Clock.Now < k.due) &&
		len(k.tracker.changed) == 0 && !k.reread && k.seen == k.state.Changes()
}

// cluster returns the state that Karpenter's decisions are taken on.
func (k *consolidation) cluster() *karpenter.Cluster {
	k.modes = k.modes[:0]
	for p := range k.Pools.All {
		k.Pools.RefreshDisruptionBudgets(policy.PoolID(p))
		mode := k.Pools.All[p].Consolidation
		if mode != policy.ConsolidateNever && (k.Pools.State[p].Exact || k.Pools.State[p].EmptyOnly) {
			mode = policy.WhenEmpty
		}
		k.modes = append(k.modes, mode)
	}
	tracked := !k.reread
	k.reread = false
	return &karpenter.Cluster{Now: k.Clock.Now, Version: karpenter.Version(k.Scenario.Karpenter), Nodes: k.Nodes.All,
		Pods: k.Pods.All, Pools: k.Pools.All, Templates: k.Scenario.Templates,
		Kinds: k.Prepared.Kinds, PDBs: k.PDBs.All, Markets: k.Scenario.Markets, Space: k.Space,
		Order: k.tracker.order, Pending: k.Queue.Pending, Changed: k.tracker.changed, Tracked: tracked,
		Consolidation: k.modes, Shifted: k.Shifted, View: karpenterView{k}}
}

// A karpenterView gives Karpenter its view of a run.
type karpenterView struct{ *consolidation }

// Price returns what a market costs; 0 where nothing is offered.
func (v karpenterView) Price(pool policy.PoolID, m policy.MarketID) policy.Money {
	if p, ok := v.provisioner.believed(pool, m); ok {
		return p
	}
	return 0
}

// LastPodEvent returns when pods came to a node or began to leave it last.
func (v karpenterView) LastPodEvent(n policy.NodeID) policy.Time { return v.tracker.lastPodEvent(n) }

// NominatedUntil returns until when a pod was promised a place on a node. As long as
// the pod waits the promise is renewed.
func (v karpenterView) NominatedUntil(n policy.NodeID) policy.Time {
	if v.Nodes.State[n].Nominated > 0 {
		return v.Clock.Now.Add(v.tracker.nominationWindow())
	}
	return v.tracker.of[n].nominatedUntil
}

// Offers lists what replacements may be of each pool: both where one NodePool allows
// both, spot where all of it may be spot, else on-demand. (A pool that is part spot is two NodePools in the cluster, of which
// the one for spot is full.)
func (v karpenterView) Offers() ([]placement.Offer, uint64) {
	k := v.consolidation
	if k.Clock.Now < k.offers.until {
		return k.offers.list, k.offers.version
	}
	k.offers.list, k.offers.until = k.replacements(k.offers.list[:0]), policy.Time(math.MaxInt64)
	k.offers.version++
	for p := range k.Prepared.Offers {
		for i := range k.Prepared.Offers[p] {
			k.offers.until = min(k.offers.until, k.Market.Changes(k.Prepared.Offers[p][i].Market))
		}
		if own := k.Prepared.Own(policy.PoolID(p)); own != nil && len(own.Reserved) > 0 {
			k.offers.until = k.Clock.Now + 1 // what is left of it changes with any node
		}
	}
	return k.offers.list, k.offers.version
}

// replacements adds to list what new nodes may be that Karpenter replaces others by.
func (k *consolidation) replacements(list []placement.Offer) []placement.Offer {
	for _, h := range k.provisioner.listHalves() {
		pool := &k.Pools.All[h.pool]
		limits := pool.Limits
		pool.Limits = policy.Resources{} // Pools has them
		if share := k.Pools.State[h.pool].Share; h.second || k.Pools.State[h.pool].Mixed {
			list = k.provisioner.addHalf(list, h)
		} else if !k.Pools.State[h.pool].Divided() { // its NodePool for spot is full
			list = k.provisioner.addOffers(list, h.pool, h.id, share >= 1, share < 1)
		}
		pool.Limits = limits
	}
	return list
}

// Pools lists the requirements of the NodePools once some nodes are gone.
func (v karpenterView) Pools(without []policy.NodeID) []placement.Pool {
	k := v.consolidation
	k.rules = k.rules[:0]
	for _, h := range k.provisioner.listHalves() {
		rules := k.provisioner.rules(h)
		for i := 0; rules.Limits != (policy.Resources{}) && i < len(without); i++ {
			if n := &k.Nodes.All[without[i]]; n.Pool == h.pool {
				rules.Used = rules.Used.Minus(k.Scenario.Types[k.Scenario.Markets[n.Market].Type].Capacity)
			}
		}
		rules.NodesFull = rules.NodesFull && k.Pools.Full(h.pool, without)
		k.rules = append(k.rules, rules)
	}
	return k.rules
}

// CapacityTypes says what a half of a pool buys.
func (v karpenterView) CapacityTypes(p policy.PoolID) (spot, onDemand bool) {
	pools := policy.PoolID(len(v.Machines.Pools.All))
	if p >= pools {
		return false, true
	}
	if x := &v.Machines.Pools.State[p]; x.Mixed {
		if x.Allowed == nil {
			return true, true
		}
		types := v.Machines.Pools.All[p].CapacityTypes
		return slices.Contains(types, policy.Spot), slices.Contains(types, policy.OnDemand)
	}
	spot = v.Machines.Pools.State[p].Share >= 1
	return spot, !spot
}

// PodsVersion changes with the pods of a node.
func (v karpenterView) PodsVersion(n policy.NodeID) uint64 { return v.tracker.of[n].podsVersion }

// carryOut carries out a command: it launches what is needed, and drains what can go
// after it. Nothing is done where the launch is refused.
func (k *consolidation) carryOut(cmd *karpenter.Command) bool {
	var after []string
	if x := cmd.Replacement; x != nil {
		pool := x.Pool % policy.PoolID(len(k.Pools.All))
		k.launches[pool]++
		token := "karpenter-" + k.Pools.All[pool].Name + "-" + strconv.Itoa(k.launches[pool])
		if _, ok := k.Pools.Buy(pool, k.provisioner.request(pool, x.Markets), x.Choice, token); !ok {
			return false
		}
		after = []string{token}
	}
	for _, x := range cmd.Candidates {
		k.Drains.Start(x.Node, after, 0, policy.ActorKarpenter)
	}
	for _, n := range cmd.Targets {
		k.tracker.keepNominated(n)
	}
	return true
}
