package portable

import "math/bits"

// The primes of XXH64.
const (
	prime1 = 0x9E3779B185EBCA87
	prime2 = 0xC2B2AE3D27D4EB4F
	prime3 = 0x165667B19E3779F9
	prime4 = 0x85EBCA77C2B2AE63
	prime5 = 0x27D4EB2F165667C5
)

// Hash returns the 64-bit hash of b: XXH64 with seed 0, as specified in xxHash's
// doc/xxhash_spec.md. It is not secure against an adversary.
func Hash(b []byte) uint64 { return xxh64(b) }

// HashString returns the same hash as Hash for the bytes of s.
func HashString(s string) uint64 { return xxh64(s) }

// Mix returns a 64-bit number in which each bit depends on every bit of a and b. For a fixed a,
// different values of b give different results. It applies the finaliser of SplitMix64 (Steele, Lea
// and Flood 2014; constants of Stafford's variant 13) once to each argument.
func Mix(a, b uint64) uint64 { return finish(a ^ finish(b+0x9E3779B97F4A7C15)) }

func finish(z uint64) uint64 {
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

func xxh64[T string | []byte](b T) uint64 {
	h, n := uint64(prime5), len(b)
	i := 0
	if n >= 32 {
		h, i = stripes(b)
	}
	h += uint64(n)
	for ; i+8 <= n; i += 8 {
		h = bits.RotateLeft64(h^round(0, word(b, i)), 27)*prime1 + prime4
	}
	if i+4 <= n {
		h = bits.RotateLeft64(h^uint64(half(b, i))*prime1, 23)*prime2 + prime3
		i += 4
	}
	for ; i < n; i++ {
		h = bits.RotateLeft64(h^uint64(b[i])*prime5, 11) * prime1
	}
	h = (h ^ h>>33) * prime2
	h = (h ^ h>>29) * prime3
	return h ^ h>>32
}

// stripes consumes the complete 32-byte blocks of b. It returns the state and the number of bytes
// consumed.
func stripes[T string | []byte](b T) (h uint64, read int) {
	acc := [4]uint64{prime1, prime2, 0, 0}
	acc[0] += prime2
	acc[3] -= prime1
	for ; read+32 <= len(b); read += 32 {
		for lane := range acc {
			acc[lane] = round(acc[lane], word(b, read+8*lane))
		}
	}
	h = bits.RotateLeft64(acc[0], 1) + bits.RotateLeft64(acc[1], 7) +
		bits.RotateLeft64(acc[2], 12) + bits.RotateLeft64(acc[3], 18)
	for _, a := range acc {
		h = (h^round(0, a))*prime1 + prime4
	}
	return h, read
}

func round(acc, input uint64) uint64 {
	return bits.RotateLeft64(acc+input*prime2, 31) * prime1
}

// word returns the eight bytes from i as a little-endian number. It is a single expression over one
// slice, so that it compiles to one load.
func word[T string | []byte](b T, i int) uint64 {
	s := b[i : i+8]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// half returns the four bytes from i as a little-endian number.
func half[T string | []byte](b T, i int) uint32 {
	s := b[i : i+4]
	return uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24
}
