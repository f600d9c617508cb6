// Package aws records the data that AWS publishes about the Spot market: every price of the last 90
// days, the on-demand prices, the placement scores and the interruption bands.
//
// A [Recorder] writes a trace, one file for each region and day. It first writes fetched data to a
// journal in the folder .record of the trace, and flushes each response to disk before the next
// request. It writes the files of the days only when all data is available, each under a temporary
// name before it is moved to its final name. A recorder that is killed at any moment therefore
// continues where it stopped and ends with the same bytes, and a second recording of the same span
// changes nothing.
//
// Prices are merged as a union: an event is valid whichever response contains it, so that pages may
// repeat, overlap or arrive in any order.
package aws
