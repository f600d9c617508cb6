// Package rackspace buys nodes at Rackspace Spot, whose markets are auctions, and releases them. It
// uses no provisioner.
//
// # One node pool for each node
//
// The API has node pools, each with a server class, a bid and a wanted number of nodes. It cannot
// remove a given machine of a pool: a pool that is made smaller loses any of them. So every node
// has a pool of its own, of one node. To release that node is to delete its pool, which names
// exactly that machine and may be done twice.
//
// # The ledger
//
// Each order is a SpotNode, written before the order is placed, and both names follow from the
// token: a repeated request has the same object and the same pool. A SpotNode with an unfinished
// order is looked up by that name and adopted or removed, and a pool without its SpotNode is
// adopted: nothing is bought twice and nothing runs unobserved.
//
// # Who writes
//
// [Backend.Run] reads, on every replica and in every mode. Only the calls of the
// contract and [Backend.Pass], which the leader makes, write.
package rackspace
