package report

import (
	"github.com/spotter-dev/spotter/policy/figures"
)

// percent writes a number of percents.
func percent(x float64) string { return figures.Percent(x, 1) }

// share writes a share as percent.
func share(x float64) string { return figures.Share(x, 1) }

// availability writes a share that is close to 1.
func availability(x float64) string { return figures.Share(x, 3) }

// rate writes a number per pod-day.
func rate(x float64) string { return figures.Number(x, 3) }

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
