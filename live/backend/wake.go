package backend

// Reasons for requesting a step, as one word for the log and the metrics.
const (
	WakeLateNotice    = "late-notice"  // a notice arrived after its reclaim time
	WakeLost          = "lost-node"    // the provider has reclaimed a node
	WakeNotice        = "notice"       // the provider will reclaim a node within minutes
	WakeOutbid        = "outbid"       // a notice that a higher bid takes a node
	WakePools         = "pool-changed" // a CapacityPool was changed or deleted
	WakeRebalance     = "rebalance"    // the provider recommends leaving a node
	WakeRefused       = "refused"      // the provider had no capacity
	WakeState         = "state-change" // a machine stops or terminates
	WakeUnschedulable = "unschedulable"
)
