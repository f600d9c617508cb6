package ranges

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Numbers parses a list of integers and ranges of integers, with at most max numbers in total. A
// range has step 1, or the step after a slash; A-B means A..B. A list of one integer is a count: N
// means 1-N. The single number N is written N-N.
func Numbers(list string, max int) ([]uint64, error) {
	text := list
	if Counts(list) {
		text = "1-" + list
	}
	var out []uint64
	seen := map[uint64]bool{}
	for _, item := range strings.Split(text, ",") {
		first, last, step, err := span(strings.TrimSpace(item))
		switch {
		case err != nil && item != list && item != text:
			return nil, fmt.Errorf("%q: %q: %w", list, item, err)
		case err != nil:
			return nil, fmt.Errorf("%q: %w", list, err)
		case last == 0 && text != list:
			return nil, fmt.Errorf("%q: it is not above 0", list)
		case last < first:
			return nil, fmt.Errorf("%q: %d is below %d", list, last, first)
		case (last-first)/step >= uint64(max-len(out)):
			return nil, fmt.Errorf("%q: these are more than %d numbers", list, max)
		}
		for n := range (last-first)/step + 1 {
			x := first + n*step
			if seen[x] {
				return nil, fmt.Errorf("%q: %d is named twice", list, x)
			}
			seen[x], out = true, append(out, x)
		}
	}
	return out, nil
}

// Counts reports whether a list is a single integer, which is a count.
func Counts(list string) bool { return !strings.ContainsAny(list, "-.,/") }

// span parses an integer or a range of integers.
func span(item string) (first, last, step uint64, err error) {
	from, by, stepped := strings.Cut(item, "/")
	from, to, isRange := strings.Cut(strings.Replace(from, "..", "-", 1), "-")
	if !isRange {
		to = from
	}
	if !stepped {
		by = "1"
	}
	for _, x := range []struct {
		text string
		to   *uint64
	}{{from, &first}, {to, &last}, {by, &step}} {
		*x.to, err = strconv.ParseUint(x.text, 10, 64)
		switch {
		case errors.Is(err, strconv.ErrRange):
			return 0, 0, 0, fmt.Errorf("%s is too large a number", x.text)
		case err != nil:
			return 0, 0, 0, errors.New("it is neither a whole number nor a range of them, as 5-9")
		}
	}
	if step == 0 || stepped && !isRange {
		return 0, 0, 0, errors.New("it is not a range with a step above 0, as 5-9/2")
	}
	return first, last, step, nil
}

// Text formats numbers in the format of [Numbers].
func Text(numbers []uint64) string {
	var items []string
	for len(numbers) > 0 {
		n := 1
		for n < len(numbers) && numbers[n] == numbers[n-1]+1 {
			n++
		}
		items = append(items, fmt.Sprintf("%d-%d", numbers[0], numbers[n-1]))
		numbers = numbers[n:]
	}
	return strings.Join(items, ",")
}
