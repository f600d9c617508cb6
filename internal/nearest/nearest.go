// Package nearest suggests corrections of mistyped words.
package nearest

import (
	"math"
	"strings"
)

// Of returns the name with the smallest edit distance to word, the first if several are equal. It
// returns false if the distance is more than half of the name's length. Case is ignored.
func Of(word string, names []string) (string, bool) {
	best, least := "", math.MaxInt
	for _, name := range names {
		if n := distance(strings.ToLower(word), strings.ToLower(name)); n < least {
			best, least = name, n
		}
	}
	return best, best != "" && 2*least <= max(len(best), 3)
}

// distance returns the Levenshtein distance of a and b in bytes.
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
