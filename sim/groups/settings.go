package groups

import "time"

// The settings of the Cluster Autoscaler that concern more than one of its looks are the defaults of
// cluster-autoscaler/config/flags/flags.go, version 1.35. Groups are as its documentation for AWS
// advises: with the AZRebalance process and capacity rebalancing off, since both let a group
// terminate instances without asking a disruption budget.
const (
	// No node is released for delayAfterAdd after groups grew, and for delayAfterFailure after a node
	// could not be emptied.
	delayAfterAdd, delayAfterFailure = 10 * time.Minute, 3 * time.Minute

	// evictionMax is how long evictions are tried before a node is given up.
	evictionMax = 2 * time.Minute

	// provisionMax is how long an instance may take to join. capacityCheck is how long it takes to see
	// that a group cannot launch what it is to hold.
	provisionMax, capacityCheck = 15 * time.Minute, time.Minute

	// A group that failed is not grown for backoffMin, and twice as long after each further failure, up
	// to backoffMax. After backoffReset without a failure it starts again with backoffMin.
	backoffMin, backoffMax, backoffReset = 5 * time.Minute, 30 * time.Minute, 3 * time.Hour

	// groupHealth is how long a group takes to replace an instance that is gone, and groupRetry how long
	// it waits after a refused launch.
	groupHealth, groupRetry = time.Minute, time.Minute
)
