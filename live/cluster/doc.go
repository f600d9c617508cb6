// Package cluster reads a running cluster as the engine takes it: an [Observer] is fed
// by the informers of a controller-runtime manager and by what backends report, and
// builds a [policy.Snapshot] from what has changed since the last.
//
// Events only note which objects are new; objects are read as engine types when the
// next snapshot is built, in one goroutine, and only those that changed or that
// depend on what changed. So the order in which informers deliver does not matter,
// and a pod that changes ten times between two steps is read once.
package cluster
