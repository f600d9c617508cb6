// Package workload reads from a Snapshot what the pods of a pool ask of the
// nodes under them: how fast they start, what an outage costs them, how much of
// them may be disrupted at once, and from these how large a spot share is safe.
//
// The features and the safety rules are those of the SpotVortex agent (c8c8027).
// They come in two readings: compatible, to the letter, and mended, in which a
// pool without disruption budgets is unconstrained instead of frozen.
package workload
