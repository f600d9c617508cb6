// Package policy holds the data of a decision: the [Snapshot] that goes in, the
// [Plan] that comes out, the [Memory] that is carried between the two, and the
// [Policy] that turns one into the other. It knows no policy and no limit: these
// are in the packages below it.
//
// A decision is a function. No package that decides reads a clock, does I/O, draws
// a random number, starts a goroutine or ranges over a map, so that any decision
// ever taken can be taken again from its record.
package policy
