//go:build race

package trace

// underRace says that the race detector watches, which makes everything some
// ten times slower.
const underRace = true
