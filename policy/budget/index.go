package budget

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// An index holds which pods count in which budgets. A budget is asked about the templates
// that carry a label which it requires, so that its cost does not grow with all others.
type index struct {
	// of is by template and templates by budget, both ascending: the pairs in which the
	// budget counts the pods of the template.
	of        [][]match
	templates [][]match

	byLabel map[labelKey][]int32 // budgets, ascending
	found   []int32
}

// A match is the other half of such a pair, and what one pod uses in thousandths of a
// device.
type match struct {
	at int32
	n  int64
}

// A labelKey is a label that budgets of a namespace require; without a key it is for those
// that require none.
type labelKey struct{ namespace, key, value string }

// build fills x for the templates and budgets, in the place of what it held. Budgets that
// cannot be read count nothing.
func (x *index) build(templates []policy.Template, budgets []policy.Budget) {
	x.of, x.templates = emptied(x.of, len(templates)), emptied(x.templates, len(budgets))
	if x.byLabel == nil {
		x.byLabel = map[labelKey][]int32{}
	}
	clear(x.byLabel)
	for i := range budgets {
		if !budgets[i].Invalid {
			x.add(int32(i), &budgets[i])
		}
	}
	for i := range templates {
		t := &templates[i]
		x.found = append(x.found[:0], x.byLabel[labelKey{namespace: t.Namespace}]...)
		for _, l := range t.Labels {
			x.found = append(x.found, x.byLabel[labelKey{t.Namespace, l.Key, l.Value}]...)
		}
		slices.Sort(x.found)
		for _, k := range x.found {
			if n := budgets[k].Counts(t); n > 0 {
				x.of[i] = append(x.of[i], match{k, n})
				x.templates[k] = append(x.templates[k], match{int32(i), n})
			}
		}
	}
}

// add enters budget i under the labels of its first requirement of a value.
func (x *index) add(i int32, b *policy.Budget) {
	keys := []labelKey{{namespace: b.Namespace}}
	if k := slices.IndexFunc(b.Selector.Requirements, func(q policy.Requirement) bool { return q.Op == policy.OpIn }); k >= 0 && !b.Selector.Everything {
		q := &b.Selector.Requirements[k]
		keys = keys[:0]
		for _, v := range q.Values {
			keys = append(keys, labelKey{b.Namespace, q.Key, v})
		}
	}
	for _, key := range keys {
		if list := x.byLabel[key]; len(list) == 0 || list[len(list)-1] != i { // a value may be listed twice
			x.byLabel[key] = append(list, i)
		}
	}
}

// emptied returns n empty lists in the memory of lists.
func emptied[T any](lists [][]T, n int) [][]T {
	lists = slices.Grow(lists[:0], n)[:n]
	for i := range lists {
		lists[i] = lists[i][:0]
	}
	return lists
}
