package policy_test

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/policy"
)

func TestMoneyString(t *testing.T) {
	for _, c := range []struct {
		m           policy.Money
		long, short string
	}{
		{0, "$0.000000", "$0.00"},
		{96_000, "$0.096000", "$0.096"},
		{12_300_000, "$12.300000", "$12.30"},
		{-1, "-$0.000001", "$0.00"},
		{-1_500_000, "-$1.500000", "−$1.50"},
		{123_450, "$0.123450", "$0.1235"},
		{100 * policy.Dollar, "$100.000000", "$100.00"},
	} {
		if got := c.m.String(); got != c.long {
			t.Errorf("%d: %s, want %s", c.m, got, c.long)
		}
		if got := c.m.Short(); got != c.short {
			t.Errorf("%d: short %s, want %s", c.m, got, c.short)
		}
	}
}

func TestMoneyRounds(t *testing.T) {
	for x, want := range map[float64]policy.Money{0.096: 96_000, 1e-7: 0, 5e-7: 1, -5e-7: -1, 0.1 + 0.2: 300_000} {
		if got := policy.Dollars(x); got != want {
			t.Errorf("Dollars(%v) = %d, want %d", x, got, want)
		}
	}
	if got := policy.Money(3).Times(0.5); got != 2 {
		t.Errorf("3 × 0.5 = %d, want 2, half away from zero", got)
	}
	if got := policy.Money(-3).Times(0.5); got != -2 {
		t.Errorf("-3 × 0.5 = %d, want -2", got)
	}
}

// TestBid compares with exact fractions: the least multiple of $0.005 that is
// at least the price, and one step for nothing.
func TestBid(t *testing.T) {
	for m, want := range map[policy.Money]policy.Money{
		-1: 5_000, 0: 5_000, 1: 5_000, 5_000: 5_000, 5_001: 10_000,
		35_000: 35_000, 70_000: 70_000, 140_000: 140_000, 280_000: 280_000, 555_000: 555_000,
	} {
		if got := policy.Bid(m); got != want {
			t.Errorf("Bid(%v) = %v, want %v", m, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		m := policy.Money(rapid.Int64Range(1, 1e12).Draw(t, "price"))
		steps := new(big.Rat).SetFrac64(int64(m), 5_000)
		whole := new(big.Int).Quo(steps.Num(), steps.Denom())
		if !steps.IsInt() {
			whole.Add(whole, big.NewInt(1))
		}
		if got := policy.Bid(m); int64(got) != 5_000*whole.Int64() {
			t.Fatalf("Bid(%v) = %v, want %v steps", m, got, whole)
		}
	})
}
