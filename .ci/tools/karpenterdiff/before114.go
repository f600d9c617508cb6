//go:build karpenter112 || karpenter113

package main

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/karpenter/pkg/controllers/disruption"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	"sigs.k8s.io/karpenter/pkg/controllers/state"

	"github.com/spotter-dev/spotter/sim/karpenter"
)

func (c *cluster) newProvisioner() *provisioning.Provisioner {
	return provisioning.NewProvisioner(c.client, silence{}, c.provider, c.state, c.clock)
}

func (c *cluster) newScheduler(pods []*corev1.Pod, nodes state.StateNodes,
	how ...scheduling.Options) (*scheduling.Scheduler, error) {
	return c.provisioner.NewScheduler(c.ctx, pods, nodes, how...)
}

// candidates lists those of a method.
func (c *cluster) candidates(_ *State, method disruption.Method, q *disruption.Queue) ([]*disruption.Candidate, error) {
	return disruption.GetCandidates(c.ctx, c.state, c.client, silence{}, c.clock, c.provider, method.ShouldDisrupt,
		method.Class(), q)
}

// skips reports whether a method passes over a candidate of its own: all but emptiness
// pass over empty ones.
func (c *cluster) skips(m karpenter.Method, x *disruption.Candidate) bool {
	return m != karpenter.Emptiness && c.method(karpenter.Emptiness, nil).ShouldDisrupt(c.ctx, x)
}
