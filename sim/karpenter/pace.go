package karpenter

import (
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// The maximum durations of Karpenter's searches (multinodeconsolidation.go,
// singlenodeconsolidation.go).
const (
	multiTimeout  = time.Minute
	singleTimeout = 3 * time.Minute
)

// A pace computes how long Karpenter takes for simulations of scheduling. This is time on the
// simulated clock and independent of the running time of this program.
//
// The constants fit the processor time of Karpenter 1.14.1 for a candidate whose pods fit nowhere,
// as printed by karpenterdiff -measure. The pods had no constraints: pods with topology spread,
// affinity or preferences take longer.
//
//	nodes  pods/node  pools  types of a pool  ms, measured  ms, here
//	   30         10      1               50           9.6       9.0
//	  100         10      1               50          18.9      19.2
//	  300         10      1               50          48.6      48.4
//	  100          3      1               50           9.3      10.1
//	  100         30      1               50          26.8      27.1
//	  100         10      5               50          16.3      19.7
//	  100         10     20               50          21.3      21.7
//	  100         10      1              200          26.8      32.1
//	  100         10      1              600          66.5      66.5
type pace struct {
	nodes  int // number of existing nodes
	common int // number of pods in every simulation

	// pools is the number of NodePools that can launch a node now, types the number of their
	// instance types, summed over NodePools.
	pools, types int
	version      uint64 // version of the offers that were counted
	counted      map[sold]struct{}
}

// sold is an instance type that a NodePool can launch.
type sold struct {
	pool policy.PoolID
	typ  policy.TypeID
}

// The duration of a simulation: a constant part, a part for each node and NodePool, and a part for
// each pod and node or instance type.
const (
	perSimulation = 200 * time.Microsecond
	perNode       = 58 * time.Microsecond
	perPool       = 130 * time.Microsecond
	perPodNode    = 8800 * time.Nanosecond
	perPodType    = 8600 * time.Nanosecond

	// Each pod after the first podsFull is placed on an already planned node, which takes podsLater
	// percent of the time.
	podsFull, podsLater = 10, 30
)

// begin computes the common quantities of the simulations of an evaluation.
func (p *pace) begin(c *Cluster, d *Disruptor) {
	p.nodes, p.common = len(c.Order), len(c.Pending)
	for _, n := range d.nodes.going {
		p.common += len(c.Space.Pods(n))
	}
	b := &d.simulator.batch
	if p.version != 0 && p.version == b.OffersVersion {
		return
	}
	if p.version = b.OffersVersion; p.counted == nil {
		p.counted = make(map[sold]struct{})
	}
	clear(p.counted)
	p.pools = 0
	for i := range b.Offers {
		if i == 0 || b.Offers[i].Pool != b.Offers[i-1].Pool {
			p.pools++
		}
		p.counted[sold{b.Offers[i].Pool, c.Markets[b.Offers[i].Market].Type}] = struct{}{}
	}
	p.types = len(p.counted)
}

// simulation returns how long Karpenter takes to simulate the removal of the candidates.
func (p *pace) simulation(c *Cluster, candidates []Candidate) time.Duration {
	pods := p.common
	for i := range candidates {
		pods += len(c.Space.Pods(candidates[i].Node))
	}
	pods = min(pods, podsFull) + max(pods-podsFull, 0)*podsLater/100
	perPod := time.Duration(p.nodes)*perPodNode + time.Duration(p.types/max(p.pools, 1))*perPodType
	return perSimulation + time.Duration(p.nodes)*perNode + time.Duration(p.pools)*perPool + time.Duration(pods)*perPod
}
