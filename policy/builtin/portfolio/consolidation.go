package portfolio

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/workload"
)

// emptyOnly reports whether the provisioner is to remove empty nodes only. It moves
// pods sooner than repack and without weighing what that costs, so it is left to do so
// while what is wasted, on the nodes where that pays for their pods to move, costs more
// an hour than
//
//	(loss of every node, one at a time) / Holding  +  shocks an hour × what one costs
//
// which is what it costs if each node is emptied once in the time that a saving lasts,
// as if it were lost, and if packing the pool closer has it meet shocks in full. Nor
// may it where that would take a service down which no disruption budget protects, or
// where capacity was paid for in advance, of which a provisioner knows nothing.
func (d *planState) emptyOnly() bool {
	if !d.tidies() {
		return false
	}
	paid := func(id policy.MarketID) bool { return d.e.cover.Covers(id) }
	if slices.ContainsFunc(d.pool.Markets, paid) || d.unprotected() {
		return true
	}
	nodes := float64(d.lossPerNode*float64(d.demand.CPU)) / 1000
	shocks := float64(d.shockRate() * d.shock(d.memory.Shocks.Depth))
	return d.wasted() <= nodes/d.e.cfg.Holding.Hours()+shocks
}

// unprotected reports whether a service without a disruption budget has more pods on
// one node of the pool than it can spare: a provisioner evicts them all at once.
func (d *planState) unprotected() bool {
	s := d.s
	type place struct {
		node     policy.NodeID
		template policy.TemplateID
	}
	count := make(map[place]int32)
	for i := range s.Pods {
		p := &s.Pods[i]
		t := &s.Templates[p.Template]
		if p.Node < 0 || t.Workload < 0 || t.DaemonSet || len(t.PDBs) > 0 || !d.holds(p) {
			continue
		}
		w := &s.Workloads[t.Workload]
		at := place{p.Node, p.Template}
		if count[at]++; w.Kind != policy.KindJob && count[at] > w.Replicas-workload.Required(s, t, w.Replicas) {
			return true
		}
	}
	return false
}

// wasted returns what the pool's nodes cost an hour above what their pods need, in
// dollars. It counts what a node costs above the least part that a move has to save,
// and above what it costs to move its pods: each is missed while it starts elsewhere,
// at Disturbance times its own worth, however its workload is divided into pods.
func (d *planState) wasted() float64 {
	s := d.s
	used, moves := make([]policy.Resources, len(s.Nodes)), make([]float64, len(s.Nodes))
	for i := range s.Pods {
		p := &s.Pods[i]
		t := &s.Templates[p.Template]
		if p.Node < 0 || p.Phase == policy.PodGone || p.Phase == policy.PodTerminating || t.DaemonSet {
			continue
		}
		used[p.Node] = used[p.Node].Plus(t.Requests)
		startup := t.Startup
		if startup == 0 {
			startup = usualStartup
		}
		moves[p.Node] += float64(d.e.cfg.Disturbance*d.e.values[p.Template]) * (startup + restartDelay).Hours()
	}
	sum := 0.0
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Pool != d.pool.ID || !n.Usable() || n.Market < 0 {
			continue
		}
		spot := s.Markets[n.Market].Capacity == policy.Spot || d.share >= 1 // of what a node in its place would be
		worth, cost := d.appraise(spot), d.keeping(n)
		sum += max(0, cost-worth.of(used[i])-float64(d.e.cfg.Edge*cost)-moves[i]/d.e.cfg.Holding.Hours())
	}
	return sum
}
