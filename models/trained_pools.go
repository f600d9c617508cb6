package models

import (
	"fmt"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/scratch"
	"github.com/spotter-dev/spotter/policy/workload"
)

// valued contains reusable memory for the values of actions.
type valued struct {
	asked  []policy.PoolID
	in     []float32
	out    [][]float32
	counts []int // nodes by pool, zone and type
	rows   PoolRows
}

// Assumptions of the SpotVortex agent.
const (
	stepMinutes = 10   // between two of its steps
	stepsMax    = 100  // since the last move, also if there was no move
	hopeless    = -1e3 // if no value is larger, no value is trusted
)

// valuePools sets the values of each pool's actions. A pool whose market is out of scope, or has no
// price, has no values.
func (f *Trained) valuePools(s *policy.Snapshot, memory *policy.Memory) error {
	v, net := &f.pools, f.bundle.Actions
	if net.Model.Features == PoolFeaturesQ {
		return f.valueOwn(s, memory)
	}
	features := workload.Collect(s, workload.Options{}, &f.scratch)
	v.count(s)
	v.asked, v.in = v.asked[:0], v.in[:0]
	for i := range s.Pools {
		p := &s.Pools[i]
		p.Actions = nil
		if p.Mode == policy.ModeOff {
			continue
		}
		m := f.standsFor(s, p)
		if m == nil {
			f.counts.Unvalued++
			continue
		}
		row := make([]float32, net.Width)
		f.pool(s, p, m, &features[i], memory).Row(row)
		v.in, v.asked = append(v.in, row...), append(v.asked, p.ID)
	}
	return f.askPools(s)
}

// askPools values the actions of the pools whose rows were built.
func (f *Trained) askPools(s *policy.Snapshot) error {
	v, net := &f.pools, f.bundle.Actions
	rows := len(v.asked)
	if rows == 0 {
		return nil
	}
	net.Model.Normalisation.normalise(v.in)
	v.out = net.space(v.out, rows)
	if err := f.actions.Run(rows, v.in, v.out); err != nil {
		f.counts.Unvalued += rows
		return fmt.Errorf("valuing the actions of %d pools: %w", rows, err)
	}
	var failed error
	for i, id := range v.asked {
		values := make([]float64, ActionCount)
		best := hopeless
		sound := true
		for k, x := range v.out[0][i*ActionCount : (i+1)*ActionCount] {
			values[k] = float64(x)
			best = max(best, values[k])
			sound = sound && finite(values[k])
		}
		if !sound || best <= hopeless {
			f.counts.Unvalued++
			failed = fmt.Errorf("%s: its values %v of pool %s cannot be trusted", net.Model.Graph, values, s.Pools[id].Name)
			continue
		}
		f.counts.Valued++
		s.Pools[id].Actions = values
	}
	return failed
}

// pool returns the input of the features of p. The cost of moving a node is that of the agent's
// formula.
func (f *Trained) pool(s *policy.Snapshot, p *policy.Pool, m *policy.Market, w *workload.Features,
	memory *policy.Memory) *PoolState {
	x := &PoolState{
		Market: *f.market(s, m), Capacity: m.Forecast.Capacity, Runtime: m.Forecast.Runtime,
		Startup: w.Startup, Penalty: w.Penalty, Utilization: w.Utilization, Steps: stepsMax,
		Spot: 2*w.SpotNodes > w.Nodes, Share: w.Share(),
	}
	x.MigrationCost = w.Startup / 3600 * max(0, x.Market.OnDemand-x.Market.Spot) * w.Utilization * 2
	x.Target = x.Share
	was := memory.Pool(p.Name)
	if was.HasTarget {
		x.Target = was.Target
	}
	if was.Moved > 0 {
		x.Steps = min(stepsMax, s.Now.Sub(was.Moved).Minutes()/stepMinutes)
	}
	return x
}

// count counts the nodes of each pool by zone and type.
func (v *valued) count(s *policy.Snapshot) {
	v.counts = scratch.Zeroed(v.counts, len(s.Pools)*len(s.Zones)*len(s.Types))
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Pool >= 0 && n.Market >= 0 && n.Usable() {
			m := &s.Markets[n.Market]
			v.counts[(int(n.Pool)*len(s.Zones)+int(m.Zone))*len(s.Types)+int(m.Type)]++
		}
	}
}

// standsFor returns the scored Spot market of p with the most nodes of p in its type and zone.
// Ties, including markets without nodes, go to the market that is cheaper per vCPU. It returns nil
// if no market of p was scored.
func (f *Trained) standsFor(s *policy.Snapshot, p *policy.Pool) *policy.Market {
	var best *policy.Market
	most, least := -1, 0.0
	for _, id := range p.Markets {
		m := &s.Markets[id]
		if m.Capacity != policy.Spot || m.Forecast.Source != policy.SourceModel || !m.Offered || !f.kinds[m.Type].covered {
			continue
		}
		n := f.pools.counts[(int(p.ID)*len(s.Zones)+int(m.Zone))*len(s.Types)+int(m.Type)]
		price := m.Charge().Float() / float64(max(1, s.Types[m.Type].VCPU))
		if n > most || n == most && price < least {
			best, most, least = m, n, price
		}
	}
	return best
}
