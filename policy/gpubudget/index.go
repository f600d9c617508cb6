package gpubudget

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// An index records which budgets count which pods.
type index struct {
	// of is, by template, the budgets that count its pods, and templates is, by budget, the
	// templates that it counts, both in ascending order.
	of        [][]match
	templates [][]match

	selectors policy.SelectorIndex
	found     []int32
}

// A match is the index of the budget or template, and the use of one pod in thousandths of a
// device.
type match struct {
	at int32
	n  int64
}

// build rebuilds x for the given templates and budgets. Invalid budgets count nothing.
func (x *index) build(templates []policy.Template, budgets []policy.Budget) {
	x.of, x.templates = emptied(x.of, len(templates)), emptied(x.templates, len(budgets))
	x.selectors.Reset()
	for i := range budgets {
		if b := &budgets[i]; !b.Invalid {
			x.selectors.Add(int32(i), b.Namespace, &b.Selector)
		}
	}
	for i := range templates {
		t := &templates[i]
		x.found = x.selectors.Candidates(x.found, t.Namespace, t.Labels)
		for _, k := range x.found {
			if n := budgets[k].Counts(t); n > 0 {
				x.of[i] = append(x.of[i], match{k, n})
				x.templates[k] = append(x.templates[k], match{int32(i), n})
			}
		}
	}
}

// emptied returns n empty lists that reuse the memory of lists.
func emptied[T any](lists [][]T, n int) [][]T {
	lists = slices.Grow(lists[:0], n)[:n]
	for i := range lists {
		lists[i] = lists[i][:0]
	}
	return lists
}
