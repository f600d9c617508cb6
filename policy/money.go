package policy

import (
	"fmt"
	"math"

	"github.com/spotter-dev/spotter/policy/figures"
)

// Money is an amount in millionths of a US dollar.
//
// It is an integer, so that a sum does not depend on the order of its terms or on the processor. A
// price is Money per node-hour.
type Money int64

// Dollar is one US dollar.
const Dollar Money = 1_000_000

// NoPrice marks a time in a price history at which the market was not offered. It is not a valid
// price.
const NoPrice Money = -1

// Dollars converts x dollars to Money, rounding half away from zero. Use it where prices are read;
// all other code computes with Money.
func Dollars(x float64) Money { return Money(math.Round(x * float64(Dollar))) }

// Times returns m multiplied by x, rounded half away from zero.
func (m Money) Times(x float64) Money { return Money(math.Round(float64(m) * x)) }

// Float returns m in dollars, for output and ratios.
func (m Money) Float() float64 { return float64(m) / float64(Dollar) }

// String formats m as dollars, as in "$0.096000".
func (m Money) String() string {
	sign, abs := "", m
	if m < 0 {
		sign, abs = "-", -m
	}
	return fmt.Sprintf("%s$%d.%06d", sign, abs/Dollar, abs%Dollar)
}

// Short formats m for display, as in "$0.096" and "$12.30": see [figures.Price].
func (m Money) Short() string { return figures.Price(m.Float()) }
