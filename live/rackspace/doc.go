// Package rackspace buys nodes at Rackspace Spot, whose markets are auctions, and
// gives them back. No provisioner stands between.
//
// # One node pool for each node
//
// The API knows node pools, with a server class, a bid and a wanted number of
// nodes, and does not take the name of the machine of a pool that is to go: a pool made
// smaller loses any of them. So every node has a pool of its own, of one node. To
// give that node back is to delete its pool, which names the very machine and may
// be done twice.
//
// # The ledger
//
// Each order is a SpotNode, written before the order is placed, and both names
// follow from the token: what is asked for again is the same object and the same
// pool. A SpotNode whose order nobody saw through is looked up by that name and
// adopted or removed, and a pool without its SpotNode is adopted: nothing is
// bought twice and nothing runs unseen.
//
// # Who writes
//
// [Backend.Run] reads, on every replica and in every mode. Only the calls of the
// contract and [Backend.Pass], which the leader makes, write.
package rackspace
