//go:build race

package rackspace_test

// killPoints is how many deaths at random points are played.
// The race detector makes each some eight times as slow, and finds in few what it
// finds in many: make test plays all of them without it, too.
const killPoints = 25
