package sim

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/sim/engine"
)

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
