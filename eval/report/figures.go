package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// none stands where there is no value.
const none = "–"

// fixed writes x with a true minus sign and groups of thousands, and no sign
// before a zero.
func fixed(x float64, digits int) string {
	s := strconv.FormatFloat(math.Abs(x), 'f', digits, 64)
	whole, part, _ := strings.Cut(s, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if part != "" {
		whole += "." + part
	}
	if x < 0 && strings.Trim(s, "0.") != "" {
		return "−" + whole
	}
	return whole
}

// signed is fixed with a plus sign before what is above zero.
func signed(x float64, digits int) string {
	s := fixed(x, digits)
	if x > 0 && strings.Trim(s, "0.,") != "" {
		return "+" + s
	}
	return s
}

// dollars writes an amount: with cents below a hundred.
func dollars(x float64) string {
	digits := 0
	if math.Abs(x) < 100 {
		digits = 2
	}
	if s := fixed(x, digits); strings.HasPrefix(s, "−") {
		return "−$" + strings.TrimPrefix(s, "−")
	}
	return "$" + fixed(x, digits)
}

// percent writes a number of percents.
func percent(x float64) string { return fixed(x, 1) + " %" }

// share writes a share as percent.
func share(x float64) string { return percent(x * 100) }

// availability writes a share that is close to 1.
func availability(x float64) string { return fixed(x*100, 3) + " %" }

// minutes writes a number of minutes, of which a median may have a half.
func minutes(x float64) string {
	if x == math.Trunc(x) {
		return fixed(x, 0)
	}
	return fixed(x, 1)
}

// rate writes a number per pod-day.
func rate(x float64) string { return fixed(x, 3) }

// exact writes x with all its digits.
func exact(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// plural counts things.
func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fixed(float64(n), 0) + " " + what + "s"
}

// length writes how long something takes: in days where it has whole ones.
func length(d time.Duration) string {
	const day = 24 * time.Hour
	if d >= day && d%day == 0 {
		return plural(int(d/day), "day")
	}
	if d < time.Hour {
		return fmt.Sprintf("%.4g min", d.Minutes())
	}
	return fmt.Sprintf("%.4g h", d.Hours())
}

// short cuts the middle out of a name that is too long for a picture. Its
// tables have it whole.
func short(name string) string {
	const most, head, tail = 26, 13, 12
	r := []rune(name)
	if len(r) <= most {
		return name
	}
	return string(r[:head]) + "…" + string(r[len(r)-tail:])
}
