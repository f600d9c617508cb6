//go:build !race

package sim

// worldsDefault is how many random worlds are played under all checkers.
const worldsDefault = 800
