// Package generate draws synthetic prices.
//
// A [Law] says how prices of one kind behave: a walk with momentum, as AWS has
// set them since 2017, an auction, as AWS held until then and Rackspace holds
// now, or a list that the provider changes on few dates, as of Google and
// Azure. [Presets] are laws that were fitted to recordings. [Generate] draws a trace from a law and a seed.
//
// A law holds figures of the whole, such as quantiles over markets, and no
// price of any market. What belongs to a market is drawn, so a trace from a
// law of a recording is not that recording. Equal configurations give equal
// traces on every machine; a longer one begins as a shorter one does, and a
// market that is added at the end changes no other.
package generate
