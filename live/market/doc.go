// Package market stores the data about the markets in which a cluster can buy: instance types,
// zones, prices and their history, published signals, and the cluster's own observations. A [Book]
// stores all of it and copies it into snapshots. A [Feed] provides it: the EC2 API ([NewAWS]), a
// folder that "spotter trace record" fills ([NewFolder]), or the price list of an auction.
//
// Feeds are read in parallel, each at its own interval. If a feed fails, the data of its earlier
// reports remains. A price is known up to the time of the last report that contained its market. A
// market is no longer offered once this time is more than [Config.StaleAfter] ago, so that nothing
// is bought at an unknown price. Its last price is still used for the accounts of the nodes that
// run there: an unknown price is never 0.
//
// Identifiers change only in [Book.Fill]. A caller that calls Fill, Choose and Find from one
// goroutine therefore uses a consistent set of identifiers.
package market
