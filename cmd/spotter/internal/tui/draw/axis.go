package draw

import (
	"math"
	"strconv"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
)

// A scale converts values to dot rows.
type scale struct {
	low, high float64 // bounds of the axis; their decimal logarithms if log is set
	log       bool
	dots      int // number of dot rows
}

// y returns the dot row of v, counted from the top. It may be outside the plot, as for NaN.
func (s scale) y(v float64) int {
	if s.log {
		v = math.Log10(v)
	}
	f := (s.high - v) / (s.high - s.low) * float64(s.dots-1)
	if math.IsNaN(f) {
		return -1e6
	}
	return int(math.Round(min(max(f, -1e6), 1e6)))
}

// scaleOf returns the scale that shows low to high on dots dot rows, with a margin.
func scaleOf(low, high float64, log bool, dots int) scale {
	if log = log && low > 0; log {
		low, high = math.Log10(low), math.Log10(high)
	}
	if pad := (high - low) * 0.04; pad > 0 {
		low, high = low-pad, high+pad
	} else {
		pad = max(math.Abs(high)*0.1, 1e-6)
		low, high = low-pad, high+pad
	}
	return scale{low: low, high: high, log: log, dots: max(dots, 2)}
}

// ticks returns at most about n round values on the scale, ascending, and the step between them,
// which is 0 on a logarithmic scale.
func (s scale) ticks(n int) (values []float64, step float64) {
	if s.log {
		digits, decades := []float64{1, 2, 5}, s.high-s.low
		if decades > 3 {
			digits = digits[:1]
		}
		for e := math.Floor(s.low); e <= s.high; e += max(math.Ceil(decades/20), 1) {
			for _, m := range digits {
				if l := e + math.Log10(m); l >= s.low && l <= s.high {
					values = append(values, m*math.Pow(10, e))
				}
			}
		}
		if len(values) >= 2 {
			return values, 0
		}
		values = values[:0]
	}
	low, high := s.low, s.high
	if s.log {
		low, high = math.Pow(10, low), math.Pow(10, high)
	}
	step = roundStep((high - low) / float64(max(n, 1)))
	for v := math.Ceil(low/step) * step; v <= high && len(values) < 50; v += step {
		if math.Abs(v) < step/1000 {
			v = 0
		}
		values = append(values, v)
	}
	return values, step
}

// roundStep returns the smallest of 1, 2, 2.5 and 5 times a power of ten that is at least x.
func roundStep(x float64) float64 {
	if !(x > 0) || math.IsInf(x, 0) {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(x)))
	for _, m := range []float64{1, 2, 2.5, 5} {
		if m*power >= x*0.9999 {
			return m * power
		}
	}
	return 10 * power
}

// text formats a single value. It returns a dash for NaN.
func (u Unit) text(v float64) string {
	switch {
	case math.IsNaN(v):
		return figures.Unknown
	case u == UnitPrice:
		return Price(policy.Dollars(v))
	case u == UnitDollars:
		return figures.Dollars(v)
	case u == UnitPercent:
		return figures.RoughShare(v)
	default:
		return figures.Number(v, 0)
	}
}

// label formats a value of an axis whose ticks are step apart, in at most seven columns. step is 0
// on a logarithmic axis.
func (u Unit) label(v, step float64) string {
	if u == UnitPercent {
		v, step = v*100, step*100
	}
	if step == 0 {
		step = math.Abs(v)
	}
	decimals := min(max(int(math.Ceil(-math.Log10(step)-1e-9)), 0), 4)
	if scaled := step * math.Pow(10, float64(decimals)); decimals < 4 && math.Abs(scaled-math.Round(scaled)) > 1e-6 {
		decimals++
	}
	if (u == UnitPrice || u == UnitDollars) && decimals == 1 {
		decimals = 2 // show cents
	}
	sign, abs, suffix := "", v, ""
	if v < 0 {
		sign, abs = "−", -v
	}
	switch {
	case abs >= 999_500:
		abs, suffix, decimals = abs/1e6, "M", 1
	case abs >= 9_999.5:
		abs, suffix, decimals = abs/1e3, "k", 1
	}
	for ; ; decimals-- {
		digits := strconv.FormatFloat(abs, 'f', decimals, 64)
		if decimals == 0 {
			digits = figures.Number(abs, 0)
		}
		if text := sign + u.around(digits+suffix); decimals == 0 || Width(text) <= 7 {
			return text
		}
	}
}

// around adds the unit before or after digits.
func (u Unit) around(digits string) string {
	switch u {
	case UnitPrice, UnitDollars:
		return "$" + digits
	case UnitPercent:
		return digits + "%"
	default:
		return digits
	}
}

// A timeTick is a label under a time axis.
type timeTick struct {
	at   policy.Time
	text string
	day  bool // whether it is the start of a day
}

var timeSteps = []time.Duration{
	5 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour,
	24 * time.Hour, 2 * 24 * time.Hour, 7 * 24 * time.Hour, 14 * 24 * time.Hour, 28 * 24 * time.Hour,
}

// timeTicks returns labels for the interval from from to to, in UTC, that fit in w columns.
func timeTicks(from, to policy.Time, w int) []timeTick {
	span := to.Sub(from)
	if span <= 0 || w < 6 {
		return nil
	}
	var ticks []timeTick
	for _, step := range timeSteps {
		need := 8
		if step >= 7*24*time.Hour {
			need = 10
		}
		if int64(span/step)*int64(need) > int64(w) {
			continue
		}
		ms := policy.Time(step / time.Millisecond)
		for at := (from + ms - 1) / ms * ms; at <= to && len(ticks) < w; at += ms {
			ticks = append(ticks, tickAt(at, step))
		}
		break
	}
	return ticks
}

func tickAt(at policy.Time, step time.Duration) timeTick {
	s := at.Std()
	switch {
	case step >= 7*24*time.Hour:
		return timeTick{at, s.Format("2 Jan"), true}
	case s.Hour() == 0 && s.Minute() == 0:
		return timeTick{at, s.Format(dayLayout), true}
	default:
		return timeTick{at, s.Format("15:04"), false}
	}
}

// column returns the column of at if the interval from from to to has w columns. It may be outside
// them.
func column(at, from, to policy.Time, w int) int {
	if to <= from || w <= 0 {
		return -1
	}
	if at == to {
		return w - 1
	}
	f := float64(at-from) / float64(to-from) * float64(w)
	return int(math.Floor(min(max(f, -1e6), 1e6)))
}

// instant returns the instant at the middle of column x. The first and last columns return the ends
// of the interval.
func instant(x int, from, to policy.Time, w int) policy.Time {
	switch {
	case x <= 0 || w <= 1 || to <= from:
		return from
	case x >= w-1:
		return to
	}
	return from + policy.Time(float64(to-from)*(float64(x)+0.5)/float64(w))
}

// drawTicks writes the labels of the time axis on c.
func drawTicks(c Canvas, from, to policy.Time, s Style) {
	free := 0
	for _, t := range timeTicks(from, to, c.w) {
		x := column(t.at, from, to, c.w)
		if x < free || x+Width(t.text) > c.w {
			continue
		}
		style := s
		if t.day {
			style = style.bold()
		}
		free = c.Text(x, 0, t.text, style) + 1
	}
}
