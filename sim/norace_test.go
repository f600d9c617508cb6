//go:build !race

package sim

// worldsDefault is how many random worlds are played under all checkers, and
// observedWorlds in how many of them every snapshot is compared with the cluster.
const (
	worldsDefault  = 800
	observedWorlds = 60
)
