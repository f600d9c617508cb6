// Package live runs the decision engine in a cluster. It repeats driver.Step over the cluster: when
// a plan requests it, and at once after an event.
//
// It holds what is the same for all backends: who may act (the lease, the mode, the
// ramp, the kill switch), what is remembered across restarts, what was saved, and
// what is reported to the user. What a backend does to its nodes is in the packages
// below.
//
// Nothing here decides. What a policy planned is carried out, or it is not, for a
// reason that is counted, recorded on the pool and said in a sentence.
package live
