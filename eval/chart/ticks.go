package chart

import (
	"math"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy/figures"
)

// A tick is a mark on an axis. A tick without a label is shorter.
type tick struct {
	value float64
	label string
}

// ticksMost is the approximate maximum number of labels of an axis.
const ticksMost = 7

// ticks returns the ticks between low and high.
func (a *Axis) ticks(low, high float64) []tick {
	switch {
	case a.Time:
		return timeTicks(low, high)
	case a.Log:
		return logTicks(low, high, a.Percent)
	}
	return roundTicks(low, high, a.Percent)
}

// number formats v with as many decimals as step requires.
func number(v, step float64, percent bool) string {
	if percent {
		v, step = v*100, step*100
	}
	digits := 0
	for s := step; digits < 9 && math.Abs(s-math.Round(s)) > 1e-9*s; digits++ {
		s *= 10
	}
	if percent {
		return figures.Percent(v, digits)
	}
	return figures.Number(v, digits)
}

// roundTicks returns ticks at multiples of 1, 2 or 5 times a power of ten.
func roundTicks(low, high float64, percent bool) []tick {
	step := roundStep((high - low) / ticksMost)
	var ticks []tick
	for k := math.Ceil(low/step - 1e-9); float64(k*step) <= high+float64(1e-9*step); k++ {
		v := float64(k * step)
		ticks = append(ticks, tick{v, number(v, step, percent)})
	}
	return ticks
}

// roundStep returns the least number ≥ raw that is 1, 2 or 5 times a power of ten.
func roundStep(raw float64) float64 {
	power := 1.0
	for power > raw {
		power /= 10
	}
	for power*10 <= raw {
		power *= 10
	}
	for _, m := range [...]float64{1, 2, 5} {
		if power*m >= raw {
			return power * m
		}
	}
	return power * 10
}

// logTicks returns ticks at multiples of powers of ten. It labels the powers and, if there are few,
// also 2 and 5 times them.
func logTicks(low, high float64, percent bool) []tick {
	var ticks []tick
	labels := 0
	power := 1.0
	for power > low {
		power /= 10
	}
	for power*10 <= low {
		power *= 10
	}
	decades := 0
	for p := power; p <= high; p *= 10 {
		decades++
	}
	// Beyond eight decades only every other power is labelled.
	for k, p := 0, power; p <= high*1.0000001; k, p = k+1, p*10 {
		for m := 1.0; m < 10; m++ {
			v := float64(p * m)
			if v < low*0.9999999 || v > high*1.0000001 {
				continue
			}
			mark := tick{value: v}
			named := m == 1 && (decades <= 8 || k%2 == 0) || decades <= 3 && (m == 2 || m == 5)
			if named {
				mark.label = number(v, v, percent)
				labels++
			}
			ticks = append(ticks, mark)
		}
	}
	if labels < 2 { // a narrow range contains no power of ten
		return roundTicks(low, high, percent)
	}
	return ticks
}

// timeTicks returns ticks at full minutes, hours, days or months in UTC.
func timeTicks(low, high float64) []tick {
	const hour, day = 3600.0, 86400.0
	steps := []float64{60, 300, 900, 1800, hour, 3 * hour, 6 * hour, 12 * hour, day, 2 * day, 5 * day, 7 * day, 10 * day,
		14 * day}
	at := slices.IndexFunc(steps, func(s float64) bool { return (high-low)/s <= ticksMost+1 })
	if at < 0 {
		return monthTicks(low, high)
	}
	step := steps[at]
	var ticks []tick
	for k := math.Ceil(low / step); float64(k*step) <= high; k++ {
		v := float64(k * step)
		ticks = append(ticks, tick{v, time.Unix(int64(v), 0).UTC().Format(layout(v, len(ticks) == 0))})
	}
	return ticks
}

// layout returns the time format of a tick: the date for midnight, otherwise the time, with the
// date if it is the first tick.
func layout(at float64, first bool) string {
	switch u := time.Unix(int64(at), 0).UTC(); {
	case u.Hour() == 0 && u.Minute() == 0:
		return "Jan 2"
	case first:
		return "Jan 2 15:04"
	}
	return "15:04"
}

func monthTicks(low, high float64) []tick {
	begin := time.Unix(int64(low), 0).UTC()
	months := int((high-low)/(30*86400))/ticksMost + 1
	var ticks []tick
	for at := time.Date(begin.Year(), begin.Month(), 1, 0, 0, 0, 0,
		time.UTC); float64(at.Unix()) <= high; at = at.AddDate(0, months, 0) {
		if v := float64(at.Unix()); v >= low {
			ticks = append(ticks, tick{v, at.Format("Jan 2006")})
		}
	}
	return ticks
}
