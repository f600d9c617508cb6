package sim

import (
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
)

// Charges returns what a node of market m is charged over time, price ramps and
// reserve price in it, and policy.NoPrice where nothing is offered. It is shared
// and not to be written.
func (s *Stage) Charges(m policy.MarketID) scenarios.PriceCurve {
	c := s.prices[m]
	return scenarios.PriceCurve{At: c.At, Price: charged(c.Price, s.world.Markets[m].Reserve)}
}

// PodValue returns what one pod of workload w is worth per hour; 0 for a
// DaemonSet, which nobody misses.
func (s *Stage) PodValue(w policy.WorkloadID) policy.Money { return s.podValue[w] }
