package draw

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// none stands for a figure that is not known.
const none = "–"

// Dollars returns an amount as "$12.30", from a thousand dollars on without
// cents as "$12,300".
func Dollars(m policy.Money) string {
	sign, x := "", m.Float()
	if m < 0 {
		sign, x = "-", -x
	}
	if x >= 999.995 {
		return sign + "$" + Thousands(int64(math.Round(x)))
	}
	return sign + "$" + strconv.FormatFloat(x, 'f', 2, 64)
}

// Signed returns an amount as Dollars does, with a plus for a gain; less than half
// a cent has no sign.
func Signed(m policy.Money) string {
	switch {
	case m.Float() < 0.005 && m.Float() > -0.005:
		return Dollars(0)
	case m > 0:
		return "+" + Dollars(m)
	}
	return Dollars(m)
}

// Price returns a price per hour as "$0.0312", with fewer decimals the dearer
// it is; [policy.NoPrice] as a dash.
func Price(m policy.Money) string {
	switch x := m.Float(); {
	case m < 0:
		return none
	case m == 0:
		return "$0"
	case x < 1:
		return "$" + strconv.FormatFloat(x, 'f', 4, 64)
	case x < 100:
		return "$" + strconv.FormatFloat(x, 'f', 3, 64)
	default:
		return Dollars(m)
	}
}

// PerHour returns a price per hour with its unit, as "$0.0312/h".
func PerHour(m policy.Money) string {
	if m < 0 {
		return none
	}
	return Price(m) + "/h"
}

// Thousands returns n with commas, as "2,000".
func Thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	digits := strings.TrimPrefix(s, "-")
	sign := s[:len(s)-len(digits)]
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

// Percent returns a ratio in whole percent, as "83%", below one percent with a
// decimal; NaN as a dash.
func Percent(x float64) string {
	switch p := x * 100; {
	case math.IsNaN(x) || math.IsInf(x, 0):
		return none
	case p != 0 && math.Abs(p) < 0.95:
		return strconv.FormatFloat(p, 'f', 1, 64) + "%"
	default:
		return strconv.FormatFloat(p, 'f', 0, 64) + "%"
	}
}

var weekdays = [...]string{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"}

// Day returns the day and the time of an instant in UTC, as "Wed 7 14:05": a week
// with its warm-up has two days of one name. An instant that is not set is a dash.
func Day(t policy.Time) string {
	if t == 0 {
		return none
	}
	s := t.Std()
	return day(s) + " " + two(s.Hour()) + ":" + two(s.Minute())
}

// Date returns an instant as Day does, with its month: "Wed 7 Jan 14:05".
func Date(t policy.Time) string {
	if t == 0 {
		return none
	}
	s := t.Std()
	return day(s) + s.Format(" Jan ") + two(s.Hour()) + ":" + two(s.Minute())
}

// day returns the day of an instant, as "Wed 7".
func day(s time.Time) string { return weekdays[s.Weekday()] + " " + strconv.Itoa(s.Day()) }

// DaySecond returns an instant as Day does, with its seconds.
func DaySecond(t policy.Time) string {
	if t == 0 {
		return none
	}
	return Day(t) + ":" + two(t.Std().Second())
}

func two(n int) string { return string([]byte{'0' + byte(n/10), '0' + byte(n%10)}) }

// Span returns a time span in its two largest units, as "42s", "3h12m", "2d4h".
func Span(d time.Duration) string {
	sign := ""
	if d < 0 {
		sign, d = "-", -d
	}
	s := int64(d / time.Second)
	n := func(n int64, unit string) string { return strconv.FormatInt(n, 10) + unit }
	switch {
	case s < 60:
		return sign + n(s, "s")
	case s < 3600:
		return sign + n(s/60, "m") + rest(s%60, "s")
	case s < 86400:
		return sign + n(s/3600, "h") + rest(s%3600/60, "m")
	default:
		return sign + n(s/86400, "d") + rest(s%86400/3600, "h")
	}
}

// rest writes the smaller unit of a span, nothing when it is 0.
func rest(n int64, unit string) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10) + unit
}
