package billing_test

import (
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
)

const (
	minute = policy.Time(60_000)
	hour   = 60 * minute
)

// TestCalmMarket bills nodes × hours × price, exactly.
func TestCalmMarket(t *testing.T) {
	c := billing.NewCurve([]policy.Time{0}, []policy.Money{96_000})
	window := billing.Span{From: 24 * hour, To: 192 * hour}
	if got := c.Bill(billing.Span{From: 0, To: 200 * hour}, window); got != 168*96_000 {
		t.Errorf("a week at $0.096 costs %v", got)
	}
	if got := billing.Flat(96_000, billing.Span{From: 0, To: 200 * hour}, window); got != 168*96_000 {
		t.Errorf("flat: %v", got)
	}
}

// TestMinimum bills a short life as one minute from launch, cut at the edges.
func TestMinimum(t *testing.T) {
	const price = 60 * policy.Dollar // a dollar a minute
	c := billing.NewCurve([]policy.Time{0}, []policy.Money{price})
	window := billing.Span{From: 10 * minute, To: 20 * minute}
	for _, x := range []struct {
		name     string
		from, to policy.Time
		want     policy.Money
	}{
		{"a second", 12 * minute, 12*minute + 1000, policy.Dollar},
		{"no time at all", 12 * minute, 12 * minute, policy.Dollar},
		{"a minute and a half", 12 * minute, 13*minute + 30_000, 3 * policy.Dollar / 2},
		{"launched half a minute before the window", 9*minute + 30_000, 9*minute + 31_000, policy.Dollar / 2},
		{"launched half a minute before its end", 19*minute + 30_000, 19*minute + 31_000, policy.Dollar / 2},
		{"before the window", 8 * minute, 8*minute + 1, 0},
		{"after the window", 20 * minute, 25 * minute, 0},
		{"all of it", 0, 60 * minute, 10 * policy.Dollar},
	} {
		life := billing.Span{From: x.from, To: x.to}
		if got := c.Bill(life, window); got != x.want {
			t.Errorf("%s: %v, want %v", x.name, got, x.want)
		}
		if got := billing.Flat(price, life, window); got != x.want {
			t.Errorf("%s, flat: %v, want %v", x.name, got, x.want)
		}
	}
}

// TestCurve keeps the price in force while nothing is offered.
func TestCurve(t *testing.T) {
	at := []policy.Time{10, 20, 30, 40}
	prices := []policy.Money{policy.NoPrice, 5, policy.NoPrice, 7}
	c := billing.NewCurve(at, prices)
	for when, want := range map[policy.Time]policy.Money{0: 5, 10: 5, 19: 5, 20: 5, 30: 5, 39: 5, 40: 7, 1000: 7} {
		if got := c.At(when); got != want {
			t.Errorf("at %d: %d, want %d", when, got, want)
		}
	}
	if prices[0] != policy.NoPrice {
		t.Error("the prices given were changed")
	}
}

// TestBillProperties compares with exact fractions, millisecond by millisecond of a curve, and adds
// bills of adjacent windows.
func TestBillProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var at []policy.Time
		var prices []policy.Money
		now := policy.Time(rapid.Int64Range(0, 100).Draw(t, "first"))
		for range rapid.IntRange(1, 6).Draw(t, "changes") {
			at = append(at, now)
			prices = append(prices, policy.Money(rapid.Int64Range(1, 4_000_000).Draw(t, "price")))
			now += policy.Time(rapid.Int64Range(1, 200_000).Draw(t, "gap"))
		}
		c := billing.NewCurve(at, prices)
		from := policy.Time(rapid.Int64Range(0, 500_000).Draw(t, "from"))
		life := billing.Span{From: from, To: from + policy.Time(rapid.Int64Range(0, 500_000).Draw(t, "life"))}
		window := billing.Span{From: policy.Time(rapid.Int64Range(0, 300_000).Draw(t, "open"))}
		window.To = window.From + policy.Time(rapid.Int64Range(0, 600_000).Draw(t, "length"))

		got := c.Bill(life, window)
		if want := plainly(at, prices, life, window); got != want {
			t.Fatalf("bill %d, want %d", got, want)
		}
		middle := window.From + (window.To-window.From)/2
		parts := c.Bill(life, billing.Span{From: window.From, To: middle}) + c.Bill(life, billing.Span{From: middle, To: window.To})
		if d := parts - got; d < -1 || d > 1 {
			t.Fatalf("two halves cost %d, the whole %d", parts, got)
		}
		if len(prices) == 1 && got != billing.Flat(prices[0], life, window) {
			t.Fatalf("flat %d, curve %d", billing.Flat(prices[0], life, window), got)
		}
	})
}

// plainly sums price × time over the pieces of the curve as a fraction.
func plainly(at []policy.Time, prices []policy.Money, life, window billing.Span) policy.Money {
	to := max(life.To, life.From.Add(time.Minute))
	from := max(life.From, window.From)
	to = min(to, window.To)
	sum := new(big.Rat)
	for i := range at {
		start, end := at[i], to
		if i == 0 {
			start = min(from, at[0])
		}
		if i+1 < len(at) {
			end = min(to, at[i+1])
		}
		if start = max(start, from); start < end {
			sum.Add(sum, new(big.Rat).SetFrac64(int64(prices[i])*int64(end-start), int64(hour)))
		}
	}
	sum.Add(sum, big.NewRat(1, 2)) // half up
	return policy.Money(new(big.Int).Quo(sum.Num(), sum.Denom()).Int64())
}

func TestSpan(t *testing.T) {
	s := billing.Span{From: 10, To: 20}
	for _, x := range []struct{ window, want billing.Span }{
		{billing.Span{From: 0, To: 100}, s},
		{billing.Span{From: 12, To: 15}, billing.Span{From: 12, To: 15}},
		{billing.Span{From: 30, To: 40}, billing.Span{From: 30, To: 30}},
		{billing.Span{From: 0, To: 5}, billing.Span{From: 10, To: 10}},
	} {
		if got := s.Clip(x.window); got != x.want {
			t.Errorf("clip to %v: %v, want %v", x.window, got, x.want)
		}
	}
	if s.Length() != 10*time.Millisecond {
		t.Errorf("length %v", s.Length())
	}
}

func TestCommitted(t *testing.T) {
	if got := billing.Committed(100*policy.Dollar, 0.29); got != 71*policy.Dollar {
		t.Errorf("$100 less 29 %% is %v", got)
	}
}

// TestBillAtMost cuts the price off at what the node pays at most.
func TestBillAtMost(t *testing.T) {
	c := billing.NewCurve([]policy.Time{0, 3_600_000, 7_200_000}, []policy.Money{100, 300, 50})
	window := billing.Span{From: 0, To: 10_800_000}
	for _, x := range []struct {
		from, to policy.Time
		most     policy.Money
		want     policy.Money
	}{{0, 10_800_000, 200, 350}, {0, 10_800_000, 1000, 450}, {1_800_000, 5_400_000, 200, 150}, {0, 1, 60, 1}} {
		if got := c.BillAtMost(billing.Span{From: x.from, To: x.to}, window, x.most); got != x.want {
			t.Errorf("from %d to %d at most %d: %d, want %d", x.from, x.to, x.most, got, x.want)
		}
	}
}
