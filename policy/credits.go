package policy

// CPUCredits are the terms of a burstable type, whose CPUs may be fully used only for a part of the
// time. The zero value means a type that is not burstable.
type CPUCredits struct {
	// Baseline is the CPU that a node may use continuously, in thousandths of a vCPU. A node that
	// uses less earns credits, at most the baseline of 24 hours.
	Baseline int64 `json:",omitempty"`

	// Surplus is the price of an hour of one vCPU beyond the baseline and the credits earned.
	Surplus Money `json:",omitempty"`

	// Standard reports whether a node without credits is slowed down to its baseline instead of
	// being charged. Launch is the number of vCPU-minutes that such a node starts with.
	Standard bool  `json:",omitempty"`
	Launch   int64 `json:",omitempty"`
}

// A CPUUse is the usage and requests of all pods of a cluster: CPU in thousandths of a core, memory
// in bytes.
type CPUUse struct{ Used, Requested, Memory int64 }

// EstimateUse sets s.Use to the usage and requests of the present replicas of all workloads.
func (s *Snapshot) EstimateUse() {
	s.Use = CPUUse{}
	for i := range s.Templates {
		t := &s.Templates[i]
		if t.Workload < 0 || int(t.Workload) >= len(s.Workloads) {
			continue
		}
		n := int64(s.Workloads[t.Workload].Replicas)
		s.Use.Used += n * t.CPUUse
		s.Use.Requested += n * t.Requests.CPU
		s.Use.Memory += n * t.Requests.Memory
	}
}

// surplus returns the expected hourly charge of a node of t for CPU beyond its baseline, if it is
// as full of pods as possible and they use as much of their requests as those of the whole cluster.
// For a node that is slowed down instead, it is the price of the CPU that the node lacks, although
// that is never billed.
func (u *CPUUse) surplus(t *InstanceType) Money {
	if t.Credits.Baseline == 0 || u.Used == 0 || u.Requested == 0 {
		return 0
	}
	full := float64(t.Allocatable.CPU)
	if u.Memory > 0 {
		full = min(full, float64(t.Allocatable.Memory)/float64(u.Memory)*float64(u.Requested))
	}
	used := min(full/float64(u.Requested)*float64(u.Used), float64(1000*t.VCPU))
	return t.Credits.Surplus.Times(max(0, used-float64(t.Credits.Baseline)) / 1000)
}
