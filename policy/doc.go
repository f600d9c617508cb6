// Package policy holds what a decision is made of: the [Snapshot] that goes
// in, the [Plan] that comes out, the [Memory] that is carried between the two,
// and the [Policy] that turns one into the other.
//
// A decision is a function. Nothing in this package or below it reads a clock,
// does I/O, draws a random number, starts a goroutine or ranges over a map: so
// any decision ever taken can be taken again from its record.
package policy
