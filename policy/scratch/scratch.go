// Package scratch reuses memory from one decision to the next.
package scratch

import "slices"

// Zeroed returns a slice of n zero values. It uses the memory of x if its capacity is sufficient.
func Zeroed[T any](x []T, n int) []T {
	x = slices.Grow(x[:0], n)[:n]
	clear(x)
	return x
}
