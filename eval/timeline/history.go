package timeline

import (
	"slices"
	"sort"

	"github.com/spotter-dev/spotter/policy"
)

// A history is a value over time: what[i] from at[i] on. It has an entry for each change only, so
// the value at any instant is found by binary search.
type history[T comparable] struct {
	at   []policy.Time
	what []T
}

// add sets the value to x from t on. Instants must not descend; of several values at the same
// instant, the last one remains.
func (h *history[T]) add(t policy.Time, x T) {
	n := len(h.at)
	if n > 0 && h.at[n-1] == t {
		n--
		h.at, h.what = h.at[:n], h.what[:n]
	}
	if n > 0 && h.what[n-1] == x {
		return
	}
	h.at, h.what = append(h.at, t), append(h.what, x)
}

// find returns the index of the value at t, -1 before the first value.
func (h *history[T]) find(t policy.Time) int {
	i, _ := slices.BinarySearch(h.at, t+1)
	return i - 1
}

// value returns the value at t, and whether there is one.
func (h *history[T]) value(t policy.Time) (x T, ok bool) {
	i := h.find(t)
	if i < 0 {
		return x, false
	}
	return h.what[i], true
}

// lastAt returns the index of the last row at or before t, -1 if there is no such row.
func lastAt[T any](rows []T, t policy.Time, at func(*T) policy.Time) int {
	return sort.Search(len(rows), func(i int) bool { return at(&rows[i]) > t }) - 1
}

// seek returns the first index for which wanted returns true, starting at from with step 1 or −1,
// and whether there is one in [0, n).
func seek(from, step, n int, wanted func(i int) bool) (int, bool) {
	for i := from; i >= 0 && i < n; i += step {
		if wanted(i) {
			return i, true
		}
	}
	return 0, false
}

func pick[T any](yes bool, a, b T) T {
	if yes {
		return a
	}
	return b
}

// names assigns a number to each string, so that each is stored once.
type names struct {
	list []string
	ids  map[string]uint32
}

func newNames() *names { return &names{list: []string{""}, ids: map[string]uint32{"": 0}} }

func (n *names) id(s string) uint32 {
	id, ok := n.ids[s]
	if !ok {
		id = uint32(len(n.list))
		n.list = append(n.list, s)
		n.ids[s] = id
	}
	return id
}

// find returns the number of s, and whether it has one.
func (n *names) find(s string) (uint32, bool) {
	id, ok := n.ids[s]
	return id, ok
}
