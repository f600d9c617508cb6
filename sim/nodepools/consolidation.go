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

// A consolidation is Karpenter's disruption controller in a run. It evaluates the cluster every ten
// seconds. Evaluations that cannot find anything are left out.
type consolidation struct {
	*Karpenter

	disruptor karpenter.Disruptor
	state     karpenter.ConsolidationState

	poll    polling
	command *karpenter.Command

	// due is the earliest time at which a node may become a candidate without a change, or 0. held
	// reports whether a pod that becomes ready may make a node removable. seen is the number of
	// changes of the state that the last evaluation included.
	due  policy.Time
	held bool
	seen uint64

	offers replacementOffers

	// reread reports whether all nodes must be read at the next evaluation.
	reread bool

	launches []int // number of replacements launched, by pool

	modes []policy.Consolidation
	rules []placement.Pool
}

// replacementOffers are the cached offers of new nodes. They are valid until a time, or not at all
// if it is 0.
type replacementOffers struct {
	list    []placement.Offer
	version uint64
	until   policy.Time
}

// forget invalidates the cached offers.
func (o *replacementOffers) forget() { o.until = 0 }

// noteReserved invalidates the cached offers if node n is in a reservation, whose remaining
// capacity has changed.
func (k *consolidation) noteReserved(n policy.NodeID) {
	if k.Scenario.Markets[k.Nodes.All[n].Market].Capacity == policy.Reserved {
		k.offers.forget()
	}
}

// A polling is the schedule of the controller.
type polling struct {
	at        policy.Time // next evaluation, end of a search or validation of a command; 0 for none
	last      policy.Time // end of the last evaluation without a command
	searching bool        // at is the end of a search
}

// The intervals of the disruption controller (disruption/controller.go, pollingPeriod;
// consolidation.go, commandValidationDelay).
const (
	pollingPeriod   = 10 * time.Second
	validationDelay = 15 * time.Second
)

// firstPoll returns an instant before the run at which the controller evaluated the cluster. It
// does so every ten seconds from the start of its process, independently of events in the cluster
// (disruption/controller.go, Reconcile).
func firstPoll(seed uint64) policy.Time {
	return policy.Time(chance.New(seed, "karpenter-poll", "").IntN(int(pollingPeriod.Milliseconds())))
}

// noteChange records a change of the cluster that may let Karpenter save.
func (k *consolidation) noteChange() {
	k.state.Mark(k.Clock.Now)
	k.look()
}

// notePodReady plans an evaluation if a pod that becomes ready, or may now be disrupted, may make a
// node removable.
func (k *consolidation) notePodReady(policy.PodID) {
	if k.held {
		k.pollAt(k.Clock.Now)
	}
}

// look plans the next evaluation. Methods that found nothing since the last change are skipped in
// it.
func (k *consolidation) look() {
	if k.consolidates() {
		k.pollAt(k.Clock.Now)
	}
}

// consolidates reports whether any pool of Karpenter consolidates.
func (k *consolidation) consolidates() bool {
	return slices.ContainsFunc(k.Pools.All, func(p policy.Pool) bool {
		return p.Provisioner == policy.ProvisionerKarpenter && p.Consolidation != policy.ConsolidateNever
	})
}

// pollAt plans the first evaluation at or after t, unless an earlier one is planned, a search is
// running or a command is being validated.
func (k *consolidation) pollAt(t policy.Time) {
	since := max(t.Sub(k.poll.last), 1)
	t = k.poll.last.Add((since + pollingPeriod - 1) / pollingPeriod * pollingPeriod)
	if k.command == nil && !k.poll.searching && (k.poll.at == 0 || t < k.poll.at) {
		k.poll.at = t
		k.Clock.Add(t, engine.Disrupt, 0, 0, 0)
	}
}

// disrupt evaluates the cluster, or carries out the command of the previous evaluation if it is
// still valid. Karpenter has only one command at a time.
func (k *consolidation) disrupt() {
	if k.poll.at != k.Clock.Now {
		return // replaced by an earlier evaluation
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
			// Karpenter evaluates again at once.
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

// plan plans the next step of an evaluation after the given time.
func (k *consolidation) plan(after time.Duration) {
	k.poll.at = k.Clock.Now.Add(after)
	k.Clock.Add(k.poll.at, engine.Disrupt, 0, 0, 0)
}

// conclude ends a search. Its command, if any, is validated later.
func (k *consolidation) conclude() {
	k.disruptor.Settle(k.Clock.Now, &k.state)
	if k.command != nil {
		k.plan(validationDelay)
		return
	}
	k.pause()
}

// pause plans the next evaluation after one that found nothing.
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

// idle reports whether an evaluation would find nothing, because the last one had no candidates and
// nothing has changed since. Karpenter still evaluates every ten seconds in this case.
func (k *consolidation) idle() bool {
	return k.command == nil && k.disruptor.Idle() && (k.due == 0 || k.Clock.Now < k.due) &&
		len(k.tracker.changed) == 0 && !k.reread && k.seen == k.state.Changes()
}

// cluster returns the state on which Karpenter's decisions are based.
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

// A karpenterView implements karpenter.View for a run.
type karpenterView struct{ *consolidation }

// Price returns the price that Karpenter assumes for a market, or 0 if the market is not offered.
func (v karpenterView) Price(pool policy.PoolID, m policy.MarketID) policy.Money {
	if p, ok := v.provisioner.believed(pool, m); ok {
		return p
	}
	return 0
}

// LastPodEvent returns the time of the last pod event of a node.
func (v karpenterView) LastPodEvent(n policy.NodeID) policy.Time { return v.tracker.lastPodEvent(n) }

// NominatedUntil returns the time until which a pod's nomination protects a node. The nomination is
// renewed while the pod waits.
func (v karpenterView) NominatedUntil(n policy.NodeID) policy.Time {
	if v.Nodes.State[n].Nominated > 0 {
		return v.Clock.Now.Add(v.tracker.nominationWindow())
	}
	return v.tracker.of[n].nominatedUntil
}

// Offers returns the possible replacements of each pool: of both capacity types if one NodePool
// allows both, of Spot if the whole pool may be Spot, and otherwise on-demand. (A pool whose share
// is in between is two NodePools in the cluster, of which the Spot one is full.)
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
			k.offers.until = k.Clock.Now + 1 // its remaining capacity changes with any node
		}
	}
	return k.offers.list, k.offers.version
}

// replacements appends the offers of nodes with which Karpenter may replace others to list.
func (k *consolidation) replacements(list []placement.Offer) []placement.Offer {
	for _, h := range k.provisioner.listHalves() {
		pool := &k.Pools.All[h.pool]
		limits := pool.Limits
		pool.Limits = policy.Resources{} // Pools returns them
		if share := k.Pools.State[h.pool].Share; h.second || k.Pools.State[h.pool].Mixed {
			list = k.provisioner.addHalf(list, h)
		} else if !k.Pools.State[h.pool].Divided() { // otherwise, its Spot NodePool is full
			list = k.provisioner.addOffers(list, h.pool, h.id, share >= 1, share < 1)
		}
		pool.Limits = limits
	}
	return list
}

// Pools returns the requirements of the NodePools without the given nodes.
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

// CapacityTypes returns the capacity types that a NodePool of a pool allows.
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

// PodsVersion returns a number that changes with the pods of a node.
func (v karpenterView) PodsVersion(n policy.NodeID) uint64 { return v.tracker.of[n].podsVersion }

// carryOut carries out a command: it launches the replacement, if any, and starts to drain the
// candidates. It returns false, and drains nothing, if the launch is refused.
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
