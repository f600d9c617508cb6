package policy

import (
	"fmt"
	"math"

	"github.com/spotter-dev/spotter/policy/figures"
)

// Money is an amount in millionths of a US dollar.
//
// It is an integer so that a sum does not depend on the order of its terms,
// nor a result on the processor that computed it. A price is Money per
// node-hour.
type Money int64

// Dollar is one US dollar.
const Dollar Money = 1_000_000

// NoPrice marks an instant in a price history at which the market was not offered. It is never a
// price.
const NoPrice Money = -1

// Dollars returns x dollars as Money, rounded half away from zero. It is used
// where a price enters; inside, amounts stay Money.
func Dollars(x float64) Money { return Money(math.Round(x * float64(Dollar))) }

// Times returns m multiplied by x, rounded half away from zero.
func (m Money) Times(x float64) Money { return Money(math.Round(float64(m) * x)) }

// Float returns m in dollars, for output and for ratios.
func (m Money) Float() float64 { return float64(m) / float64(Dollar) }

// String formats m as dollars, as in "$0.096000".
func (m Money) String() string {
	sign, abs := "", m
	if m < 0 {
		sign, abs = "-", -m
	}
	return fmt.Sprintf("%s$%d.%06d", sign, abs/Dollar, abs%Dollar)
}

// Short formats m for people, as in "$0.096" and "$12.30", see [figures.Price].
func (m Money) Short() string { return figures.Price(m.Float()) }
