package policy

import (
	"strings"
	"testing"
)

// TestParseFee: dollars per hour or per month of 730 hours.
func TestParseFee(t *testing.T) {
	for text, want := range map[string]Money{
		"0": 0, "0.02": 20_000, "$0.02": 20_000, "0.02/h": 20_000, "$0.02 / hour": 20_000, "73/month": 100_000, "$7.3/mo": 10_000, " $15/Month ": 20_548,
	} {
		if got, err := ParseFee(text); err != nil || got != want {
			t.Errorf("%q is %v (%v), want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "free", "15/week", "-1", "NaN", "Inf", "101", "1e9/month", "€15"} {
		if got, err := ParseFee(text); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%q is %v (%v), want an error that names it", text, got, err)
		}
	}
}
