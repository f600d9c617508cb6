// Package timeline keeps a run so that any instant of it can be shown again:
// nodes, markets, workloads, costs, what happened and what was decided and why.
//
// A timeline is filled while its run goes on, or read from a recording. One
// goroutine fills it; any number may read what is there.
package timeline
