package ranges

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
)

// TestParse: the values of a range, written as a person would.
func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"1m..2h":        "1m 2m15s 5m 11m 24m 55m 2h",
		"30s..2m@4":     "30s 1m 1m30s 2m",
		"0s..1h@3":      "0s 30m 1h",
		"1h..48h@3":     "1h 7h 48h",
		"5%..50%@4":     "5% 11% 23% 50%",
		"10%..40%@4":    "10% 20% 30% 40%",
		"0..1@5":        "0 0.25 0.5 0.75 1",
		"0.1..0.4@3":    "0.1 0.25 0.4",
		"2..5":          "2 3 4 5",
		"1..100@3":      "1 10 100",
		"0..1/0.1":      "0 0.1 0.2 0.3 0.4 0.5 0.6 0.7 0.8 0.9 1",
		"0..1/0.3":      "0 0.3 0.6 0.9",
		"0.2..0.4/0.1":  "0.2 0.3 0.4",
		"-2..2/2":       "-2 0 2",
		"0..3e-3/1e-3":  "0 0.001 0.002 0.003",
		"1m..4m/1m30s":  "1m 2m30s 4m",
		"90m..3h/45m":   "1h30m 2h15m 3h",
		"5%..20%/7.5%":  "5% 12.5% 20%",
		"10%..100%/45%": "10% 55% 100%",
	} {
		r, err := Parse(text)
		if got := strings.Join(r.Values(), " "); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"5m":           "is not a range",
		"1..5m":        "is not a range",
		"NaN..2":       "is not a range",
		"a%..b%":       "is not a range",
		"1..2/x":       "is not a range",
		"../a/b.json":  "is not a range",
		"1..2@1":       `"1" is not a number of values from 2 to 1000`,
		"1..2@1001":    `"1001" is not a number of values`,
		"1..2@x":       `"x" is not a number of values`,
		"2..1":         "2 is not below 1",
		"1..1":         "1 is not below 1",
		"1h..30m@3":    "1h is not below 30m",
		"1m..4h/5":     "the step 5 has no unit: write one, as the ends have it, or @5 for 5 values",
		"5%..50%/4":    "the step 4 has no unit",
		"0..1/0":       "the step 0 is not above 0",
		"0..1/-1":      "the step -1 is not above 0",
		"0..1/0.00001": "more than 1000 values",
		"0..1@3/0.5":   "states a step and a count",
	} {
		_, err := Parse(text)
		if err == nil || !strings.HasPrefix(err.Error(), `"`+text+`"`) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
		if kind := strings.Contains(want, "not a range"); errors.Is(err, ErrKind) != kind {
			t.Errorf("%s: is another kind of text: %t", text, !kind)
		}
	}
}

// TestAt: a part of a range is any value between its ends, and one of the listed ones where a step or
// a count is stated.
func TestAt(t *testing.T) {
	for _, c := range []struct {
		text string
		part float64
		want string
	}{
		{"10..20", 0.26, "13"}, {"10..20@2", 0.26, "10"}, {"10..20@2", 0.99, "20"}, {"0..1/0.5", 0.34, "0.5"}, {"1..100", 0.5, "10"},
	} {
		r, err := Parse(c.text)
		if got := r.At(c.part); err != nil || got != c.want {
			t.Errorf("%s at %v is %s, %v; want %s", c.text, c.part, got, err, c.want)
		}
	}
}

// TestValues: a list has values, ranges and both, each value once.
func TestValues(t *testing.T) {
	for list, want := range map[string]string{
		"5m": "5m", "5m, 1h": "5m 1h", "0..1/0.5,7": "0 0.5 1 7", "null,1h..2h@2": "null 1h 2h",
	} {
		if got, err := Values(list); err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: %v, %v; want %s", list, got, err, want)
		}
	}
	for list, want := range map[string]string{"": "is empty", "1,": "is empty", "1,1": "1 is named twice",
		"0..1/0.5,1": "1 is named twice", "1,2..1": "2 is not below 1"} {
		if got, err := Values(list); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v; want %q", list, got, err, want)
		}
	}
}

func TestNumbers(t *testing.T) {
	for list, want := range map[string][]uint64{
		"3": {1, 2, 3}, "1": {1}, "5-7": {5, 6, 7}, "5..7": {5, 6, 7}, "9-9": {9}, "0-1": {0, 1},
		"7,2-4": {7, 2, 3, 4}, "5, 9": {5, 9}, "1-10/4": {1, 5, 9}, "1..9/4": {1, 5, 9},
		"18446744073709551614-18446744073709551615": {math.MaxUint64 - 1, math.MaxUint64},
	} {
		got, err := Numbers(list, 1000)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q is %v, %v; want %v", list, got, err, want)
		}
		if again, err := Numbers(Text(got), 1000); err != nil || !slices.Equal(again, want) {
			t.Errorf("%v is written %s and read as %v, %v", got, Text(got), again, err)
		}
	}
	for list, want := range map[string]string{
		"": "neither a whole number", "-": "neither a whole number", "1-": "neither", "-3": "neither", "1-2-3": "neither", "2.5": "neither",
		"0x10": "neither", "1-many": "neither", "1,": "neither", "5/2": "not a range with a step", "1-5/0": "not a range with a step", "1-5/x": "neither",
		"0": "it is not above 0", "1-3,x": `"x": it is neither`, "5-4": "4 is below 5", "1-1001": "more than 1000", "1-500,601-1101": "more than 1000", "1-3,2": "2 is named twice",
		"99999999999999999999": "99999999999999999999 is too large a number",
	} {
		if got, err := Numbers(list, 1000); err == nil || !strings.HasPrefix(err.Error(), `"`+list+`"`) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is %v, %v; want %q", list, got, err, want)
		}
	}
}

func TestProduct(t *testing.T) {
	var got []string
	for _, x := range Product([][]string{{"a", "b"}, {"1"}, {"x", "y"}}, 4) {
		got = append(got, strings.Join(x, ""))
	}
	if strings.Join(got, " ") != "a1x a1y b1x b1y" {
		t.Errorf("the combinations are %v", got)
	}
	if n := len(Product([][]string{}, 4)); n != 1 {
		t.Errorf("no list has %d combinations, want the empty one", n)
	}
	if n := len(Product([][]int{{1, 2, 3}, {1, 2, 3}, {1, 2, 3}}, 4)); n <= 4 {
		t.Errorf("27 combinations are %d of at most 4", n)
	}
}
