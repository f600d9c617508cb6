// Package aws records what AWS publishes of the Spot market of an account:
// every price of the last 90 days, the on-demand prices, the placement scores
// and the interruption bands.
//
// A [Recorder] writes a trace, one file for each region and day. What it fetches goes first into a
// journal in the folder .record of that trace, and each response is flushed to disk before the next
// request. Only when all data is available are the files of the days written, each under another
// name and then moved to its own. A recorder that is killed at any moment therefore continues where
// it was and ends with the same bytes, and a second recording of a recorded span changes nothing.
//
// Prices are joined as a union: an event is a truth whichever answer brought
// it, so that pages may repeat, overlap or come in any order.
package aws
