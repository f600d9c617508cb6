package screen

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// errMoment is wrapped by every error of parseMoment.
var errMoment = errors.New(`write "wed 14:00", "14:00", "+36h", "-90m", "2026-01-07" or "2026-01-07T14:00:00Z"`)

// parseMoment parses a time that a viewer typed: an instant in RFC 3339, a date, a weekday and a
// time of day, a time of day on the day shown, or a signed duration from the time shown. A weekday
// is the first one since from, so that "wed" does not depend on the time shown; a later one is
// reached by its date. All times are UTC.
func parseMoment(s string, from, now policy.Time) (policy.Time, error) {
	s = strings.TrimSpace(s)
	if s == "" {
		return 0, errMoment
	}
	if t, err := time.Parse(time.RFC3339, strings.ToUpper(s)); err == nil {
		return policy.TimeOf(t), nil
	}
	for _, layout := range []string{time.DateOnly, "2006-01-02 15:04"} {
		if t, err := time.Parse(layout, s); err == nil {
			return policy.TimeOf(t), nil
		}
	}
	if s[0] == '+' || s[0] == '-' {
		d, err := parseLength(s[1:])
		if err != nil {
			return 0, fmt.Errorf("%q is not a duration: %w", s, errMoment)
		}
		if s[0] == '-' {
			d = -d
		}
		return now.Add(d), nil
	}
	return parseWeekday(strings.ToLower(s), from, now)
}

// parseLength parses a duration, in which d is a day.
func parseLength(s string) (time.Duration, error) {
	days, rest, ok := strings.Cut(s, "d")
	if !ok {
		return time.ParseDuration(s)
	}
	whole, err := time.ParseDuration(days + "h")
	if err != nil || rest == "" {
		return 24 * whole, err
	}
	part, err := time.ParseDuration(rest)
	return 24*whole + part, err
}

// parseWeekday parses "wed", "wed 14:00" and "14:00".
func parseWeekday(s string, from, now policy.Time) (policy.Time, error) {
	word, clock, two := strings.Cut(s, " ")
	day, known := weekday(word)
	switch {
	case known && !two:
		clock = "00:00"
	case !known && !two:
		clock = word
	case !known:
		return 0, fmt.Errorf("%q is not a day of the week: %w", word, errMoment)
	}
	at, err := time.Parse("15:04", strings.TrimSpace(clock))
	if err != nil {
		return 0, fmt.Errorf("%q is not a time: %w", s, errMoment)
	}
	since := time.Duration(at.Hour())*time.Hour + time.Duration(at.Minute())*time.Minute
	if !known {
		return policy.TimeOf(midnight(now.Std())).Add(since), nil
	}
	first := from.Std()
	ahead := (int(day) - int(first.Weekday()) + 7) % 7
	t := policy.TimeOf(midnight(first).AddDate(0, 0, ahead)).Add(since)
	if t < from {
		t = t.Add(7 * 24 * time.Hour)
	}
	return t, nil
}

func midnight(t time.Time) time.Time { return t.Truncate(24 * time.Hour) }

// weekday parses the name of a weekday or at least its first three letters.
func weekday(s string) (time.Weekday, bool) {
	if len(s) < 3 {
		return 0, false
	}
	for d := time.Sunday; d <= time.Saturday; d++ {
		if strings.HasPrefix(strings.ToLower(d.String()), s) {
			return d, true
		}
	}
	return 0, false
}
