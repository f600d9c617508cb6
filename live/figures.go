package live

import "github.com/spotter-dev/spotter/policy"

// figures count the nodes of a pool.
type figures struct {
	nodes, spot, onDemand int32

	// saving is the difference between the on-demand price and the price of its nodes, per hour.
	saving policy.Money
}

// countPools counts the nodes of each pool, by PoolID.
func countPools(s *policy.Snapshot) []figures {
	all := make([]figures, len(s.Pools))
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Pool < 0 || !n.Live() || n.Market < 0 {
			continue
		}
		f, x := &all[n.Pool], &s.Markets[n.Market]
		f.nodes++
		if x.Capacity == policy.Spot {
			f.spot++
		} else {
			f.onDemand++
		}
		if x.Offered && x.OnDemand > 0 {
			f.saving += x.OnDemand - x.Charge()
		}
	}
	return all
}
