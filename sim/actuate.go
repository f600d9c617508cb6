package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/driver"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/sim/engine"
	"github.com/spotter-dev/spotter/sim/market"
)

// errThrottled is what a call of the cloud answers while a fault says so.
var errThrottled = errors.New("request limit exceeded (ordered by the scenario)")

// errLeastSize is why a node stays whose group may not become smaller: what is
// terminated there comes back.
var errLeastSize = errors.New("its group is at its least size")

// An actuator carries out what a policy decides about pools and nodes.
type actuator struct {
	*environment
	autoscaler    *autoscaler
	consolidation *consolidation
	drains        *drains
	groups        *scalingGroups
	karpenter     *karpenterProvisioner
	market        *market.Market
	nodes         *nodes
	launches      *launches
	pods          *pods
	pools         *pools
	queue         *schedulingQueue
	serving       *serving
	space         *placement.Space
}

// Steer sets what a pool buys from now on.
func (ac *actuator) Steer(_ context.Context, s *policy.Snapshot, x *policy.Steer) error {
	p := &ac.pools.state[x.Pool]
	p.mixed = x.Mixed && (ac.scenario.Pools[x.Pool].Provisioner == policy.ProvisionerKarpenter || ac.prepared.group(x.Pool) != nil)
	p.share, p.exact, p.fallback, p.bid, p.empty, p.allowed = x.Share, x.Exact, x.Fallback, x.Bid, x.EmptyOnly, nil
	if x.Markets != nil {
		p.allowed = make([]bool, len(s.Markets))
		for _, m := range x.Markets {
			p.allowed[m] = true
		}
	}
	ac.consolidation.offers.forget()
	pool := &ac.pools.all[x.Pool]
	pool.Limits = steered(pool.Limits, ac.scenario.Pools[x.Pool].Limits, x.Limits)
	pool.Steer = policy.SteerState{Set: true, Share: x.Share, Since: ac.q.Now}
	ac.log.Add(ac.q.Now, engine.RecordSteer, pool.Name, "", int64(x.Share*65536))
	if len(ac.queue.pending) > 0 {
		ac.karpenter.want()
	}
	ac.autoscaler.want()
	ac.consolidation.noteChange()
	return nil
}

// steered returns limits with the components that wanted sets, none of them
// above the user's own.
func steered(limits, user, wanted policy.Resources) policy.Resources {
	limits.CPU = bounded(limits.CPU, user.CPU, wanted.CPU)
	limits.Memory = bounded(limits.Memory, user.Memory, wanted.Memory)
	limits.GPU = bounded(limits.GPU, user.GPU, wanted.GPU)
	return limits
}

func bounded(limit, user, wanted int64) int64 {
	switch {
	case wanted == 0:
		return limit
	case user == 0:
		return wanted
	}
	return min(user, wanted)
}

// choiceOf returns the choice of labels of the node that a launch replaces, the first without one.
func (ac *actuator) choiceOf(l *policy.Launch) int {
	own := ac.prepared.own(l.Pool)
	if own == nil || l.Replaces == policy.None {
		return 0
	}
	was := ac.nodes.all[l.Replaces].Labels
	for _, o := range ac.prepared.offers[l.Pool] {
		if !slices.ContainsFunc(own.Choices, func(c scenarios.LabelChoice) bool {
			value, _ := policy.FindLabel(o.Labels, c.Key)
			old, _ := policy.FindLabel(was, c.Key)
			return value != old
		}) {
			return o.Choice
		}
	}
	return 0
}

// Launch buys one node, once for each token.
func (ac *actuator) Launch(_ context.Context, s *policy.Snapshot, l *policy.Launch) error {
	if _, done := ac.launches.tokens[l.Token]; done {
		return nil
	}
	if l.Token == "" || len(l.Markets) == 0 {
		return fmt.Errorf("launch without a token or a market")
	}
	for _, m := range l.Markets {
		if !slices.Contains(s.Pools[l.Pool].Markets, m) {
			return fmt.Errorf("market %s is not in the pool", s.Markets[m].Name)
		}
		if s.Markets[m].Capacity != s.Markets[l.Markets[0]].Capacity {
			return fmt.Errorf("markets %s and %s differ in capacity type", s.Markets[l.Markets[0]].Name, s.Markets[m].Name)
		}
	}
	if ac.market.CallFails() {
		return errThrottled
	}
	var fit []policy.MarketID
	pool := &ac.pools.all[l.Pool]
	for _, m := range l.Markets {
		if allowed(pool.Limits, pool.Used, ac.scenario.Types[ac.scenario.Markets[m].Type].Capacity) {
			fit = append(fit, m)
		}
	}
	if len(fit) == 0 || ac.pools.full(l.Pool, nil) {
		return fmt.Errorf("the limits of the pool are reached: %w", driver.ErrNoCapacity)
	}
	if !slices.ContainsFunc(fit, func(m policy.MarketID) bool { return !ac.away(l.Pool, m) }) {
		ac.pools.refuse(l.Pool, fit)
		ac.serving.refusedMarkets(l.Pool, fit)
		return fmt.Errorf("a zonal shift leads away from the zone: %w", driver.ErrNoCapacity)
	}
	if fit = ac.pools.affordable(l.Pool, fit); len(fit) == 0 {
		return fmt.Errorf("a node costs more than maxPrice of the pool, %s an hour: %w", pool.PriceMax.Short(), driver.ErrNoCapacity)
	}
	bid := l.Bid
	if s.Markets[l.Markets[0]].Auction() {
		if bid <= 0 {
			return fmt.Errorf("market %s is an auction, and the launch has no bid", s.Markets[l.Markets[0]].Name)
		}
		bid = pool.Bid(bid)
	}
	if ac.groups.serves(l.Pool) {
		return ac.groups.launch(l.Pool, fit, l.Token)
	}
	m, slot, ok := ac.market.Allocate(fit, bid, ac.launches.launched)
	if !ok {
		ac.pools.refuse(l.Pool, fit)
		ac.serving.refusedMarkets(l.Pool, fit)
		return driver.ErrNoCapacity
	}
	ac.launches.launch(order{l.Pool, m, slot, ac.choiceOf(l)}, l.Token, bid)
	return nil
}

// Drain begins to empty one node. It is no error to drain a node twice.
func (ac *actuator) Drain(_ context.Context, _ *policy.Snapshot, d *policy.Drain) error {
	n := &ac.nodes.all[d.Node]
	if n.Phase == policy.NodeGone {
		return nil
	}
	if n.Phase < policy.NodeInitialized {
		return fmt.Errorf("node %s is not initialized", n.Name)
	}
	if n.ActedBy != policy.ActorNone && n.ActedBy != policy.ActorUs && n.ReclaimAt == 0 {
		return fmt.Errorf("node %s is being handled by %v", n.Name, n.ActedBy)
	}
	if g := ac.groups.groupOf(d.Node); g != nil && n.ReclaimAt == 0 && ac.nodes.state[d.Node].drain < 0 && !ac.groups.maySpare(g) {
		return fmt.Errorf("node %s: %w", n.Name, errLeastSize)
	}
	ac.nodes.state[d.Node].gentle = d.Gentle
	ac.drains.start(d.Node, slices.Clone(d.After), d.Deadline, policy.ActorUs)
	return nil
}

// DeletionCost gives the pods of a node the cost by which their workloads choose
// what to delete.
func (ac *actuator) DeletionCost(_ context.Context, s *policy.Snapshot, x *policy.DeletionCost) error {
	if ac.market.CallFails() {
		return errThrottled
	}
	changed := false
	for _, id := range ac.space.Pods(x.Node) {
		if !x.Ranks(s, &ac.pods.all[id]) {
			continue
		}
		ac.pods.all[id].DeletionCost, changed = x.Cost, true
		ac.consolidation.tracker.notePods(x.Node)
		ac.pods.touch(id)
	}
	if changed {
		ac.log.Add(ac.q.Now, engine.RecordDeletionCost, ac.nodes.all[x.Node].Name, "", int64(x.Cost))
	}
	return nil
}
