// Package policy defines the data of a decision: the input [Snapshot], the output [Plan], the
// [Memory] that is carried from decision to decision, and the [Policy] that makes decisions. It
// contains no policy and no limits: these are in the packages below it.
//
// A decision is a function. Packages that decide do not read a clock, do I/O, draw random numbers,
// start goroutines or range over maps, so that any past decision can be replayed from its record.
package policy
