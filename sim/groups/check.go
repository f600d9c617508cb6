package groups

import (
	"fmt"
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// CheckAll checks that the instance counts of Auto Scaling groups are right and do not exceed their
// desired sizes.
func (a *Autoscaler) CheckAll() error {
	if a.groups.of == nil {
		return nil
	}
	live := make([]int, len(a.groups.all))
	for i := range a.Nodes.All {
		n := &a.Nodes.All[i]
		if !a.Runs(n.ID) || a.Scenario.Pools[n.Pool].Provisioner != policy.ProvisionerClusterAutoscaler {
			continue
		}
		for g := range a.groups.all {
			if x := &a.groups.all[g]; x.pool == n.Pool && slices.Contains(x.markets, n.Market) {
				live[g]++
			}
		}
	}
	for g := range live {
		x := &a.groups.all[g]
		if x.live != live[g] || x.live > x.desired || x.desired < x.least {
			return fmt.Errorf("group %d of pool %s counts %d instances of %d, there are %d", g, a.Pools.All[x.pool].Name,
				x.live, x.desired, live[g])
		}
	}
	return nil
}
