// Package generate draws synthetic prices.
//
// A [Law] says how prices of one kind behave: a walk with momentum, as AWS has set prices
// since 2017; an auction, as AWS held until then and Rackspace holds now; or a list that the
// provider changes on few dates, as Google and Azure do. [Presets] are laws that were fitted
// to recordings. [Generate] draws a trace from a law and a seed.
//
// A law has statistics of all markets, such as quantiles, and no price of a single market.
// What is specific to a market is drawn, so a trace from the law of a recording is not that
// recording. Equal configurations give equal traces on every machine. A longer trace starts
// with the same prices as a shorter one, and a market that is added at the end changes no
// other.
package generate
