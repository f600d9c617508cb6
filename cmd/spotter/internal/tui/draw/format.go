package draw

import (
	"strconv"
	"time"

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

var weekdays = [...]string{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"}

// Day returns the day and the time of an instant in UTC, as "Wed 7 14:05": a week
// with its warm-up has two days of one name. An instant that is not set is a dash.
func Day(t policy.Time) string {
	if t == 0 {
		return figures.Unknown
	}
	s := t.Std()
	return day(s) + " " + two(s.Hour()) + ":" + two(s.Minute())
}

// Date returns an instant as Day does, with its month: "Wed 7 Jan 14:05".
func Date(t policy.Time) string {
	if t == 0 {
		return figures.Unknown
	}
	s := t.Std()
	return day(s) + s.Format(" Jan ") + two(s.Hour()) + ":" + two(s.Minute())
}

// day returns the day of an instant, as "Wed 7".
func day(s time.Time) string { return weekdays[s.Weekday()] + " " + strconv.Itoa(s.Day()) }

// DaySecond returns an instant as Day does, with its seconds.
func DaySecond(t policy.Time) string {
	if t == 0 {
		return figures.Unknown
	}
	return Day(t) + ":" + two(t.Std().Second())
}

func two(n int) string { return string([]byte{'0' + byte(n/10), '0' + byte(n%10)}) }
