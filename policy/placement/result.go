package placement

// A Result says that a pod fits a node, or which filter refused it.
type Result uint8

// The results, in the order in which kube-scheduler asks its filters.
const (
	// OK means that the pod may be bound to the node.
	OK Result = iota

	// NoNode means that the slot is empty or the node is being deleted.
	NoNode

	// NotReady means that the node is on its way, or that its kubelet fails.
	NotReady

	// Unschedulable means that the node is being emptied.
	Unschedulable

	// Tainted means a NoSchedule or NoExecute taint that is not tolerated.
	Tainted

	// Unselected means that node selector or required node affinity differ.
	Unselected

	// PortTaken means that a host port is in use.
	PortTaken

	// The resources of which too little is free.
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

	// Skewed means that a topology spread constraint would be broken.
	Skewed

	// Lonely means that required pod affinity finds no companion.
	Lonely

	// Repelled means that the pod's own anti-affinity finds a pod there, and
	// RepelledByPod that the anti-affinity of a pod there finds this one.
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
