package input

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/spotter-dev/spotter/internal/ranges"
	"github.com/spotter-dev/spotter/policy/registry"
	"github.com/spotter-dev/spotter/scenarios"
)

// PoliciesVar defines a flag for a list of policies. Repeated flags extend the list.
func PoliciesVar(flags *pflag.FlagSet, list *string, name, value, usage string) {
	*list = value
	flags.Var(&policyList{list: list}, name, usage)
}

// A policyList is the value of a flag from PoliciesVar.
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

// Set extends the list, or replaces the default.
func (l *policyList) Set(text string) error {
	if l.given {
		text = *l.list + "," + text
	}
	*l.list, l.given = text, true
	return nil
}

// Type implements pflag.Value.
func (l *policyList) Type() string { return "string" }

// ParsePolicies parses the list in --policies. The word all means every named policy except the one
// that other manifests choose. A parameter whose value is a range in the format of [ranges.Parse]
// means one policy for each value of the range.
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

// firsts returns specs without duplicates: a list with all and a named policy has that policy once.
func firsts(specs []string) []string {
	var out []string
	for _, s := range specs {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// policiesMax is the maximum number of policies that one spec with ranges may expand to.
const policiesMax = 1000

// expand returns the policies of a spec whose parameters may be ranges.
func expand(spec string) ([]string, error) {
	var parts [][]string
	for i, part := range strings.Split(spec, ":") {
		values := []string{part}
		if key, value, ok := strings.Cut(part, "="); ok && i > 0 && strings.Contains(value, "..") {
			r, err := ranges.Parse(value)
			if err != nil && !errors.Is(err, ranges.ErrKind) { // paths may contain two dots too
				return nil, fmt.Errorf("%s: %w", spec, err)
			}
			if err == nil {
				values = after(key+"=", r.Values())
			}
		}
		parts = append(parts, values)
	}
	all := ranges.Product(parts, policiesMax)
	if len(all) > policiesMax {
		return nil, fmt.Errorf("%q means more than %d policies", spec, policiesMax)
	}
	var out []string
	for _, x := range all {
		out = append(out, strings.Join(x, ":"))
	}
	return out, nil
}

// PolicyAdvice explains what to do about a policy that cannot be created.
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
