//go:build race

package rackspace_test

import "github.com/spotter-dev/spotter/test/nightly"

// killPoints is how many deaths at random points are run.
// The race detector makes each some eight times as slow, and finds in few what it
// finds in many: make nightly plays all of them without it, too.
var killPoints = nightly.Count(6, 25)
