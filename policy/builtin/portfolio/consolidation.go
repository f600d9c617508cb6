package portfolio

import (
	"math"
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
// may it where that would take a service down which no disruption budget protects, where
// capacity was paid for in advance, of which a provisioner knows nothing, or where a part
// of the pool is to be on demand: it would replace that by spot again and again.
func (d *planState) emptyOnly() bool {
	if !d.consolidates() {
		return false
	}
	paid := func(id policy.MarketID) bool { return d.e.cover.Covers(id) }
	if d.share > 0 && d.share < 1 || slices.ContainsFunc(d.pool.Markets, paid) || d.unprotected() {
		return true
	}
	nodes := float64(d.lossPerNode*float64(d.demand.CPU)) / 1000
	shocks := float64(d.shockRate() * d.shock(d.memory.Shocks.Depth))
	return !d.wastes(nodes/d.e.cfg.Holding.Hours() + shocks)
}

// unprotected reports whether a service without a disruption budget has more pods on
// one node of the pool than it can spare: a provisioner evicts them all at once.
func (d *planState) unprotected() bool {
	s := d.s
	spare := make([]int32, len(s.Templates)) // on one node
	bare := false
	for i := range s.Templates {
		t := &s.Templates[i]
		if spare[i] = math.MaxInt32; t.Workload < 0 || t.DaemonSet || len(t.PDBs) > 0 {
			continue
		}
		if w := &s.Workloads[t.Workload]; w.Kind != policy.KindJob {
			spare[i], bare = w.Replicas-workload.Required(s, t, w.Replicas), true
		}
	}
	if !bare {
		return false
	}
	count := make([]int32, len(s.Templates))
	for i := range s.Nodes {
		if s.Nodes[i].Pool != d.pool.ID {
			continue
		}
		pods := d.e.pods.on(policy.NodeID(i))
		for _, p := range pods {
			if p.phase == policy.PodTerminating {
				continue
			}
			if count[p.template]++; count[p.template] > spare[p.template] {
				return true
			}
		}
		for _, p := range pods {
			count[p.template] = 0
		}
	}
	return false
}

// wastes reports whether the pool's nodes cost an hour more than so many dollars above
// what their pods need. It counts what a node costs above the least part that a move has to save,
// and above what it costs to move its pods: each is missed while it starts elsewhere,
// at Disturbance times its own worth, however its workload is divided into pods.
func (d *planState) wastes(dollars float64) bool {
	s := d.s
	moves := make([]float64, len(s.Templates)) // of a pod, as long as it is missed
	for i := range s.Templates {
		startup := s.Templates[i].Startup
		if startup == 0 {
			startup = usualStartup
		}
		moves[i] = float64(d.e.cfg.Disturbance*d.e.values[i]) * (startup + restartDelay).Hours()
	}
	sum := 0.0
	worths := [...]worth{d.evaluate(false), d.evaluate(true)}
	for i := 0; i < len(s.Nodes) && sum <= dollars; i++ {
		n := &s.Nodes[i]
		if n.Pool != d.pool.ID || !n.Usable() || n.Market < 0 {
			continue
		}
		used, move := policy.Resources{}, 0.0
		for _, p := range d.e.pods.on(n.ID) {
			if p.phase != policy.PodTerminating {
				used = used.Plus(s.Templates[p.template].Requests)
				move += moves[p.template]
			}
		}
		spot := s.Markets[n.Market].Capacity == policy.Spot || d.share >= 1 // of what a node in its place would be
		worth, cost := &worths[of(spot)], d.keeping(n)
		sum += max(0, cost-worth.of(used)-float64(d.e.cfg.Edge*cost)-move/d.e.cfg.Holding.Hours())
	}
	return sum > dollars
}
