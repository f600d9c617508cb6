// Package cluster converts a running cluster to the types of the engine. An [Observer] receives the
// events of the informers of a controller-runtime manager and the reports of backends. It builds
// each [policy.Snapshot] from the changes since the last one.
//
// Events only mark objects as changed. When the next snapshot is built, one goroutine converts the
// objects that have changed or that depend on a change. The order in which informers deliver events
// therefore does not matter, and a pod that changes ten times between two steps is converted once.
package cluster
