package sim

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/scenarios/weather"
	"github.com/spotter-dev/spotter/sim/engine"
	"github.com/spotter-dev/spotter/sim/market"
)

// reclaims are what the provider takes, and says that it will take.
type reclaims struct {
	*environment
	nodes     *nodes
	decider   *decider
	karpenter *karpenterProvisioner
	market    *market.Market
	pods      *pods
	pools     *pools
	removals  *removals
	space     *placement.Space

	fates []fate // by node
}

// A fate is how the provider takes a node.
type fate struct {
	// reclaim is when the weather takes the node, and outbid when it is to go
	// since the market price passed its bid at passed; 0 is never.
	reclaim, outbid, passed policy.Time

	counted bool // its reclaim is counted
	met     bool // its reclaim is in the experience that snapshots show
}

// planEnd plans how the life of a node ends that was just launched: what the
// weather has for it, in an auction a price above its bid, and the pool's
// expireAfter.
func (rc *reclaims) planEnd(id policy.NodeID) {
	for len(rc.fates) <= int(id) {
		rc.fates = append(rc.fates, fate{})
	}
	rc.fates[id] = fate{}
	n, x, fate := &rc.nodes.all[id], &rc.nodes.state[id], &rc.fates[id]
	if p := &rc.scenario.Pools[n.Pool]; p.ExpireAfter > 0 && p.Provisioner != policy.ProvisionerNone {
		rc.q.Add(rc.q.Now.Add(p.ExpireAfter), engine.NodeExpires, int32(id), 0, x.gen)
	}
	end := func(rec weather.Reclaim, outbid int32) policy.Time {
		if rec.Notice != 0 {
			rc.q.Add(max(rec.Notice, rc.q.Now), engine.NodeNotice, int32(id), outbid, x.gen)
		}
		rc.q.Add(rec.At, engine.NodeReclaimed, int32(id), 0, x.gen)
		return rec.At
	}
	if rec, ok := rc.market.Reclaim(n.Market, x.slot); ok {
		fate.reclaim = end(rec, 0)
	}
	// Both may be due: a zone may fail while a node that was outbid waits for its
	// end. What comes first takes the node, and neither is announced by the other.
	if lost, passed, ok := rc.market.Outbid(n.Market, x.slot, n.Launched, n.Bid); ok {
		fate.outbid, fate.passed = end(lost, 1), passed
	}
	if at, ok := rc.market.Recommendation(n.Market, x.slot); ok {
		rc.q.Add(max(at, rc.q.Now), engine.NodeRecommendation, int32(id), 0, x.gen)
	}
}

// notice announces that the provider takes a node at an instant: earlier than it may
// have announced before.
func (rc *reclaims) notice(id policy.NodeID, at policy.Time) {
	n := &rc.nodes.all[id]
	if rc.nodes.state[id].billed || n.ReclaimAt != 0 && n.ReclaimAt <= at {
		return
	}
	n.NoticeAt, n.ReclaimAt = rc.q.Now, at
	rc.space.SetNode(n)
	rc.nodes.touch(id)
	rc.interrupt(id)
	rc.noteReclaim(id)
	if rc.q.Now >= rc.window.From {
		rc.result.Notices++
	}
	rc.log.Add(rc.q.Now, engine.RecordNotice, n.Name, "", int64(n.ReclaimAt))
	if rc.pools.state[n.Pool].mixed {
		rc.karpenter.interrupted(id)
	}
	rc.decider.plan(rc.q.Now)
}

func (rc *reclaims) recommend(id policy.NodeID) {
	n := &rc.nodes.all[id]
	if n.Recommended != 0 || rc.nodes.state[id].billed {
		return
	}
	n.Recommended = rc.q.Now
	rc.nodes.touch(id)
	if rc.q.Now >= rc.window.From {
		rc.result.Recommendations++
	}
	rc.log.Add(rc.q.Now, engine.RecordRecommended, n.Name, "", 0)
	rc.decider.plan(rc.q.Now)
}

// reclaim takes a node. Its pods serve no longer, but the cluster notices only
// after a while: until then its API, and so every snapshot, the scheduler and
// the provisioner, hold the node and its pods to be as they were.
func (rc *reclaims) reclaim(id policy.NodeID) {
	n, x := &rc.nodes.all[id], &rc.nodes.state[id]
	if x.billed {
		return
	}
	rc.interrupt(id)
	if rc.q.Now >= rc.window.From {
		rc.result.Reclaims++
		if rc.cfg.Sample > 0 {
			rc.result.Taken = append(rc.result.Taken, Taken{rc.q.Now, n.Market})
		}
	}
	rc.log.Add(rc.q.Now, engine.RecordReclaimed, n.Name, rc.scenario.Markets[n.Market].Name, 0)
	rc.removals.stop(id)
	x.lost = true
	for _, p := range slices.Clone(rc.space.Pods(id)) {
		rc.pods.strand(p)
	}
	rc.q.Add(rc.q.Now.Add(rc.delays.Detect), engine.NodeGone, int32(id), 0, x.gen)
}

// interrupt counts that the provider interrupts a node: once, at its notice or,
// without a notice, when it takes the node. A node that is drained and terminated
// in time is interrupted and not reclaimed.
func (rc *reclaims) interrupt(id policy.NodeID) {
	n, x := &rc.nodes.all[id], &rc.fates[id]
	if x.counted {
		return
	}
	x.counted = true
	outbid := x.passed != 0 && rc.q.Now >= x.passed
	if rc.q.Now >= rc.window.From {
		rc.result.Interruptions++
		if outbid {
			rc.result.Outbid++
		}
	}
	if outbid {
		rc.log.Add(rc.q.Now, engine.RecordOutbid, n.Name, rc.scenario.Markets[n.Market].Name, int64(n.Bid))
	}
}

// noteReclaim puts the loss of a node into the experience of its market, once:
// when it is announced, or else when the cluster has noticed it.
func (rc *reclaims) noteReclaim(id policy.NodeID) {
	if rc.fates[id].met {
		return
	}
	rc.fates[id].met = true
	rc.market.Reclaimed(rc.nodes.all[id].Market)
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
