//go:build race

package drain

import "github.com/spotter-dev/spotter/test/nightly"

// randomDrains is how many random schedules are run.
// The race detector makes each some eight times as slow, and finds in few what it
// finds in many: make nightly plays all of them without it, too.
var randomDrains = nightly.Count(12, 50)

// crashEvery is which of the points of a crash are run.
var crashEvery = nightly.Count(48, 12)
