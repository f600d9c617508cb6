package policy

import "slices"

// A SelectorIndex finds the selectors that may match given labels without trying each selector. It
// indexes them by their namespace and one label that they require. The zero value is empty.
type SelectorIndex struct {
	byLabel map[selectorKey][]int32 // ascending
}

// A selectorKey is a label that selectors of a namespace require. An empty key is for selectors
// that do not require one of a list of values.
type selectorKey struct{ namespace, key, value string }

// Reset removes all selectors from x.
func (x *SelectorIndex) Reset() {
	if x.byLabel == nil {
		x.byLabel = map[selectorKey][]int32{}
	}
	clear(x.byLabel)
}

// Add adds s with the number i, which must be greater than all numbers added before.
func (x *SelectorIndex) Add(i int32, namespace string, s *Selector) {
	keys := []selectorKey{{namespace: namespace}}
	if k := slices.IndexFunc(s.Requirements, func(q Requirement) bool { return q.Op == OpIn }); k >= 0 && !s.Everything {
		q := &s.Requirements[k]
		keys = keys[:0]
		for _, v := range q.Values {
			keys = append(keys, selectorKey{namespace, q.Key, v})
		}
	}
	for _, key := range keys {
		if list := x.byLabel[key]; len(list) == 0 || list[len(list)-1] != i { // a value may be listed twice
			x.byLabel[key] = append(list, i)
		}
	}
}

// Candidates returns the numbers of selectors that may match the given labels in a namespace,
// ascending. It includes all selectors that match, and possibly others. It reuses the memory of
// buffer.
func (x *SelectorIndex) Candidates(buffer []int32, namespace string, labels []Label) []int32 {
	found := buffer[:0]
	found = append(found, x.byLabel[selectorKey{namespace: namespace}]...)
	for _, l := range labels {
		found = append(found, x.byLabel[selectorKey{namespace, l.Key, l.Value}]...)
	}
	slices.Sort(found)
	return found
}
