package report

import (
	"github.com/spotter-dev/spotter/policy/figures"
)

// percent formats a percentage.
func percent(x float64) string { return figures.Percent(x, 1) }

// share formats a fraction as a percentage.
func share(x float64) string { return figures.Share(x, 1) }

// availability formats a fraction that is close to 1.
func availability(x float64) string { return figures.Share(x, 3) }

// rate formats a number per pod-day.
func rate(x float64) string { return figures.Number(x, 3) }

// short removes the middle of a name that is too long for a picture. The tables contain the full
// name.
func short(name string) string {
	const most, head, tail = 26, 13, 12
	r := []rune(name)
	if len(r) <= most {
		return name
	}
	return string(r[:head]) + "…" + string(r[len(r)-tail:])
}
