// Package generate draws synthetic prices.
//
// A [Law] is a model of prices of one kind: a walk with momentum, as AWS has set prices since 2017;
// an auction, as AWS held until then and Rackspace holds now; or a list that the provider changes
// on few dates, as Google and Azure do. [Presets] are laws fitted to recordings. [Generate] draws a
// trace from a law and a seed.
//
// A law contains statistics of all markets, such as quantiles, and no price of a single market. The
// properties of individual markets are drawn, so a trace from the law of a recording differs from
// that recording. Equal configurations result in equal traces on every machine. A longer trace
// starts with the same prices as a shorter one, and appending a market changes no other.
package generate
