// Package engine is the clock of a simulated run: the queue of what is still to
// happen, and the hashed log of what has happened. It knows what kinds of events
// and records there are, since they have an order and numbers, and nothing of what
// they do.
package engine
