//go:build !race

package sim

// worldsDefault is how many random worlds are played.
const worldsDefault = 800
