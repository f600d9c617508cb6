//go:build race

package check

// underRace says that the race detector watches, which makes everything some
// ten times slower.
const underRace = true
