// Package figures formats numbers for people: amounts of money, percentages, counts and durations
// look the same on the terminal and in reports, charts, events and plans. [Plain] makes names and
// texts from outside safe to show.
//
// A minus sign is U+2212 and precedes the dollar sign, thousands have commas, no space precedes %,
// and zero has no sign. NaN and infinity are [Unknown]. Files that programs read have their own,
// exact format.
package figures

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// Unknown is the text for a missing value.
const Unknown = "–"

// Few as a number of decimals means the smallest number that keeps four significant digits.
const Few = -1

const minus = "−"

// Number formats x with a number of decimals, such as "−1,234.5".
func Number(x float64, decimals int) string { return write(x, decimals, "", "", "") }

// Signed formats a change: [Number] with a plus sign before positive values.
func Signed(x float64, decimals int) string { return write(x, decimals, "+", "", "") }

// Percent formats a percentage, such as "87.6%" for 87.6.
func Percent(x float64, decimals int) string { return write(x, decimals, "", "", "%") }

// PercentChange formats a change in percent, such as "+3.2%".
func PercentChange(x float64, decimals int) string { return write(x, decimals, "+", "", "%") }

// Share formats a ratio as a percentage: 0.876 is "87.6%".
func Share(x float64, decimals int) string { return Percent(x*100, decimals) }

// RoughShare formats a ratio in whole percent, with one decimal below one percent.
func RoughShare(x float64) string {
	if size := math.Abs(x * 100); size != 0 && size < 0.95 {
		return Share(x, 1)
	}
	return Share(x, 0)
}

// Amount formats dollars without the dollar sign, for columns whose heading has it: with cents
// below a hundred.
func Amount(x float64) string { return write(x, cents(x), "", "", "") }

// Dollars formats an amount, such as "$58.21" and "−$1,060".
func Dollars(x float64) string { return write(x, cents(x), "", "$", "") }

// DollarChange formats a difference of amounts, such as "+$1,060".
func DollarChange(x float64) string { return write(x, cents(x), "+", "$", "") }

// cents returns the number of decimals of an amount.
func cents(x float64) int {
	if math.Abs(x) < 99.995 {
		return 2
	}
	return 0
}

// Price formats an hourly price, which is small: with at most four decimals and no trailing zeros
// beyond cents, such as "$0.0312" and "$12.30".
func Price(x float64) string {
	s := write(x, 4, "", "$", "")
	for strings.HasSuffix(s, "0") && len(s)-strings.IndexByte(s, '.') > 3 {
		s = s[:len(s)-1]
	}
	return s
}

// Whole formats a number of minutes or other units that is whole, except that a median may have a
// half.
func Whole(x float64) string { return Number(x, halves(x)) }

// WholeChange formats a difference of minutes with its sign.
func WholeChange(x float64) string { return Signed(x, halves(x)) }

func halves(x float64) int {
	if tenths := math.Round(x * 10); math.Mod(tenths, 10) == 0 {
		return 0
	}
	return 1
}

// DecimalsApart returns the number of decimals that are needed to show on which side of limit x is.
func DecimalsApart(x, limit float64) int {
	const most = 9
	if x == math.Trunc(x) {
		return 0
	}
	for decimals := 2; decimals < most; decimals++ {
		shown, err := strconv.ParseFloat(strconv.FormatFloat(x, 'f', decimals, 64), 64)
		if err == nil && (shown < limit) == (x < limit) && (shown > limit) == (x > limit) {
			return decimals
		}
	}
	return most
}

// Integer formats a whole number, such as "2,000".
func Integer[N ~int | ~int32 | ~int64](n N) string { return Number(float64(n), 0) }

// Count formats a number of things, such as "1 file", "2,000 files" and "3 policies".
func Count[N ~int | ~int32 | ~int64](n N, noun string) string {
	if n != 1 {
		noun = plural(noun)
	}
	return Integer(n) + " " + noun
}

// plural returns the plural of a regular noun, or of a phrase that ends in one.
func plural(noun string) string {
	if stem, ok := strings.CutSuffix(noun, "y"); ok && stem != "" && !strings.ContainsAny(stem[len(stem)-1:], "aeiou") {
		return stem + "ies"
	}
	for _, end := range []string{"s", "x", "ch", "sh"} {
		if strings.HasSuffix(noun, end) {
			return noun + "es"
		}
	}
	return noun + "s"
}

// Exact formats a duration as Go and manifests parse it, without trailing units that are 0.
func Exact(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// Duration formats a duration in its two largest units, such as "42s", "3h12m" and "2d4h", and in
// milliseconds below a second.
func Duration(d time.Duration) string {
	if d != 0 && d > -time.Second && d < time.Second {
		return Integer(d.Milliseconds()) + "ms"
	}
	sign, s := "", int64(d.Round(time.Second)/time.Second)
	if s < 0 {
		sign, s = minus, -s
	}
	for _, u := range []struct {
		size, part int64
		name, rest string
	}{{86400, 3600, "d", "h"}, {3600, 60, "h", "m"}, {60, 1, "m", "s"}} {
		if s < u.size {
			continue
		}
		text := sign + Integer(s/u.size) + u.name
		if rest := s % u.size / u.part; rest > 0 {
			text += strconv.FormatInt(rest, 10) + u.rest
		}
		return text
	}
	return sign + strconv.FormatInt(s, 10) + "s"
}

// Interval formats an estimate with the bounds of its interval, such as "+3.1 [+2.0, +4.2]".
func Interval(estimate, low, high float64, number func(float64) string) string {
	return number(estimate) + " [" + number(low) + ", " + number(high) + "]"
}

// write formats x with its sign and units; plus is the sign of positive values.
func write(x float64, decimals int, plus, before, after string) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return Unknown
	}
	digits := group(digitsOf(math.Abs(x), decimals))
	sign := ""
	switch {
	case strings.Trim(digits, "0.") == "":
	case x < 0:
		sign = minus
	case x > 0:
		sign = plus
	}
	return sign + before + digits + after
}

func digitsOf(x float64, decimals int) string {
	if decimals != Few {
		return strconv.FormatFloat(x, 'f', decimals, 64)
	}
	if x >= 1000 {
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 4, 64), 64)
	if err != nil {
		return Unknown
	}
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}

// group inserts commas between the thousands of a decimal number.
func group(digits string) string {
	whole, rest, found := strings.Cut(digits, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if found {
		whole += "." + rest
	}
	return whole
}
