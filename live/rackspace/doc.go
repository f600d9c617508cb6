// Package rackspace is the backend for Rackspace Spot, whose markets are auctions: it buys nodes
// and releases them without a provisioner.
//
// # One node pool for each node
//
// The API has node pools, each with a server class, a bid and a desired number of nodes. It cannot
// remove a particular machine of a pool: when a pool shrinks, any of its machines may be removed.
// So every node has its own pool with one machine. Releasing the node means deleting its pool,
// which removes exactly that machine and is idempotent.
//
// # The ledger
//
// Each order is a SpotNode that is written before the order is placed. The names of the SpotNode
// and of the node pool are derived from the token, so a repeated request results in the same
// objects. If the result of the order of a SpotNode is unknown, the node pool is looked up by its
// name, and the order is adopted or removed. A node pool without a SpotNode is adopted. So nothing
// is bought twice, and no machine runs unobserved.
//
// # Writes
//
// [Backend.Run] only reads, on every replica and in every mode. Only the methods of
// [backend.Backend] and [Backend.Pass], which the leader calls, write.
package rackspace
