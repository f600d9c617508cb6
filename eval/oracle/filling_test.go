package oracle

import (
	"testing"

	"pgregory.net/rapid"
)

// TestFillingIsExact compares the search with trying every set of pods.
func TestFillingIsExact(t *testing.T) {
	var f filling // used again, as it is between kinds
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 4).Draw(t, "takers")
		k := &nodeKind{free: [resources]int64{int64(rapid.IntRange(1, 20).Draw(t, "cpu")),
			int64(rapid.IntRange(1, 20).Draw(t, "memory")), 0, 0, int64(rapid.IntRange(1, 6).Draw(t, "pods"))}}
		value := make([]int64, n)
		for i := range n {
			k.takers = append(k.takers, i)
			k.requests = append(k.requests, [resources]int64{int64(rapid.IntRange(0, 9).Draw(t, "a")),
				int64(rapid.IntRange(0, 9).Draw(t, "b")), 0, 0, 1})
			value[i] = int64(rapid.IntRange(0, 50).Draw(t, "value"))
		}
		for range rapid.IntRange(0, 2).Draw(t, "sets") {
			k.exclusive = append(k.exclusive, rapid.SliceOfN(rapid.Bool(), n, n).Draw(t, "set"))
		}
		limit := int64(rapid.IntRange(1, 120).Draw(t, "limit"))
		best := tried(k, value, make([]int32, n), 0)
		pods, ok := f.search(k, value, limit)
		switch {
		case !ok:
			t.Fatalf("gave up after %d steps", f.steps)
		case pods == nil && best > limit:
			t.Fatalf("found nothing worth more than %d, and %d can be had", limit, best)
		case pods != nil:
			got := int64(0)
			for i, c := range pods {
				got += int64(c) * value[i]
			}
			if !fitting(k, pods) || got != best || got <= limit {
				t.Fatalf("found %v worth %d, the best is %d and the limit %d", pods, got, best, limit)
			}
		}
	})
}

// tried returns the most that whole pods on a node are worth, of takers from the
// given one on.
func tried(k *nodeKind, value []int64, pods []int32, from int) int64 {
	if !fitting(k, pods) {
		return -1
	}
	if from == len(pods) {
		sum := int64(0)
		for i, c := range pods {
			sum += int64(c) * value[i]
		}
		return sum
	}
	best := int64(-1)
	for pods[from] = 0; fitting(k, pods); pods[from]++ {
		best = max(best, tried(k, value, pods, from+1))
	}
	pods[from] = 0
	return best
}

// fitting reports whether the pods fit a node of k together.
func fitting(k *nodeKind, pods []int32) bool {
	left := k.free
	for i, c := range pods {
		for r, q := range k.requests[i] {
			if q > 0 {
				left[r] -= int64(c) * q
			}
		}
	}
	for r := range left {
		if left[r] < 0 {
			return false
		}
	}
	for _, set := range k.exclusive {
		n := int32(0)
		for i, in := range set {
			if in {
				n += pods[i]
			}
		}
		if n > 1 {
			return false
		}
	}
	return true
}
