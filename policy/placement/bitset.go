package placement

import (
	"math/bits"
	"slices"
)

// A bitset is a set of small non-negative integers. Operations on two sets require equal lengths.
type bitset []uint64

func newBitset(n int) bitset { return make(bitset, (n+63)/64) }

func (b bitset) set(i int32)         { b[i>>6] |= 1 << (i & 63) }
func (b bitset) clear(i int32)       { b[i>>6] &^= 1 << (i & 63) }
func (b bitset) has(i int32) bool    { return b[i>>6]&(1<<(i&63)) != 0 }
func (b bitset) equal(x bitset) bool { return slices.Equal(b, x) }

func (b bitset) empty() bool {
	for _, w := range b {
		if w != 0 {
			return false
		}
	}
	return true
}

// and keeps the elements that are in x, andNot those that are not in x.
func (b bitset) and(x bitset) {
	for i := range b {
		b[i] &= x[i]
	}
}

func (b bitset) andNot(x bitset) {
	for i := range b {
		b[i] &^= x[i]
	}
}

// meets reports whether b and x have an element in common.
func (b bitset) meets(x bitset) bool {
	for i := range b {
		if b[i]&x[i] != 0 {
			return true
		}
	}
	return false
}

// within reports whether b is a subset of x.
func (b bitset) within(x bitset) bool {
	for i := range b {
		if b[i]&^x[i] != 0 {
			return false
		}
	}
	return true
}

// next returns the smallest element that is not less than i, or -1 if there is no such element.
func (b bitset) next(i int32) int32 {
	w := int(i >> 6)
	if w >= len(b) {
		return -1
	}
	rest := b[w] &^ (1<<(i&63) - 1)
	for rest == 0 {
		if w++; w == len(b) {
			return -1
		}
		rest = b[w]
	}
	return int32(w<<6 + bits.TrailingZeros64(rest))
}
