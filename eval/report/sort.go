package report

import (
	"math"
	"strconv"
	"strings"
)

// sortOf returns what a cell of v is sorted by; empty where the script of the page reads v
// in its text.
func sortOf(v float64, text string) string {
	if shown, rounding, ok := valueOf(text); ok && math.Abs(shown-v) <= rounding {
		return ""
	}
	return strconv.FormatFloat(v, 'g', 7, 64)
}

// valueOf returns the number that a text such as −$1,234.50 or 99.2% stands for, as the
// script of the page reads it, and by how much it may be rounded.
func valueOf(text string) (v, rounding float64, ok bool) {
	digits, percent := strings.CutSuffix(text, "%")
	digits, minus := strings.CutPrefix(digits, "−")
	digits = strings.TrimPrefix(strings.TrimPrefix(digits, "+"), "$")
	if strings.Trim(digits, "0123456789.,") != "" {
		return 0, 0, false
	}
	digits = strings.ReplaceAll(digits, ",", "")
	v, err := strconv.ParseFloat(digits, 64)
	rounding = 0.5001
	if _, decimals, found := strings.Cut(digits, "."); found {
		rounding *= math.Pow10(-len(decimals))
	}
	if percent {
		v, rounding = v/100, rounding/100
	}
	if minus {
		v = -v
	}
	return v, rounding, err == nil
}
