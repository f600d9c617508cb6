package policy

// Resources is a set of quantities that a pod requests or a node offers.
type Resources struct {
	// CPU is in milli-CPU.
	CPU int64

	// Memory is in bytes.
	Memory int64

	// Storage is ephemeral storage in bytes.
	Storage int64

	// GPU is the number of whole devices of the resource named in the GPUResource of the pod or the
	// instance type.
	GPU int64

	// Pods is a number of pods: 1 for a pod, the pod limit for a node.
	Pods int64
}

// Plus returns the sum of r and x.
func (r Resources) Plus(x Resources) Resources {
	return Resources{r.CPU + x.CPU, r.Memory + x.Memory, r.Storage + x.Storage, r.GPU + x.GPU, r.Pods + x.Pods}
}

// Minus returns r minus x; a component may become negative.
func (r Resources) Minus(x Resources) Resources {
	return Resources{r.CPU - x.CPU, r.Memory - x.Memory, r.Storage - x.Storage, r.GPU - x.GPU, r.Pods - x.Pods}
}

// Scale returns r multiplied by n.
func (r Resources) Scale(n int64) Resources {
	return Resources{r.CPU * n, r.Memory * n, r.Storage * n, r.GPU * n, r.Pods * n}
}

// Max returns the maximum of each component.
func (r Resources) Max(x Resources) Resources {
	return Resources{max(r.CPU, x.CPU), max(r.Memory, x.Memory), max(r.Storage, x.Storage), max(r.GPU, x.GPU),
		max(r.Pods, x.Pods)}
}

// Min returns the minimum of each component.
func (r Resources) Min(x Resources) Resources {
	return Resources{min(r.CPU, x.CPU), min(r.Memory, x.Memory), min(r.Storage, x.Storage), min(r.GPU, x.GPU),
		min(r.Pods, x.Pods)}
}

// Within reports whether every component of r is at most that of x.
func (r Resources) Within(x Resources) bool {
	return r.CPU <= x.CPU && r.Memory <= x.Memory && r.Storage <= x.Storage && r.GPU <= x.GPU && r.Pods <= x.Pods
}

// LargestShare returns the largest fraction of a component of allocatable that r requests, in [0,
// ∞). Components that r does not request are ignored. If r requests a component that allocatable
// lacks, the result is 1e9, which exceeds every limit. Pods are ignored, because nodes are not
// bought for their pod slots.
func (r Resources) LargestShare(allocatable Resources) float64 {
	share := 0.0
	for _, c := range [...][2]int64{
		{r.CPU, allocatable.CPU}, {r.Memory, allocatable.Memory},
		{r.Storage, allocatable.Storage}, {r.GPU, allocatable.GPU},
	} {
		switch {
		case c[0] <= 0:
		case c[1] <= 0:
			return 1e9
		default:
			share = max(share, float64(c[0])/float64(c[1]))
		}
	}
	return share
}

// UtilizationTight is the utilization of a pool above which the default guardrails do not allow a
// node to be removed without a replacement. Policies do not plan drains that the guardrails would
// hold.
const UtilizationTight = 0.85
