// Package tracetest makes small traces for tests.
package tracetest

import (
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// At returns the hour of a day of January 2026.
func At(day, hour int) policy.Time {
	return policy.TimeOf(time.Date(2026, 1, day, hour, 0, 0, 0, time.UTC))
}

// Cents makes prices; -1 means not offered.
func Cents(prices ...int) []policy.Money {
	var all []policy.Money
	for _, c := range prices {
		m := policy.Money(c) * policy.Dollar / 100
		if c < 0 {
			m = policy.NoPrice
		}
		all = append(all, m)
	}
	return all
}

// New makes a trace that ends at to.
func New(t testing.TB, name string, to policy.Time, series ...trace.Series) *trace.Trace {
	t.Helper()
	tr, err := trace.New(name, series)
	if err != nil {
		t.Fatal(err)
	}
	tr.To = to
	return tr
}
