// Package setup contains the shared state of simulator runs: what all runs of a scenario share,
// which is prepared once, what the parts of one run share, and the delays of the simulated cluster.
package setup
