package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/driver"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/sim/engine"
	"github.com/spotter-dev/spotter/sim/machines"
)

// errThrottled is the error of a cloud API call that fails because of a fault of the scenario.
var errThrottled = errors.New("request limit exceeded (ordered by the scenario)")

// ErrLeastSize is the error of a drain whose group is at its minimum size: the group would replace
// the terminated node.
var ErrLeastSize = errors.New("its group is at its least size")

// An Actuator carries out the decisions of a policy about pools and nodes.
type Actuator struct {
	*Controller
}

// Steer sets what a pool buys from now on. The change takes effect at once.
func (ac *Actuator) Steer(_ context.Context, s *policy.Snapshot, x *policy.Steer) error {
	p := &ac.Pools.State[x.Pool]
	p.Mixed = x.Mixed && (ac.Scenario.Pools[x.Pool].Provisioner == policy.ProvisionerKarpenter ||
		ac.Prepared.Group(x.Pool) != nil)
	p.Share, p.Exact, p.Fallback, p.Bid, p.EmptyOnly, p.Allowed = x.Share, x.Exact, x.Fallback, x.Bid, x.EmptyOnly, nil
	if x.Markets != nil {
		p.Allowed = make([]bool, len(s.Markets))
		for _, m := range x.Markets {
			p.Allowed[m] = true
		}
	}
	pool := &ac.Pools.All[x.Pool]
	pool.Limits = steered(pool.Limits, ac.Scenario.Pools[x.Pool].Limits, x.Limits)
	pool.Steer = x.State(ac.Clock.Now)
	ac.Log.Add(ac.Clock.Now, engine.RecordSteer, pool.Name, "", int64(x.Share*65536))
	ac.karpenter.Steered()
	ac.autoscaler.Want()
	return nil
}

// steered returns limits with the components that are set in wanted. No component exceeds the
// user's own limit.
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

// choiceOf returns the index of the label choice that matches the node that a launch replaces, or
// 0.
func (ac *Actuator) choiceOf(l *policy.Launch) int {
	own := ac.Prepared.Own(l.Pool)
	if own == nil || l.Replaces == policy.None {
		return 0
	}
	was := ac.Nodes.All[l.Replaces].Labels
	for _, o := range ac.Prepared.Offers[l.Pool] {
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

// Launch launches one node. A token that was already used has no effect.
func (ac *Actuator) Launch(_ context.Context, s *policy.Snapshot, l *policy.Launch) error {
	if _, done := ac.Launches.Tokens[l.Token]; done {
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
	if ac.Market.CallFails() {
		return errThrottled
	}
	var fit []policy.MarketID
	pool := &ac.Pools.All[l.Pool]
	for _, m := range l.Markets {
		if machines.Allowed(pool.Limits, pool.Used, ac.Scenario.Types[ac.Scenario.Markets[m].Type].Capacity) {
			fit = append(fit, m)
		}
	}
	if len(fit) == 0 || ac.Pools.Full(l.Pool, nil) {
		return fmt.Errorf("the limits of the pool are reached: %w", driver.ErrNoCapacity)
	}
	if !slices.ContainsFunc(fit, func(m policy.MarketID) bool { return !ac.Away(l.Pool, m) }) {
		ac.Pools.Refuse(l.Pool, fit)
		ac.Serving.RefusedMarkets(l.Pool, fit)
		return fmt.Errorf("a zonal shift leads away from the zone: %w", driver.ErrNoCapacity)
	}
	if fit = ac.Pools.Affordable(l.Pool, fit); len(fit) == 0 {
		return fmt.Errorf("a node costs more than maxPrice of the pool, %s an hour: %w", pool.PriceMax.Short(),
			driver.ErrNoCapacity)
	}
	bid := l.Bid
	if s.Markets[l.Markets[0]].Auction() {
		if bid <= 0 {
			return fmt.Errorf("market %s is an auction, and the launch has no bid", s.Markets[l.Markets[0]].Name)
		}
		bid = pool.Bid(bid)
	}
	if ac.autoscaler.Serves(l.Pool) {
		return ac.autoscaler.Launch(l.Pool, fit, l.Token)
	}
	if _, ok := ac.Pools.BuyAt(l.Pool, fit, bid, ac.choiceOf(l), l.Token); !ok {
		ac.Serving.RefusedMarkets(l.Pool, fit)
		return driver.ErrNoCapacity
	}
	return nil
}

// Drain starts to drain a node. It is not an error if the node is already being drained.
func (ac *Actuator) Drain(_ context.Context, _ *policy.Snapshot, d *policy.Drain) error {
	n := &ac.Nodes.All[d.Node]
	if n.Phase == policy.NodeGone {
		return nil
	}
	if n.Phase < policy.NodeInitialized {
		return fmt.Errorf("node %s is not initialized", n.Name)
	}
	if n.ActedBy != policy.ActorNone && n.ActedBy != policy.ActorUs && n.ReclaimAt == 0 {
		return fmt.Errorf("node %s is being handled by %v", n.Name, n.ActedBy)
	}
	if n.ReclaimAt == 0 && !ac.Drains.Drained(d.Node) && !ac.autoscaler.MayLose(d.Node) {
		return fmt.Errorf("node %s: %w", n.Name, ErrLeastSize)
	}
	ac.Drains.SetGentle(d.Node, d.Gentle)
	ac.Drains.Start(d.Node, slices.Clone(d.After), d.Deadline, policy.ActorUs)
	return nil
}

// DeletionCost sets the deletion cost of the pods of a node, by which their workloads choose the
// pods to delete.
func (ac *Actuator) DeletionCost(_ context.Context, s *policy.Snapshot, x *policy.DeletionCost) error {
	if ac.Market.CallFails() {
		return errThrottled
	}
	changed := false
	for _, id := range ac.Space.Pods(x.Node) {
		if !x.Ranks(s, &ac.Pods.All[id]) {
			continue
		}
		ac.Pods.SetDeletionCost(id, x.Cost)
		changed = true
	}
	if changed {
		ac.Log.Add(ac.Clock.Now, engine.RecordDeletionCost, ac.Nodes.All[x.Node].Name, "", int64(x.Cost))
	}
	return nil
}
