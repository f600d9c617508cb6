//go:build !race

package sim

import "github.com/spotter-dev/spotter/test/nightly"

// worldsDefault is how many random scenarios are played under all checkers.
var worldsDefault = nightly.Count(200, 800)
