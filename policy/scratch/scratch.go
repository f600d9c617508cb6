// Package scratch reuses memory from one decision to the next.
package scratch

import "slices"

// Zeroed returns n zero values, in the memory of x where that is enough.
func Zeroed[T any](x []T, n int) []T {
	x = slices.Grow(x[:0], n)[:n]
	clear(x)
	return x
}
