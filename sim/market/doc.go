// Package market simulates the provider: the prices of nodes, the capacity of markets, the reclaims
// of nodes, and the experience of the cluster with each market. It knows nodes only as slots, and
// does not know pods.
package market
