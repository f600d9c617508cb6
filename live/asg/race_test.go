//go:build race

package asg

// rivalSeeds is how many seeds are played against the Cluster Autoscaler.
// The race detector makes each some eight times as slow, and finds in few what it
// finds in many: make test plays all of them without it, too.
const rivalSeeds = 100
