//go:build !race

package rackspace_test

// killPoints is how many deaths at random points are run.
const killPoints = 100
