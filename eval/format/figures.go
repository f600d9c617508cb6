package format

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/policy"
)

// unknown stands in tables where there is no value.
const unknown = "–"

// money formats dollars: with cents below a hundred, in thousands above a
// hundred thousand.
func money(x float64) string {
	switch size := math.Abs(x); {
	case size < 100:
		return plain(x, 2)
	case size < 100_000:
		return plain(x, 0)
	}
	return plain(x/1000, 1) + "k"
}

func percent(x float64) string { return plain(x, 1) }
func share(x float64) string   { return plain(x*100, 1) }
func rate(x float64) string    { return plain(x, 3) }

// whole formats a number of minutes, of which a median may have a half.
func whole(x float64) string {
	if x == math.Trunc(x) {
		return plain(x, 0)
	}
	return plain(x, 1)
}

func signed(x float64, digits int) string {
	s := plain(x, digits)
	if x > 0 && strings.Trim(s, "0.") != "" {
		return "+" + s
	}
	return s
}

// plain formats x without a minus sign before zero.
func plain(x float64, digits int) string {
	s := strconv.FormatFloat(x, 'f', digits, 64)
	if strings.HasPrefix(s, "-") && strings.Trim(s, "-0.") == "" {
		return s[1:]
	}
	return s
}

// exact formats x with all its digits, for files that are read by programs.
func exact(x float64) string {
	if x == 0 {
		return "0"
	}
	return strconv.FormatFloat(x, 'f', -1, 64)
}

// dollars formats an amount with its sign, as −$412.
func dollars(x float64) string {
	text := money(math.Abs(x))
	switch {
	case strings.Trim(text, "0.") == "":
		return "+$0"
	case x < 0:
		return "−$" + text
	}
	return "+$" + text
}

// minutes formats outage minutes of a month with their sign, as +0.
func minutes(x float64) string {
	text := plain(math.Abs(x), 1)
	text = strings.TrimSuffix(text, ".0")
	switch {
	case text == "0":
		return "+0"
	case x < 0:
		return "−" + text + " min/month"
	}
	return "+" + text + " min/month"
}

// duration formats seconds as 1h2m3s.
func duration(seconds float64) string {
	return (time.Duration(seconds*float64(time.Second) + 0.5)).Round(time.Second).String()
}

// Instant formats t to the minute, or to the day at midnight.
func Instant(t policy.Time) string {
	if u := t.Std(); u.Hour() != 0 || u.Minute() != 0 {
		return u.Format("2006-01-02 15:04")
	}
	return t.Std().Format(time.DateOnly)
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// countPolicies says how many policies there are.
func countPolicies(n int) string {
	if n == 1 {
		return "1 policy"
	}
	return fmt.Sprintf("%d policies", n)
}

// textOf formats a value, or what stands for none.
func textOf(v eval.Value, format func(float64) string) string {
	if !v.Known {
		return unknown
	}
	return format(v.V)
}

// seedList writes seeds as ranges where they follow each other.
func seedList(seeds []uint64) string {
	var parts []string
	for i := 0; i < len(seeds); {
		j := i
		for j+1 < len(seeds) && seeds[j+1] == seeds[j]+1 {
			j++
		}
		part := strconv.FormatUint(seeds[i], 10)
		if j > i {
			part += "-" + strconv.FormatUint(seeds[j], 10)
		}
		parts, i = append(parts, part), j+1
	}
	return strings.Join(parts, ",")
}

// digitsFor returns how many decimals show on which side of limit x lies.
func digitsFor(x, limit float64) int {
	if x == math.Trunc(x) {
		return 0
	}
	for digits := 2; digits < 9; digits++ {
		shown, err := strconv.ParseFloat(plain(x, digits), 64)
		if err == nil && (shown < limit) == (x < limit) && (shown > limit) == (x > limit) {
			return digits
		}
	}
	return 9
}

// firstLine returns what stands before the first line break of s.
func firstLine(s string) string {
	first, _, _ := strings.Cut(s, "\n")
	return first
}
