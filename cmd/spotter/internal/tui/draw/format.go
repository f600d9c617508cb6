package draw

import (
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
)

// Price formats a price per hour. It returns a dash for [policy.NoPrice].
func Price(m policy.Money) string {
	if m < 0 {
		return figures.Unknown
	}
	return figures.Price(m.Float())
}

// PerHour formats a price with its unit, such as "$0.0312/h".
func PerHour(m policy.Money) string {
	if m < 0 {
		return figures.Unknown
	}
	return Price(m) + "/h"
}

// dayLayout is the layout of a day such as "Wed 7" for [time.Time.Format].
const dayLayout = "Mon 2"

// Day returns the day and time of an instant in UTC, such as "Wed 7 14:05". The day of the month is
// needed since a week with its warm-up contains a weekday twice. Zero is a dash.
func Day(t policy.Time) string { return format(t, dayLayout+" 15:04") }

// Date is like Day with the month: "Wed 7 Jan 14:05".
func Date(t policy.Time) string { return format(t, dayLayout+" Jan 15:04") }

// DaySecond is like Day with seconds.
func DaySecond(t policy.Time) string { return format(t, dayLayout+" 15:04:05") }

func format(t policy.Time, layout string) string {
	if t == 0 {
		return figures.Unknown
	}
	return t.Std().Format(layout)
}
