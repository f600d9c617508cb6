// Package ranges parses lists and ranges of values in flags and plans. All have the same format:
//
//	LIST = ITEM{,ITEM}
//	ITEM = VALUE | FROM..TO | FROM..TO/STEP | FROM..TO@COUNT
//
// Both ends are numbers, percentages or durations, and STEP is the difference of two values in the
// same unit. COUNT is the number of values including both ends, 7 by default. The ratio of
// consecutive values is constant if TO is at least ten times FROM, otherwise their difference is.
// [Numbers] parses integers such as seeds.
package ranges

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/policy/figures"
	"github.com/spotter-dev/spotter/policy/portable"
)

const (
	// CountDefault is the number of values of a range with neither a step nor a count.
	CountDefault = 7

	valuesMax = 1000

	// factorsFrom is the minimum ratio of the ends of a range for values with a constant ratio.
	factorsFrom = 10
)

// ErrKind is wrapped by the error for a text that does not have the format of a range.
var ErrKind = errors.New("not a range of numbers, percents or lengths of time, as 1m..2h, 0..1/0.1 or 5%..50%@4")

// The units of values: no unit, percent, and durations, which are stored in seconds.
const (
	number  = ""
	percent = "%"
	length  = "time"
)

// A Range contains the values of a setting between two ends.
type Range struct {
	from, to float64
	unit     string
	values   []string
	stated   bool // whether it has a step or a count
}

// Parse parses FROM..TO, FROM..TO/STEP or FROM..TO@COUNT.
func Parse(text string) (Range, error) {
	r, why := parse(text)
	switch {
	case errors.Is(why, ErrKind):
		return r, fmt.Errorf("%q is %w", text, why)
	case why != nil:
		return r, fmt.Errorf("%q: %w", text, why)
	}
	return r, nil
}

func parse(text string) (r Range, err error) {
	span, step, stepped := strings.Cut(text, "/")
	span, count, counted := strings.Cut(span, "@")
	first, last, ok := strings.Cut(span, "..")
	if !ok || !r.ends(first, last) {
		return r, ErrKind
	}
	switch r.stated = stepped || counted; {
	case r.from >= r.to:
		return r, fmt.Errorf("%s is not below %s", first, last)
	case stepped && counted:
		return r, errors.New("it states a step and a count: leave one of them out")
	case stepped:
		err = r.step(step)
	case counted:
		var n int
		if n, err = strconv.Atoi(count); err != nil || n < 2 || n > valuesMax {
			return r, fmt.Errorf("%q is not a number of values from 2 to %d", count, valuesMax)
		}
		r.count(n, first, last)
	default:
		r.count(CountDefault, first, last)
	}
	return r, err
}

// ends parses both ends and detects their unit.
func (r *Range) ends(first, last string) bool {
	for _, r.unit = range []string{number, percent, length} {
		var a, b bool
		r.from, a = r.read(first)
		r.to, b = r.read(last)
		if a && b {
			return true
		}
	}
	return false
}

// read parses a value in the unit of the range.
func (r *Range) read(text string) (x float64, ok bool) {
	if r.unit == length {
		d, err := time.ParseDuration(text)
		return d.Seconds(), err == nil
	}
	digits, ok := strings.CutSuffix(text, r.unit)
	x, err := strconv.ParseFloat(digits, 64)
	return x, ok && err == nil && !math.IsNaN(x) && !math.IsInf(x, 0)
}

// step sets the values of a range with a step.
func (r *Range) step(text string) error {
	d, ok := r.read(text)
	if _, err := strconv.ParseFloat(text, 64); !ok && err == nil {
		return fmt.Errorf("the step %s has no unit: write one, as the ends have it, or @%s for %s values", text, text, text)
	}
	switch {
	case !ok:
		return ErrKind
	case !(d > 0):
		return fmt.Errorf("the step %s is not above 0", text)
	case (r.to-r.from)/d >= valuesMax:
		return fmt.Errorf("it has more than %d values", valuesMax)
	}
	// Values have as many decimals as the range, so that 0..1/0.1 has 0.3 rather than
	// 0.30000000000000004.
	digits := max(decimals(r.from), decimals(d))
	for i := 0; ; i++ {
		x := r.from + float64(float64(i)*d)
		if x > r.to+float64(d*1e-6) {
			return nil
		}
		r.values = append(r.values, r.exact(x, digits))
	}
}

// count sets n values including both ends, which keep their text. Values that are equal after
// rounding are listed once.
func (r *Range) count(n int, first, last string) {
	for i := range n {
		r.values = append(r.values, r.rounded(r.at(float64(i)/float64(n-1))))
	}
	r.values[0], r.values[n-1] = first, last
	r.values = slices.Compact(r.values)
}

// Values returns the values in ascending order.
func (r *Range) Values() []string { return slices.Clone(r.values) }

// At returns the value at position part of the range, in [0, 1). If the range has a step or a
// count, it is one of its values.
func (r *Range) At(part float64) string {
	if r.stated {
		return r.values[int(part*float64(len(r.values)))]
	}
	return r.rounded(r.at(part))
}

// at returns the exact value at position part of the range.
func (r *Range) at(part float64) float64 {
	if r.from > 0 && r.to >= factorsFrom*r.from {
		return float64(r.from * portable.Pow(r.to/r.from, part))
	}
	return r.from + float64((r.to-r.from)*part)
}

// rounded formats a value that is rounded to what a person would choose.
func (r *Range) rounded(x float64) string {
	switch whole := r.from == math.Trunc(r.from) && r.to == math.Trunc(r.to); {
	case r.unit == length:
		return figures.Exact(time.Duration(x * float64(time.Second)).Round(roundTo(x)))
	case r.unit == percent, whole && r.to-r.from > 1:
		return strconv.FormatFloat(x, 'f', 0, 64) + r.unit
	}
	short, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 3, 64), 64)
	return strconv.FormatFloat(short, 'f', -1, 64)
}

// exact formats a value with up to digits decimals.
func (r *Range) exact(x float64, digits int) string {
	if r.unit == length {
		return figures.Exact(time.Duration(math.Round(x * float64(time.Second))))
	}
	text := strconv.FormatFloat(x, 'f', digits, 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text + r.unit
}

// decimals returns the number of decimals of x.
func decimals(x float64) int {
	_, behind, _ := strings.Cut(strconv.FormatFloat(x, 'f', -1, 64), ".")
	return len(behind)
}

// roundTo returns the unit to which a duration of the given seconds is rounded.
func roundTo(seconds float64) time.Duration {
	step := time.Second
	for _, s := range []struct{ from, step time.Duration }{
		{time.Minute, 5 * time.Second}, {3 * time.Minute, 30 * time.Second}, {15 * time.Minute, time.Minute},
		{30 * time.Minute, 5 * time.Minute}, {6 * time.Hour, 30 * time.Minute}, {24 * time.Hour, time.Hour},
	} {
		if time.Duration(seconds*float64(time.Second)) >= s.from {
			step = s.step
		}
	}
	return step
}

// Values parses a list of values and ranges.
func Values(list string) ([]string, error) {
	var out []string
	for _, item := range strings.Split(list, ",") {
		item = strings.TrimSpace(item)
		values := []string{item}
		if strings.Contains(item, "..") {
			r, err := Parse(item)
			if err != nil {
				return nil, err
			}
			values = r.values
		}
		for _, v := range values {
			switch {
			case v == "":
				return nil, fmt.Errorf("%q: an item of the list is empty", list)
			case slices.Contains(out, v):
				return nil, fmt.Errorf("%q: %s is named twice", list, v)
			}
			out = append(out, v)
		}
	}
	return out, nil
}

// Product returns all combinations of one value of each list; the last list varies fastest. Without
// lists it returns one empty combination. It may stop early once there are more than max
// combinations.
func Product[T any](lists [][]T, max int) [][]T {
	out := [][]T{nil}
	for _, list := range lists {
		var next [][]T
		for _, before := range out {
			for _, v := range list {
				next = append(next, append(slices.Clone(before), v))
			}
		}
		if out = next; len(out) > max {
			break
		}
	}
	return out
}
