// Package market is the provider of a simulated run: what nodes cost, which markets
// have some to give, when a node is taken and what the cluster has met so far. It knows
// nothing of nodes but their slots, and nothing of pods.
package market
