package scenarios

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// The bounds of what a scenario may ask for. They lie far beyond the clusters
// that exist, and keep a slip of the finger from filling the memory.
const (
	// podsMax is the most pods of one workload at once.
	podsMax = 100_000

	// completionsMax is the most pods that must finish for one job.
	completionsMax = 1_000_000

	// nodesMax is the most nodes of one line of spec.nodes.
	nodesMax = 20_000

	// durationLeast is the least time that a run can be metered. A node is
	// billed for no less.
	durationLeast = time.Minute

	// durationMost bounds the warm-up and the metered time.
	durationMost = 10 * 365 * 24 * time.Hour
)

// requestMax returns the most of a resource that a pod may ask for. Beyond it
// the sums over a cluster would leave the range of an integer, and a pod that
// fits nowhere would seem to fit everywhere.
func requestMax(k corev1.ResourceName) resource.Quantity {
	if k == corev1.ResourceMemory || k == corev1.ResourceEphemeralStorage {
		return resource.MustParse("1Pi")
	}
	return resource.MustParse("1M")
}

// outside says why n is not from least to most; it is empty when it is.
func outside(n, least, most int32) string {
	switch {
	case n < least && least == 0:
		return fmt.Sprintf("%d is negative", n)
	case n < least:
		return fmt.Sprintf("%d is not above %d", n, least-1)
	case n > most:
		return fmt.Sprintf("%d is more than %d", n, most)
	}
	return ""
}
