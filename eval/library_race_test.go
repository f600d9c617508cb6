//go:build race

package eval

import "github.com/spotter-dev/spotter/test/nightly"

// libraryHours is for how many hours a longer scenario of the library is metered, and
// libraryEvery says that a scenario is run under every nth policy: the race detector
// makes everything some ten times slower.
var (
	libraryHours = nightly.Count(6, 12)
	libraryEvery = nightly.Count(9, 3)
)
