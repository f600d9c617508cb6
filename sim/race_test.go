//go:build race

package sim

import "github.com/spotter-dev/spotter/test/nightly"

// worldsDefault is how many random scenarios are played under the race detector. It
// makes everything some eight times slower, and looks for what goes wrong between
// runs, not within one: all of them are played without it.
var worldsDefault = nightly.Count(12, 40)
