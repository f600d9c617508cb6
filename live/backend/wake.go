package backend

// Why a step is wanted soon, in one word for the log and the metrics.
const (
	WakeLateNotice    = "late-notice"  // a warning came when its time was over
	WakeLost          = "lost-node"    // the provider has reclaimed a node
	WakeNotice        = "notice"       // the provider reclaims a node within minutes
	WakeOutbid        = "outbid"       // a warning that a higher bid takes a node
	WakePools         = "pool-changed" // a user has changed the modes of pools
	WakeRebalance     = "rebalance"    // the provider recommends to leave a node
	WakeRefused       = "refused"      // the provider had no machine
	WakeState         = "state-change" // a machine stops or ends
	WakeUnschedulable = "unschedulable"
)
