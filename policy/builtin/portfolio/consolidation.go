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
// may it in a pool of jobs with deadlines, of which it would move one that has no time for it,
// where that would take a service down which no disruption budget protects, where
// capacity was paid for in advance, of which a provisioner knows nothing, or where a part
// of the pool is to be on demand: it would replace that by spot again and again.
func (g *steering) emptyOnly() bool {
	if !g.consolidates() {
		return false
	}
	paid := func(id policy.MarketID) bool { return g.e.cover.Covers(id) }
	if g.choice.share > 0 && g.choice.share < 1 || slices.ContainsFunc(g.pool.Markets, paid) || g.waiting.jobs.dueOnly || g.unprotected() {
		return true
	}
	nodes := float64(g.losses.perNode*float64(g.demand.total.CPU)) / 1000
	shocks := float64(g.reclaims.shockRate() * g.losses.shock(1, g.memory.Shocks.Depth))
	return !g.wastes(nodes/g.e.cfg.Holding.Hours() + shocks)
}

// unprotected reports whether a service without a disruption budget has more pods on
// one node of the pool than it can spare: a provisioner evicts them all at once.
func (g *steering) unprotected() bool {
	s := g.s
	spare := make([]int32, len(s.Templates)) // on one node
	bare, least := false, int32(math.MaxInt32)
	for i := range s.Templates {
		t := &s.Templates[i]
		if spare[i] = math.MaxInt32; t.Workload < 0 || t.DaemonSet || len(t.PDBs) > 0 {
			continue
		}
		if w := &s.Workloads[t.Workload]; w.Kind != policy.KindJob {
			spare[i], bare = w.Replicas-workload.Required(s, t, w.Replicas), true
			least = min(least, spare[i])
		}
	}
	if !bare {
		return false
	}
	count := make([]int32, len(s.Templates))
	for i := range g.e.nodes.all {
		if g.e.nodes.all[i].pool != g.pool.ID || g.e.pods.sets[i].mates <= least {
			continue
		}
		pods := g.e.pods.on(policy.NodeID(i))
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
// what their pods need. Of each node the least part that a move has to save does not count,
// nor what it costs to move its pods: each is missed, at what it is worth in Disturbance,
// however its workload is divided into pods.
func (g *steering) wastes(dollars float64) bool {
	s := g.s
	moves := make([]float64, len(s.Templates)) // of a pod
	for i := range s.Templates {
		moves[i] = float64(g.e.losses.values[i] * g.e.cfg.Disturbance.Hours())
	}
	alike := g.alike(moves)
	known := make([]knownWaste, len(g.e.classes.list)) // by class
	sum := 0.0
	for i := 0; i < len(g.e.nodes.all) && sum <= dollars; i++ {
		n := &g.e.nodes.all[i]
		if n.pool != g.pool.ID || !n.usable || n.market < 0 {
			continue
		}
		class := g.e.classes.of[i]
		if class < 0 || g.e.classes.list[class].kind < 0 || !alike[g.e.classes.list[class].kind] {
			sum += g.wasted(policy.NodeID(i), moves)
			continue
		}
		x := &known[class]
		if !x.known {
			*x = knownWaste{g.wasted(policy.NodeID(i), moves), true}
		}
		sum += x.dollars
	}
	return sum > dollars
}

// A knownWaste is what a node of a class wastes, once it is known.
type knownWaste struct {
	dollars float64
	known   bool
}

// alike reports by kind whether it costs the same to move pods of all its templates, and all may
// go to Spot or none.
func (g *steering) alike(moves []float64) []bool {
	alike := make([]bool, len(moves))
	for i, x := range g.e.pods.needs {
		same := moves[i] == moves[x.kind] && g.demand.fixed[i] == g.demand.fixed[x.kind]
		alike[x.kind] = int(x.kind) == i || alike[x.kind] && same
	}
	return alike
}

// wasted returns what node id costs an hour above what its pods need and what it costs to move
// them, at least nothing.
func (g *steering) wasted(id policy.NodeID, moves []float64) float64 {
	s, n := g.s, &g.e.nodes.all[id]
	used, move := policy.Resources{}, 0.0
	for _, p := range g.e.pods.on(id) {
		if p.phase != policy.PodTerminating {
			used = used.Plus(s.Templates[p.template].Requests)
			move += moves[p.template]
		}
	}
	spot := s.Markets[n.market].Capacity == policy.Spot || g.choice.share >= 1 // of what a node in its place would be
	value, cost := g.prices.worth(id, used, spot), g.prices.keepingIn(n.market)
	return max(0, cost-value-float64(g.e.cfg.Edge*cost)-move/g.e.cfg.Holding.Hours())
}
