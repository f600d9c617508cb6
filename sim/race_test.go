//go:build race

package sim

// worldsDefault is how many random worlds are played under the race detector. It
// makes everything some eight times slower, and looks for what goes wrong between
// runs, not within one: make test plays all of them without it.
const worldsDefault = 40
