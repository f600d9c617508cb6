// Package market keeps what is known of the markets that a cluster can buy in:
// instance types, zones, prices and their history, published signals, what the
// cluster itself met. A [Book] holds it all and writes it
// into snapshots; a [Feed] brings it: the EC2 API ([NewAWS]), a folder that
// "spotter trace record" fills ([NewFolder]), the price list of an auction.
//
// Feeds are read in parallel, each at its own pace, and a feed that fails leaves the data that it
// reported before. A price is known up to the last reading that named its market.
// [Config.StaleAfter] later the market is no longer offered, so that nothing is bought at an
// unknown price. Its last price is still used for the accounts of the nodes that run there: an
// unknown price is never 0.
//
// Identifiers change only within [Book.Fill], so that who calls Fill, Choose and
// Find from one goroutine sees one set of them throughout.
package market
