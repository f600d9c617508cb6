// Package engine contains the clock of a simulated run, the queue of future events and the hashed
// log of past ones. It defines the kinds of events and records, since these have an order and
// numbers, but not what they do.
package engine
