// Package nearest finds what who mistyped a word meant.
package nearest

import (
	"math"
	"strings"
)

// Of returns the name with the fewest changes from word, the first of equals, if these are
// at most half of its letters. Capitals count as small letters.
func Of(word string, names []string) (string, bool) {
	best, least := "", math.MaxInt
	for _, name := range names {
		if n := distance(strings.ToLower(word), strings.ToLower(name)); n < least {
			best, least = name, n
		}
	}
	return best, best != "" && 2*least <= max(len(best), 3)
}

// distance is the Levenshtein distance of a and b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
