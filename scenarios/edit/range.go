package edit

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/policy/portable"
)

const (
	// StepsDefault is how many values a range stands for that does not say.
	StepsDefault = 7

	stepsMax = 35

	// logFrom is the ratio of the ends of a range from which its steps are factors.
	logFrom = 10
)

// A Range is the values of a setting between two ends: lengths of time, percents or numbers.
type Range struct {
	first, last string
	steps       int
	measure
}

// ParseRange reads FROM..TO[/STEPS].
func ParseRange(text string) (Range, error) {
	var err error
	r := Range{steps: StepsDefault}
	span, count, stated := strings.Cut(text, "/")
	if stated {
		if r.steps, err = strconv.Atoi(count); err != nil || r.steps < 2 || r.steps > stepsMax {
			return r, fmt.Errorf("%q is not a number of steps from 2 to %d", count, stepsMax)
		}
	}
	var ok bool
	if r.first, r.last, ok = strings.Cut(span, ".."); !ok {
		return r, fmt.Errorf("%q is not a range such as 1m..2h or 5%%..50%%/4", span)
	}
	r.measure, err = measureOf(r.first, r.last)
	return r, err
}

// Values returns its steps: at equal factors where the range is wide, else at equal distances.
// Values that are rounded to the same stand once.
func (r *Range) Values() []string {
	var values []string
	for i := range r.steps {
		values = append(values, r.At(float64(i)/float64(r.steps-1)))
	}
	values[0], values[r.steps-1] = r.first, r.last
	return slices.Compact(values)
}

// At returns the value at a part of the range, 0 being its first end and 1 its last.
func (r *Range) At(part float64) string { return r.text(r.at(part)) }

// A measure says how the values between two ends are counted and written.
type measure struct {
	from, to float64
	text     func(float64) string
}

// measureOf finds what two ends are: lengths of time, percents, or numbers.
func measureOf(from, to string) (measure, error) {
	var m measure
	both := func(read func(string) (float64, error)) bool {
		a, errA := read(from)
		b, errB := read(to)
		m.from, m.to = a, b
		return errA == nil && errB == nil && !math.IsNaN(a+b) && !math.IsInf(a+b, 0)
	}
	number := func(s string) (float64, error) { return strconv.ParseFloat(s, 64) }
	percent := func(s string) (float64, error) {
		digits, ok := strings.CutSuffix(s, "%")
		if !ok {
			return 0, strconv.ErrSyntax
		}
		return number(digits)
	}
	length := func(s string) (float64, error) {
		d, err := time.ParseDuration(s)
		return d.Seconds(), err
	}
	switch {
	case both(number):
		digits := -1
		if whole := m.from == math.Trunc(m.from) && m.to == math.Trunc(m.to); whole && m.to-m.from > 1 {
			digits = 0
		}
		m.text = func(x float64) string { return rounded(x, digits) }
	case both(percent):
		m.text = func(x float64) string { return rounded(x, 0) + "%" }
	case both(length):
		m.text = lengthText
	default:
		return m, fmt.Errorf("%q and %q are not two lengths of time, two percents or two numbers", from, to)
	}
	if m.from >= m.to {
		return m, fmt.Errorf("%s is not below %s", from, to)
	}
	return m, nil
}

// at returns the value at a part of the range.
func (m *measure) at(part float64) float64 {
	if m.from > 0 && m.to >= logFrom*m.from {
		return float64(m.from * portable.Pow(m.to/m.from, part))
	}
	return m.from + float64((m.to-m.from)*part)
}

// rounded writes x with so many decimals, or for −1 with three digits.
func rounded(x float64, digits int) string {
	if digits >= 0 {
		return strconv.FormatFloat(x, 'f', digits, 64)
	}
	short, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 3, 64), 64)
	return strconv.FormatFloat(short, 'f', -1, 64)
}

// lengthText writes seconds as a length of time, rounded as one would choose it.
func lengthText(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	step := time.Second
	for _, s := range []struct{ from, step time.Duration }{
		{time.Minute, 5 * time.Second}, {3 * time.Minute, 30 * time.Second}, {15 * time.Minute, time.Minute}, {30 * time.Minute, 5 * time.Minute}, {6 * time.Hour, 30 * time.Minute}, {24 * time.Hour, time.Hour},
	} {
		if d >= s.from {
			step = s.step
		}
	}
	text := d.Round(step).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
