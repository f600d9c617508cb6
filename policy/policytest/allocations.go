package policytest

import "testing"

// Allocations returns how often f allocates in the mean of some runs. The race
// detector allocates by itself and makes the compiler keep less on the stack, so that
// under it f is run once and 0 returned.
func Allocations(runs int, f func()) float64 {
	if raceDetector {
		f()
		return 0
	}
	return testing.AllocsPerRun(runs, f)
}
