//go:build race

package asg

import "github.com/spotter-dev/spotter/test/nightly"

// rivalSeeds is how many seeds are run against the Cluster Autoscaler.
// The race detector makes each some eight times as slow, and finds in few what it
// finds in many: make nightly plays all of them without it, too.
var rivalSeeds = nightly.Count(20, 100)
