// Package fake imitates AWS at the wire, for tests: a server that speaks the query protocol
// of EC2 and the JSON protocol of the price list, and serves the file of the Spot Instance
// Advisor.
//
// It holds a [State], which is the truth, and answers as [Faults] say: in small pages
// behind tokens that expire, with rows repeated or in any order, throttled, failing, cut
// short. The faults of the n-th request follow from a seed. Each action has a file of its
// own.
package fake
