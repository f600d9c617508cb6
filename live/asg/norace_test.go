//go:build !race

package asg

// rivalSeeds is how many seeds are run against the Cluster Autoscaler.
const rivalSeeds = 1000
