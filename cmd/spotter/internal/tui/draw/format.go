package draw

import (
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
)

// Price writes a price per hour; [policy.NoPrice] is unknown.
func Price(m policy.Money) string {
	if m < 0 {
		return figures.Unknown
	}
	return figures.Price(m.Float())
}

// PerHour writes a price with its unit, as "$0.0312/h".
func PerHour(m policy.Money) string {
	if m < 0 {
		return figures.Unknown
	}
	return Price(m) + "/h"
}

// dayLayout is a day as "Wed 7", as [time.Time.Format] takes it.
const dayLayout = "Mon 2"

// Day returns the day and the time of an instant in UTC, as "Wed 7 14:05": a week
// with its warm-up has two days of one name. An instant that is not set is a dash.
func Day(t policy.Time) string { return format(t, dayLayout+" 15:04") }

// Date returns an instant as Day does, with its month: "Wed 7 Jan 14:05".
func Date(t policy.Time) string { return format(t, dayLayout+" Jan 15:04") }

// DaySecond returns an instant as Day does, with its seconds.
func DaySecond(t policy.Time) string { return format(t, dayLayout+" 15:04:05") }

func format(t policy.Time, layout string) string {
	if t == 0 {
		return figures.Unknown
	}
	return t.Std().Format(layout)
}
