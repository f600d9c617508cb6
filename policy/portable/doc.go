// Package portable computes exponentials, logarithms, quantiles and hashes that have the
// same bits on every machine.
//
// The functions of package math are written in assembly for some processors
// and not for others, and a compiler may fuse a product and a sum into one
// operation that rounds once. Both move the last bit of a result; a comparison
// of two such results then decides differently on a laptop and in a cluster.
// Here every product is rounded by an explicit conversion before it is added,
// and nothing else but sums, products, quotients and bit operations is used,
// which IEEE 754 fixes to the bit. Results that end in a product are rounded as
// well, since a function may be inlined where its result is added.
package portable
