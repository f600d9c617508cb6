// Package timeline stores a run so that its state at any instant can be shown again: nodes,
// markets, workloads, costs, events, and decisions with their reasons.
//
// A timeline is filled while its run is in progress, or read from a recording. Only one goroutine
// may fill it. Any number may concurrently read what is available.
package timeline
