package policy

// Resources is an amount of what a pod requests or a node offers. The zero value is nothing.
type Resources struct {
	// CPU is in thousandths of a core.
	CPU int64

	// Memory is in bytes.
	Memory int64

	// Storage is ephemeral storage in bytes.
	Storage int64

	// GPU is in whole devices of the resource that the pod or the instance type names in
	// GPUResource.
	GPU int64

	// Pods is a number of pods: one for a pod, the pod limit for a node.
	Pods int64
}

// Plus returns the sum of r and x.
func (r Resources) Plus(x Resources) Resources {
	return Resources{r.CPU + x.CPU, r.Memory + x.Memory, r.Storage + x.Storage, r.GPU + x.GPU, r.Pods + x.Pods}
}

// Minus returns r less x; a component may become negative.
func (r Resources) Minus(x Resources) Resources {
	return Resources{r.CPU - x.CPU, r.Memory - x.Memory, r.Storage - x.Storage, r.GPU - x.GPU, r.Pods - x.Pods}
}

// Scale returns r taken n times.
func (r Resources) Scale(n int64) Resources {
	return Resources{r.CPU * n, r.Memory * n, r.Storage * n, r.GPU * n, r.Pods * n}
}

// Max returns the larger amount of each component.
func (r Resources) Max(x Resources) Resources {
	return Resources{max(r.CPU, x.CPU), max(r.Memory, x.Memory), max(r.Storage, x.Storage), max(r.GPU, x.GPU),
		max(r.Pods, x.Pods)}
}

// Min returns the smaller amount of each component.
func (r Resources) Min(x Resources) Resources {
	return Resources{min(r.CPU, x.CPU), min(r.Memory, x.Memory), min(r.Storage, x.Storage), min(r.GPU, x.GPU),
		min(r.Pods, x.Pods)}
}

// Within reports whether every component of r is at most that of x.
func (r Resources) Within(x Resources) bool {
	return r.CPU <= x.CPU && r.Memory <= x.Memory && r.Storage <= x.Storage && r.GPU <= x.GPU && r.Pods <= x.Pods
}

// LargestShare returns the largest share that r takes of one component of allocatable, in [0, ∞).
// A component that r does not request is ignored; one that r requests and allocatable lacks gives a
// share above every limit (1e9). Pods are left out: nodes are not bought for their pod slots.
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

// UtilizationTight is the share of a pool in use above which guardrails let no node go
// without a replacement, unless configured otherwise. Policies plan no drain that they
// would hold.
const UtilizationTight = 0.85
