// Package workload reads from a Snapshot what the pods of a pool require of their nodes: how fast
// they start, what an outage costs them, how many of them may be disrupted at once, and from these
// how large a Spot share is safe.
//
// The features and the safety rules are those of the SpotVortex agent (c8c8027). They have two
// variants: a compatible one, to the letter, and a fixed one, in which a pool without disruption
// budgets is unconstrained instead of frozen.
package workload
