package input

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/spotter-dev/spotter/policy/registry"
	"github.com/spotter-dev/spotter/scenarios"
)

// stepsMax bounds the policies that one range of a parameter may stand for.
const stepsMax = 1000

// PoliciesVar defines a flag for a list of policies. Where it is given again it adds to the
// list.
func PoliciesVar(flags *pflag.FlagSet, list *string, name, value, usage string) {
	*list = value
	flags.Var(&policyList{list: list}, name, usage)
}

// A policyList is the value of such a flag.
type policyList struct {
	list  *string
	given bool
}

// String returns the list.
func (l *policyList) String() string {
	if l.list == nil {
		return ""
	}
	return *l.list
}

// Set adds to the list, or replaces the default.
func (l *policyList) Set(text string) error {
	if l.given {
		text = *l.list + "," + text
	}
	*l.list, l.given = text, true
	return nil
}

// Type is what the flag is called where it is listed.
func (l *policyList) Type() string { return "string" }

// ParsePolicies reads the list of --policies. The word all stands for every
// policy that has a name, but for the one that other manifests choose; and a
// parameter key=A..B/STEP for a policy of each of its values.
func ParsePolicies(list string) ([]string, error) {
	var specs []string
	for _, spec := range strings.Split(list, ",") {
		spec = strings.TrimSpace(spec)
		if spec == All {
			for _, name := range registry.Names() {
				if name != registry.Manifest {
					specs = append(specs, name)
				}
			}
			continue
		}
		steps, err := expand(spec)
		if err != nil {
			return nil, err
		}
		specs = append(specs, steps...)
	}
	if strings.Contains(list, All) {
		specs = firsts(specs)
	}
	return registry.Parse(strings.Join(specs, ","))
}

// firsts returns specs without what was there before: whoever asks for all and
// names one of them wants it once.
func firsts(specs []string) []string {
	var out []string
	for _, s := range specs {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// expand returns the policies of a spec of which parameters may be ranges.
func expand(spec string) ([]string, error) {
	parts := strings.Split(spec, ":")
	for i, part := range parts {
		key, value, ok := strings.Cut(part, "=")
		if i == 0 || !ok || !strings.Contains(value, "..") || !strings.Contains(value, "/") {
			continue
		}
		values, ok := steps(value)
		if !ok {
			continue // a path may have dots and strokes too
		}
		if len(values) == 0 || len(values) > stepsMax {
			return nil, fmt.Errorf("%q in %q is not a range A..B/STEP of 1 to %d steps", part, spec, stepsMax)
		}
		var out []string
		for _, v := range values {
			next := slices.Clone(parts)
			next[i] = key + "=" + v
			rest, err := expand(strings.Join(next, ":"))
			if err != nil {
				return nil, err
			}
			out = append(out, rest...)
		}
		return out, nil
	}
	return []string{spec}, nil
}

// steps returns the values of A..B/STEP, none when it has too many or no end;
// false when it is not of that form.
func steps(value string) (values []string, ok bool) {
	from, rest, _ := strings.Cut(value, "..")
	to, step, _ := strings.Cut(rest, "/")
	var numbers [3]float64
	for i, s := range []string{from, to, step} {
		x, err := strconv.ParseFloat(s, 64)
		if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
			return nil, false
		}
		numbers[i] = x
	}
	a, b, d := numbers[0], numbers[1], numbers[2]
	if !(d > 0) || b < a || (b-a)/d >= stepsMax {
		return nil, true
	}
	// Values are rounded to as many digits as the range was written with, so
	// that 0..1/0.1 holds 0.3 and not 0.30000000000000004.
	digits := max(decimals(from), decimals(step))
	for i := 0; ; i++ {
		x := a + float64(float64(i)*d)
		if x > b+float64(d*1e-6) {
			return values, true
		}
		text := strconv.FormatFloat(x, 'f', digits, 64)
		if strings.Contains(text, ".") {
			text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
		}
		values = append(values, text)
	}
}

// decimals returns the digits behind the point of a number.
func decimals(s string) int {
	_, behind, _ := strings.Cut(s, ".")
	return len(behind)
}

// PolicyAdvice says what to do about a policy that cannot be made.
const PolicyAdvice = "write policies as in --policies on-demand,static:share=0.7"

// Manifests returns the policies that the pools of w name, ascending.
func Manifests(w *scenarios.BoundScenario) []string {
	var names []string
	for i := range w.Pools {
		if n := w.Pools[i].Policy; n != "" && !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	return names
}
