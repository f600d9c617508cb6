// Package live runs the decision engine in a cluster. It runs driver.Step repeatedly: when a plan
// requests it, and at once after an event.
//
// It contains the parts that all backends share: permission to act (the lease, the mode, the ramp,
// the kill switch), the state that survives restarts, records, and reports to the user. The
// packages below it contain the actions of each backend on its nodes.
//
// The package makes no decisions. It either carries out the plan of a policy, or holds a part of it
// for a reason that is counted, recorded on the pool and explained in a sentence.
package live
