//go:build !race

package rackspace_test

// killPoints is how many deaths at random points are played.
const killPoints = 100
