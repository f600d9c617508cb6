// Package portable computes exponentials, logarithms, quantiles and hashes that have the same bits
// on every machine.
//
// The functions of package math are written in assembly for some processors and not for others, and
// a compiler may fuse a product and a sum into one operation that rounds once. Both change the last
// bit of a result, and a comparison of two such results can then differ between a laptop and a
// cluster. This package rounds every product by an explicit conversion before it is added. It uses
// only sums, products, quotients and bit operations, whose results IEEE 754 defines exactly.
// Results that end in a product are rounded as well, since a function may be inlined where its
// result is added.
package portable
