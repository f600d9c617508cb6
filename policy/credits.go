package policy

// CPUCredits are the terms of a burstable type, on which its processors may be used for more
// than a part of the time. The zero value is a type that has none.
type CPUCredits struct {
	// Baseline is the CPU that a node may use all the time, in thousandths of a vCPU. A node
	// that uses less earns credits, at most those of 24 hours of the whole baseline.
	Baseline int64 `json:",omitempty"`

	// Surplus is the price of an hour of one vCPU beyond the baseline and the credits earned.
	Surplus Money `json:",omitempty"`

	// Standard reports whether a node without credits is slowed down to its baseline in place
	// of being charged, and Launch is how many minutes of one vCPU it then starts with.
	Standard bool  `json:",omitempty"`
	Launch   int64 `json:",omitempty"`
}

// A CPUUse is what all pods of a cluster use and request: CPU in thousandths of a core, memory
// in bytes.
type CPUUse struct{ Used, Requested, Memory int64 }

// EstimateUse writes into s what the replicas that workloads have now use and request.
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

// surplus returns what a node of t is expected to pay per hour for CPU beyond its baseline when
// it is as full of pods as it can be, and they use what those of the whole cluster do. A node
// that is slowed down has the price of the CPU that it lacks, though no bill has it.
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
