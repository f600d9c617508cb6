//go:build !race

package policytest

// raceDetector says that the race detector watches the tests.
const raceDetector = false
