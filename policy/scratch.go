package policy

import "slices"

// Zeroed returns n zeros, in the memory of x where that is enough: for what is filled
// anew in each step.
func Zeroed[T any](x []T, n int) []T {
	x = slices.Grow(x[:0], n)[:n]
	clear(x)
	return x
}
