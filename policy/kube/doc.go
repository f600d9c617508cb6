// Package kube reads Kubernetes objects as the engine takes them: pod
// specifications, disruption budgets, annotations, labels. A scenario and a running
// cluster are read by the same code, so that what was tried in one holds in the
// other.
package kube

import (
	"maps"
	"slices"
	"strconv"

	"github.com/spotter-dev/spotter/policy"
)

// A Fail is called with what is wrong with a field, by its path in the object; the i-th entry of a
// list is "[i]" in it. A Fail may be nil.
type Fail func(path []string, format string, args ...any)

func (f Fail) tell(path []string, format string, args ...any) {
	if f != nil {
		f(path, format, args...)
	}
}

// Labels returns m as a list, ascending by key; nil when it is empty.
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

// Index is the part of a path that refers to the i-th entry of a list.
func Index(i int) string { return "[" + strconv.Itoa(i) + "]" }

// join returns path with more behind it, in memory of its own.
func join(path []string, more ...string) []string { return append(slices.Clip(path), more...) }
