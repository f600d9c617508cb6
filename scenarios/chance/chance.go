// Package chance draws random numbers from keys.
//
// No generator has a state: a number is a function of the seed, the name of its stream, the name of
// the object that it is drawn for, and ordinals. An additional draw in one place therefore changes
// no other draw, the order of calls does not matter, and two policies that are compared under one
// seed face the same weather.
//
//	gap := chance.New(seed, "reclaim", market).At2(slot, nth).Exp1()
package chance

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/spotter-dev/spotter/policy/portable"
)

// A Key identifies one random number. Every method draws from the same number, so take only one
// draw from a key, and derive further keys with At1 or At2. The value of a Key is itself
// pseudo-random.
type Key uint64

// New returns the key of the object with this name in a stream of a run with this seed.
func New(seed uint64, stream, name string) Key {
	return Stream(seed, stream).At1(portable.HashString(name))
}

// Stream returns the key of a whole stream. Stream(seed, stream).At1(h) equals New(seed, stream,
// name) if h is [portable.HashString] of name.
func Stream(seed uint64, stream string) Key {
	return Key(portable.Mix(seed, portable.HashString(stream)))
}

// At1 returns the key derived from k and an ordinal.
func (k Key) At1(a uint64) Key { return Key(portable.Mix(uint64(k), a)) }

// At2 returns the key derived from k and two ordinals.
func (k Key) At2(a, b uint64) Key { return k.At1(a).At1(b) }

// Float draws uniformly from [0, 1), in steps of 2^−53.
func (k Key) Float() float64 { return float64(float64(k>>11) * 0x1p-53) }

// IntN draws uniformly from the integers in [0, n). It panics if n < 1.
func (k Key) IntN(n int) int {
	if n < 1 {
		panic(fmt.Sprintf("chance: IntN(%d) has nothing to draw from", n))
	}
	hi, _ := bits.Mul64(uint64(k), uint64(n))
	return int(hi)
}

// Exp1 draws from the exponential distribution with mean 1.
func (k Key) Exp1() float64 { return -portable.Log(1 - k.Float()) }

// Weibull draws from the Weibull distribution with this shape and scale. With a shape below 1, both
// short and very long values are more frequent than in an exponential distribution with the same
// mean.
func (k Key) Weibull(shape, scale float64) float64 {
	return float64(scale * portable.Pow(k.Exp1(), 1/shape))
}

// Normal draws from the normal distribution with mean 0 and standard deviation 1.
func (k Key) Normal() float64 {
	// The middle of the step keeps the argument away from 0 and 1.
	return NormalQuantile(k.Float() + 0x1p-54)
}

// LogNormal draws e to the power sigma × [Key.Normal], whose median is 1.
func (k Key) LogNormal(sigma float64) float64 { return portable.Exp(float64(sigma * k.Normal())) }

// Beta draws from the beta distribution on [0, 1] with parameters a, b > 0.
func (k Key) Beta(a, b float64) float64 {
	x := k.At1(0).gamma(a)
	y := k.At1(1).gamma(b)
	if x+y == 0 {
		return a / (a + b) // both are too small to represent
	}
	return x / (x + y)
}

// gamma draws from the gamma distribution with this shape and scale 1, by the rejection method of
// Marsaglia and Tsang (2000).
func (k Key) gamma(shape float64) float64 {
	boost := 1.0
	if shape < 1 {
		boost = portable.Pow(1-k.At1(0).Float(), 1/shape)
		shape++
	}
	d := shape - 1.0/3
	c := 1 / math.Sqrt(float64(9*d))
	for try := uint64(1); ; try++ {
		x := k.At2(try, 0).Normal()
		v := 1 + float64(c*x)
		if v <= 0 {
			continue
		}
		v = float64(v * v * v)
		u := 1 - k.At2(try, 1).Float()
		if portable.Log(u) < float64(float64(0.5*x)*x)+float64(d*((1-v)+portable.Log(v))) {
			return float64(d * v * boost)
		}
	}
}
