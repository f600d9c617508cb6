package groups

import "time"

// These settings of the Cluster Autoscaler are the defaults in
// cluster-autoscaler/config/flags/flags.go, version 1.35. Groups follow its documentation for AWS:
// the AZRebalance process and capacity rebalancing are off, since both let a group terminate
// instances without regard to PodDisruptionBudgets.
const (
	// No node is deleted for delayAfterAdd after a group grew, and for delayAfterFailure after a
	// node could not be emptied.
	delayAfterAdd, delayAfterFailure = 10 * time.Minute, 3 * time.Minute

	// evictionMax is how long evictions are tried before the drain of a node is given up.
	evictionMax = 2 * time.Minute

	// provisionMax is the time within which an instance must register. capacityCheck is the time
	// after which a group is known to be unable to launch its desired instances.
	provisionMax, capacityCheck = 15 * time.Minute, time.Minute

	// A group that failed is not grown for firstBackoff, and twice as long after each further
	// failure, up to longestBackoff. The first failure after backoffReset without one starts again with
	// firstBackoff.
	firstBackoff, longestBackoff, backoffReset = 5 * time.Minute, 30 * time.Minute, 3 * time.Hour

	// groupHealth is the time after which a group replaces an instance that is gone, groupRetry the
	// time after which it repeats a refused launch.
	groupHealth, groupRetry = time.Minute, time.Minute
)
