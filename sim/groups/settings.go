package groups

import (
	"time"

	ca "github.com/spotter-dev/spotter/sim/autoscaler"
)

// Settings are those of the Cluster Autoscaler and of the Auto Scaling groups that it works on. All
// pools of its kind share them.
type Settings struct {
	// Options are what its decisions depend on.
	ca.Options

	// DelayAfterAdd and DelayAfterFailure are how long no node is released after groups grew, and
	// after a node could not be emptied.
	DelayAfterAdd, DelayAfterFailure time.Duration

	// EvictionMax is how long evictions are tried before a node is given up.
	EvictionMax time.Duration

	// ProvisionMax is how long an instance may take to join. CapacityCheck is
	// how long it takes to see that a group cannot launch what it is to hold.
	ProvisionMax, CapacityCheck time.Duration

	// A group that failed is not grown for BackoffMin, and twice as long after each further
	// failure, up to BackoffMax. After BackoffReset without a failure it starts again with
	// BackoffMin.
	BackoffMin, BackoffMax, BackoffReset time.Duration

	// GroupHealth is how long a group takes to replace an instance that is gone,
	// and GroupRetry how long it waits after a refused launch.
	GroupHealth, GroupRetry time.Duration
}

// DefaultSettings returns the defaults of the Cluster Autoscaler
// (cluster-autoscaler/config/flags/flags.go, version 1.35) and of groups as its documentation for AWS advises:
// with the AZRebalance process and capacity rebalancing off, since both let a
// group terminate instances without asking a disruption budget. Similar groups
// are not balanced.
func DefaultSettings() Settings {
	return Settings{
		Options: ca.DefaultOptions(), DelayAfterAdd: 10 * time.Minute, DelayAfterFailure: 3 * time.Minute, EvictionMax: 2 * time.Minute,
		ProvisionMax: 15 * time.Minute, CapacityCheck: time.Minute,
		BackoffMin: 5 * time.Minute, BackoffMax: 30 * time.Minute, BackoffReset: 3 * time.Hour,
		GroupHealth: time.Minute, GroupRetry: time.Minute,
	}
}
