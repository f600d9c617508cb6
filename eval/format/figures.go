package format

import (
	"strconv"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
)

// Formatters for cells below a heading that names the unit.
func percent(x float64) string { return figures.Number(x, 1) }
func share(x float64) string   { return percent(x * 100) }
func rate(x float64) string    { return figures.Number(x, 3) }
func points(x float64) string  { return figures.Signed(x, 1) }

func percents(x float64) string { return figures.Percent(x, 1) }

// Instant formats t to the minute, or to the day at midnight.
func Instant(t policy.Time) string {
	if u := t.Std(); u.Hour() != 0 || u.Minute() != 0 {
		return u.Format("2006-01-02 15:04")
	}
	return t.Std().Format(time.DateOnly)
}

// textOf formats a value, or a placeholder for an unknown one.
func textOf(v eval.Value, format func(float64) string) string {
	if !v.Known {
		return figures.Unknown
	}
	return format(v.V)
}

// seedList formats seeds, with consecutive ones as ranges.
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

// firstLine returns the text before the first line break of s.
func firstLine(s string) string {
	first, _, _ := strings.Cut(s, "\n")
	return first
}
