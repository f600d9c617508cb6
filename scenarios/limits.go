package scenarios

import (
	"fmt"
	"time"
)

// The limits on the size of a scenario. They are far above the size of existing clusters, and
// prevent a typing error from exhausting memory.
const (
	// podsMax is the maximum number of simultaneous pods of one workload.
	podsMax = 100_000

	// completionsMax is the maximum number of pods that must finish for one job.
	completionsMax = 1_000_000

	// nodesMax is the maximum number of nodes in one entry of spec.nodes.
	nodesMax = 20_000

	// durationLeast is the minimum metered duration, which is also the minimum for which a node is
	// billed.
	durationLeast = time.Minute

	// durationMost is the maximum of the warm-up and of the metered duration.
	durationMost = 10 * 365 * 24 * time.Hour
)

// outside returns the reason why n is not in [least, most], or "" if it is.
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
