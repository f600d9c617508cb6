package sim

import (
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
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

// Prices returns the market prices of m over the run, price ramps in them and
// policy.NoPrice where it is not offered. They are not to be written.
func (s *Stage) Prices(m policy.MarketID) scenarios.PriceCurve { return s.prices[m] }

// World returns what the stage is of. It is not to be written.
func (s *Stage) World() *scenarios.World { return s.world }

// Span returns when warm-up begins, and what is metered.
func (s *Stage) Span() (begin policy.Time, metered billing.Span) { return s.begin, s.window }

// InGPUs reports whether sizes are counted in GPUs, since every pool has them, and
// not in vCPUs.
func (s *Stage) InGPUs() bool { return s.gpuWorld }
