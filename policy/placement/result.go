package placement

// A Result is OK if a pod fits a node, or identifies the filter that rejected it.
type Result uint8

// The results, in the order in which kube-scheduler runs its filters.
const (
	// OK means that the pod may be bound to the node.
	OK Result = iota

	// NoNode means that the slot is empty or the node is being deleted.
	NoNode

	// NotReady means that the node is launching or not ready.
	NotReady

	// Unschedulable means that the node is being drained.
	Unschedulable

	// Tainted means that the node has a NoSchedule or NoExecute taint that the pod does not
	// tolerate.
	Tainted

	// Unselected means that the node selector or the required node affinity does not match.
	Unselected

	// PortTaken means that a host port is in use.
	PortTaken

	// TooManyPods and the following results mean that too little of a resource is free.
	TooManyPods
	NoCPU
	NoMemory
	NoStorage
	NoGPU

	// NoExtended means that too little of an extended resource is free.
	NoExtended

	// ClaimTaken means that a ReadWriteOncePod claim is in use.
	ClaimTaken

	// VolumesFull means that no more volumes can be attached.
	VolumesFull

	// OtherZone means that the pod's volumes are in another zone.
	OtherZone

	// Skewed means that a topology spread constraint would be violated.
	Skewed

	// Lonely means that required pod affinity matches no pod in the node's domain.
	Lonely

	// Repelled means that the pod's own anti-affinity matches a pod in the node's domain.
	// RepelledByPod means that the anti-affinity of a pod in that domain matches this pod.
	Repelled
	RepelledByPod
)

// String returns a short description for logs.
func (v Result) String() string {
	return [...]string{
		"ok", "no such node", "node not ready", "node unschedulable", "untolerated taint",
		"node affinity", "host port taken", "too many pods", "insufficient cpu",
		"insufficient memory", "insufficient ephemeral storage", "insufficient gpu", "insufficient extended resource",
		"claim taken", "too many volumes", "volume in another zone", "topology spread",
		"pod affinity", "pod anti-affinity", "anti-affinity of a running pod",
	}[v]
}
