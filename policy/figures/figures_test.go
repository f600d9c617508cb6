package figures_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy/figures"
	"pgregory.net/rapid"
)

func TestFigures(t *testing.T) {
	oneDecimal := func(x float64) string { return figures.Signed(x, 1) }
	for _, c := range []struct{ got, want string }{
		{figures.Number(1234567.25, 1), "1,234,567.2"},
		{figures.Number(-999.96, 1), "−1,000.0"},
		{figures.Number(math.NaN(), 1), "–"},
		{figures.Number(math.Inf(-1), 1), "–"},
		{figures.Number(27.5, figures.Few), "27.5"},
		{figures.Number(27, figures.Few), "27"},
		{figures.Number(0.0123456, figures.Few), "0.01235"},
		{figures.Number(1234567, figures.Few), "1,234,567"},
		{figures.Signed(3.14, 1), "+3.1"},
		{figures.Signed(0.04, 1), "0.0"},
		{figures.Signed(-0.04, 1), "0.0"},
		{figures.Percent(87.64, 1), "87.6%"},
		{figures.PercentChange(-3, 0), "−3%"},
		{figures.Share(0.99987, 3), "99.987%"},
		{figures.RoughShare(0.833), "83%"},
		{figures.RoughShare(0.004), "0.4%"},
		{figures.RoughShare(0), "0%"},
		{figures.RoughShare(math.NaN()), "–"},
		{figures.Amount(1060.4), "1,060"},
		{figures.Dollars(58.206), "$58.21"},
		{figures.Dollars(99.996), "$100"},
		{figures.Dollars(-412), "−$412"},
		{figures.Dollars(-0.001), "$0.00"},
		{figures.DollarChange(1060), "+$1,060"},
		{figures.DollarChange(-0.5), "−$0.50"},
		{figures.DollarChange(0), "$0.00"},
		{figures.Price(0.03124), "$0.0312"},
		{figures.Price(12.3), "$12.30"},
		{figures.Price(0), "$0.00"},
		{figures.Price(1234.5), "$1,234.50"},
		{figures.Price(-0.08), "−$0.08"},
		{figures.Whole(12), "12"},
		{figures.Whole(2.5), "2.5"},
		{figures.Whole(1999.99), "2,000"},
		{figures.WholeChange(-3), "−3"},
		{figures.WholeChange(0), "0"},
		{figures.Count(1, "file"), "1 file"},
		{figures.Count(0, "policy"), "0 policies"},
		{figures.Count(2, "day"), "2 days"},
		{figures.Count(int64(12000), "node"), "12,000 nodes"},
		{figures.Count(3, "batch"), "3 batches"},
		{figures.Integer(int32(-2000)), "−2,000"},
		{figures.Duration(42 * time.Second), "42s"},
		{figures.Duration(250 * time.Millisecond), "250ms"},
		{figures.Duration(0), "0s"},
		{figures.Duration(59*time.Second + 600*time.Millisecond), "1m"},
		{figures.Duration(3*time.Hour + 12*time.Minute + 5*time.Second), "3h12m"},
		{figures.Duration(52 * time.Hour), "2d4h"},
		{figures.Duration(-90 * time.Second), "−1m30s"},
		{figures.Interval(3.14, -2, 4.2, oneDecimal), "+3.1 [−2.0, +4.2]"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestDecimalsApart(t *testing.T) {
	for _, c := range []struct {
		x, limit float64
		want     int
	}{{3, 3, 0}, {2.5, 3, 2}, {2.9999, 3, 4}, {-3.000001, -3, 6}, {1.0 / 3, 1.0 / 3, 9}} {
		if got := figures.DecimalsApart(c.x, c.limit); got != c.want {
			t.Errorf("%v from %v: %d decimals, want %d", c.x, c.limit, got, c.want)
		}
	}
}

// No number is written with an ASCII minus or with a sign before zero, and the sign of a number is
// all that differs from its opposite.
func TestSigns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.Float64Range(0, 1e7).Draw(t, "x")
		for _, write := range []func(float64) string{
			figures.Amount, figures.Dollars, figures.Price, figures.Whole, figures.RoughShare,
			func(x float64) string { return figures.Number(x, 2) },
			func(x float64) string { return figures.Number(x, figures.Few) },
		} {
			above, below := write(x), write(-x)
			if strings.Contains(below, "-") {
				t.Fatalf("%v is %q, with a hyphen", -x, below)
			}
			if zero := strings.Trim(above, "$%,.0") == ""; zero && above != below {
				t.Fatalf("%v is %q and its opposite %q, which is zero with a sign", x, above, below)
			} else if !zero && below != "−"+above {
				t.Fatalf("%v is %q and its opposite %q", x, above, below)
			}
		}
	})
}
