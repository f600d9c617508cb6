// Package timeline keeps a run so that any instant of it can be shown again:
// nodes, markets, workloads, costs, what happened and what was decided and why.
//
// A timeline is filled while its run is in progress, or read from a recording. One goroutine fills
// it. Any number may read what is available.
package timeline
