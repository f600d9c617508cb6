package scenarios

import (
	"fmt"
	"time"
)

// The limits of a scenario's sizes. They are far above those of existing clusters, and keep a
// typing error from exhausting memory.
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
