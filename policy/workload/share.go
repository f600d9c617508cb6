package workload

import (
	"github.com/spotter-dev/spotter/policy"
)

// Units returns the size of n in vCPUs, or in GPUs if gpu is set. For a node whose market is
// unknown, this is derived from its allocatable resources.
func Units(s *policy.Snapshot, n *policy.Node, gpu bool) int64 {
	switch {
	case n.Market < 0 && gpu:
		return n.Allocatable.GPU
	case n.Market < 0:
		return (n.Allocatable.CPU + 999) / 1000
	case gpu:
		return s.Types[s.Markets[n.Market].Type].Capacity.GPU
	}
	return s.Types[s.Markets[n.Market].Type].VCPU
}

// hold adds n to the counts if it is initialized. It reports whether n is a Spot node.
func (f *Features) hold(s *policy.Snapshot, n *policy.Node, gpu bool) (spot bool) {
	spot = n.Market >= 0 && s.Markets[n.Market].Capacity == policy.Spot
	if n.Phase != policy.NodeInitialized {
		return spot
	}
	units := Units(s, n, gpu)
	f.Nodes++
	f.Units += units
	if spot {
		f.SpotNodes++
		f.SpotUnits += units
	}
	return spot
}
