//go:build !race

package eval

import "github.com/spotter-dev/spotter/test/nightly"

// libraryHours is for how many hours a longer scenario of the library is metered, at
// night as long as it is.
var libraryHours = nightly.Count(24, 24*365)

// libraryEvery says that a scenario is run under every nth policy.
const libraryEvery = 1
