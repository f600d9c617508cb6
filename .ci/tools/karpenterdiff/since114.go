//go:build !karpenter112 && !karpenter113

package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/controllers/disruption"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/state/cost"

	"github.com/spotter-dev/spotter/sim/karpenter"
)

func (c *cluster) newProvisioner() *provisioning.Provisioner {
	return provisioning.NewProvisioner(c.client, silence{}, c.provider, c.state, c.clock, nil, nil)
}

func (c *cluster) newScheduler(pods []*corev1.Pod, nodes state.StateNodes,
	how ...scheduling.Options) (*scheduling.Scheduler, error) {
	return c.provisioner.NewScheduler(c.ctx, pods, nodes, sets.New[types.UID](), how...)
}

// candidates lists those of a method, which learns what it needs of pools.
func (c *cluster) candidates(s *State, method disruption.Method, q *disruption.Queue) ([]*disruption.Candidate, error) {
	cc, err := c.costs(s)
	if err != nil {
		return nil, fmt.Errorf("adding up costs: %w", err)
	}
	list, totals, err := disruption.GetCandidatesWithTotals(c.ctx, c.state, c.client, silence{}, c.clock, c.provider,
		method.ShouldDisrupt, method.Class(), q, cc)
	if x, ok := method.(disruption.NodePoolTotalsSetter); ok && len(list) > 0 {
		x.SetNodePoolTotals(totals)
	}
	return list, err
}

// costs is what Karpenter knows of the cost of pools.
func (c *cluster) costs(s *State) (*cost.ClusterCost, error) {
	cc := cost.NewClusterCost(c.ctx, c.provider, c.client)
	for i := range s.Nodes {
		var claim v1.NodeClaim
		if err := c.client.Get(c.ctx, types.NamespacedName{Name: s.Nodes[i].Name}, &claim); err != nil {
			return nil, err
		}
		if err := cc.UpdateNodeClaim(c.ctx, &claim); err != nil {
			return nil, err
		}
	}
	return cc, nil
}

// skips reports whether a method passes over a candidate of its own: none does.
func (c *cluster) skips(karpenter.Method, *disruption.Candidate) bool { return false }
