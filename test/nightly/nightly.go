// Package nightly has tests play more cases at night than on a commit.
package nightly

import "os"

// Variable is the environment variable that make nightly sets.
const Variable = "SPOTTER_NIGHTLY"

// Count returns how many cases a test plays: few on a commit, all where [Variable] is set.
func Count(few, all int) int {
	if os.Getenv(Variable) != "" {
		return all
	}
	return few
}
