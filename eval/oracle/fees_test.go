package oracle

import (
	"testing"

	"github.com/spotter-dev/spotter/eval/evaltest"
	"github.com/spotter-dev/spotter/policy"
)

// TestOracleFees: a node costs its fees too, those of the cheapest pool that may buy it.
func TestOracleFees(t *testing.T) {
	w := evaltest.Scenario("w", 0) // 4 pods on 2 nodes: on demand $0.10 an hour, spot $0.04, 24 h
	w.Pools[0].Fees = policy.NodeFees{Fee: 20_000, Volumes: 5000}
	near(t, "on spot", Of(w).Cost, policy.Dollars(2*24*0.065))
	near(t, "on demand", Of(w).OnDemand, policy.Dollars(2*24*0.125))
	other := w.Pools[0]
	other.ID, other.Name, other.Fees = 1, "z", policy.NodeFees{Volumes: 10_000}
	w.Pools = append(w.Pools, other)
	near(t, "in the cheaper of two pools", Of(w).Cost, policy.Dollars(2*24*0.05))
}
