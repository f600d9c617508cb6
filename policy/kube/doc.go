// Package kube converts Kubernetes objects, such as pod specifications, disruption budgets,
// annotations and labels, into the types of the engine. Scenarios and running clusters use the same
// code, so that results from a scenario apply to a cluster.
package kube

import (
	"maps"
	"slices"
	"strconv"

	"github.com/spotter-dev/spotter/policy"
)

// A Fail reports an error in a field. The path leads from the object to the field; "[i]" refers to
// the i-th entry of a list. A Fail may be nil.
type Fail func(path []string, format string, args ...any)

func (f Fail) tell(path []string, format string, args ...any) {
	if f != nil {
		f(path, format, args...)
	}
}

// Labels returns m as a list, ascending by key. It returns nil if m is empty.
func Labels(m map[string]string) []policy.Label {
	if len(m) == 0 {
		return nil
	}
	all := make([]policy.Label, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		all = append(all, policy.Label{Key: k, Value: m[k]})
	}
	return all
}

// Index returns the path element for the i-th entry of a list.
func Index(i int) string { return "[" + strconv.Itoa(i) + "]" }

// join returns a new slice with the elements of path followed by more.
func join(path []string, more ...string) []string { return append(slices.Clip(path), more...) }
