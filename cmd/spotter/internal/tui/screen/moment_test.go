package screen

import (
	"errors"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// TestMoment reads every way to write a time, from Thursday noon of a run that
// began on Monday.
func TestMoment(t *testing.T) {
	now := monday.Add(84 * time.Hour)
	for text, want := range map[string]time.Duration{
		"wed 14:00":                 62 * time.Hour,
		"Wednesday 14:00":           62 * time.Hour,
		"mon":                       0,
		"sun 23:30":                 6*24*time.Hour + 23*time.Hour + 30*time.Minute,
		"14:00":                     86 * time.Hour,
		"+36h":                      120 * time.Hour,
		"-90m":                      82*time.Hour + 30*time.Minute,
		"+2d":                       132 * time.Hour,
		"-1d12h":                    48 * time.Hour,
		"2026-01-07":                48 * time.Hour,
		"2026-01-07 06:15":          54*time.Hour + 15*time.Minute,
		"2026-01-07T06:15:00Z":      54*time.Hour + 15*time.Minute,
		"2026-01-07t06:15:00+01:00": 53*time.Hour + 15*time.Minute,
	} {
		if got, err := parseMoment(text, monday, now); err != nil || got != monday.Add(want) {
			t.Errorf("%q is %v, %v, not %v", text, got, err, monday.Add(want))
		}
	}
	for _, text := range []string{"", " ", "we 14:00", "wed 25:00", "wed 14", "soon", "+", "-x", "+3w", "2026-13-01", "today 14:00"} {
		if got, err := parseMoment(text, monday, now); !errors.Is(err, errMoment) {
			t.Errorf("%q is %v, %v, and should be refused", text, got, err)
		}
	}
	// If a run starts at noon, the evening of that weekday is on the first day and the morning a
	// week later.
	noon := monday.Add(12 * time.Hour)
	for text, want := range map[string]policy.Time{"mon 18:00": monday.Add(18 * time.Hour),
		"mon 06:00": monday.Add(7*24*time.Hour + 6*time.Hour)} {
		if got, err := parseMoment(text, noon, now); err != nil || got != want {
			t.Errorf("%q is %v, %v, not %v", text, got, err, want)
		}
	}
}
