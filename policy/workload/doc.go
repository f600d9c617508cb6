// Package workload derives from a Snapshot the requirements of the pods of a pool: their startup
// time, the cost of an outage, how many of them may be disrupted at once, and the Spot share that
// is safe for them.
//
// The features and the safety rules are those of the SpotVortex agent (c8c8027). There are two
// variants: a compatible one that reproduces the agent exactly, and a fixed one in which a pool
// without disruption budgets is unconstrained instead of frozen.
package workload
