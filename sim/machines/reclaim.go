package machines

import (
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/weather"
	"github.com/spotter-dev/spotter/sim/engine"
)

// Reclaims carries out the reclaims, notices and recommendations of the provider.
type Reclaims struct {
	*Machines

	fates []fate // by node
}

// A fate is the planned loss of a node.
type fate struct {
	// reclaim is when the weather reclaims the node. outbid is when it ends because the market
	// price exceeds its bid at passed. 0 means never.
	reclaim, outbid, passed policy.Time

	counted bool // its reclaim is counted
	met     bool // the reclaim is in the market's experience
}

// planEnd plans the end of a node that was just launched: by the weather, by an auction price above
// its bid, and by the pool's expireAfter.
func (rc *Reclaims) planEnd(id policy.NodeID) {
	for len(rc.fates) <= int(id) {
		rc.fates = append(rc.fates, fate{})
	}
	rc.fates[id] = fate{}
	n, x, fate, gen := &rc.Nodes.All[id], &rc.of[id], &rc.fates[id], rc.Nodes.Gen(id)
	if p := &rc.Scenario.Pools[n.Pool]; p.ExpireAfter > 0 && p.Provisioner != policy.ProvisionerNone {
		rc.Clock.Add(rc.Clock.Now.Add(p.ExpireAfter), engine.NodeExpires, int32(id), 0, gen)
	}
	end := func(rec weather.Reclaim, outbid int32) policy.Time {
		if rec.Notice != 0 {
			rc.Clock.Add(max(rec.Notice, rc.Clock.Now), engine.NodeNotice, int32(id), outbid, gen)
		}
		rc.Clock.Add(rec.At, engine.NodeReclaimed, int32(id), 0, gen)
		return rec.At
	}
	if rec, ok := rc.Market.Reclaim(n.Market, x.slot); ok {
		fate.reclaim = end(rec, 0)
	}
	// A node may have both: its zone may fail while it waits for its end after it was outbid. The
	// earlier one takes the node, and each has its own notice.
	if lost, passed, ok := rc.Market.Outbid(n.Market, x.slot, n.Launched, n.Bid); ok {
		fate.outbid, fate.passed = end(lost, 1), passed
	}
	if at, ok := rc.Market.Recommendation(n.Market, x.slot); ok {
		rc.Clock.Add(max(at, rc.Clock.Now), engine.NodeRecommendation, int32(id), 0, gen)
	}
}

// announced publishes the notice of a loss that planEnd has planned.
func (rc *Reclaims) announced(id policy.NodeID, outbid bool) {
	at := rc.fates[id].reclaim
	if outbid {
		at = rc.fates[id].outbid
	}
	rc.notice(id, at)
}

// notice records that the provider will take a node at the given time. It has no effect if an
// earlier or equal time was announced.
func (rc *Reclaims) notice(id policy.NodeID, at policy.Time) {
	n := &rc.Nodes.All[id]
	if rc.of[id].billed || n.ReclaimAt != 0 && n.ReclaimAt <= at {
		return
	}
	rc.Nodes.Announce(id, at)
	rc.interrupt(id)
	rc.noteReclaim(id)
	if rc.Metered() {
		rc.Result.Notices++
	}
	rc.Log.Add(rc.Clock.Now, engine.RecordNotice, n.Name, "", int64(n.ReclaimAt))
	rc.Noticed.Publish(id)
}

func (rc *Reclaims) recommend(id policy.NodeID) {
	n := &rc.Nodes.All[id]
	if n.Recommended != 0 || rc.of[id].billed {
		return
	}
	rc.Nodes.Recommend(id)
	if rc.Metered() {
		rc.Result.Recommendations++
	}
	rc.Log.Add(rc.Clock.Now, engine.RecordRecommended, n.Name, "", 0)
	rc.Recommended.Publish(id)
}

// Reclaim reclaims a node. The cluster notices the loss after a delay.
func (rc *Reclaims) Reclaim(id policy.NodeID) {
	n := &rc.Nodes.All[id]
	if rc.of[id].billed {
		return
	}
	rc.interrupt(id)
	if rc.Metered() {
		rc.Result.Reclaims++
	}
	rc.Reclaimed.Publish(id)
	rc.Log.Add(rc.Clock.Now, engine.RecordReclaimed, n.Name, rc.Scenario.Markets[n.Market].Name, 0)
	rc.Removals.stop(id)
	rc.Nodes.Lose(id)
	rc.Clock.Add(rc.Clock.Now.Add(rc.Delays.Detect), engine.NodeGone, int32(id), 0, rc.Nodes.Gen(id))
}

// interrupt counts an interruption of a node by the provider, once: at its notice or, without a
// notice, at its reclaim. A node that is drained and terminated in time counts as interrupted but
// not as reclaimed.
func (rc *Reclaims) interrupt(id policy.NodeID) {
	n, x := &rc.Nodes.All[id], &rc.fates[id]
	if x.counted {
		return
	}
	x.counted = true
	outbid := x.passed != 0 && rc.Clock.Now >= x.passed
	if rc.Metered() {
		rc.Result.Interruptions++
		if outbid {
			rc.Result.Outbid++
		}
	}
	if outbid {
		rc.Log.Add(rc.Clock.Now, engine.RecordOutbid, n.Name, rc.Scenario.Markets[n.Market].Name, int64(n.Bid))
	}
}

// noteReclaim adds the loss of a node to the experience of its market, once: at its notice, or
// otherwise when the cluster notices the loss.
func (rc *Reclaims) noteReclaim(id policy.NodeID) {
	if rc.fates[id].met {
		return
	}
	rc.fates[id].met = true
	rc.Market.Reclaimed(rc.Nodes.All[id].Market)
}
