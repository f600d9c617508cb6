// Package setup has what runs of the simulator begin with: what all runs of a scenario share,
// which is prepared once, what the parts of one run share, and how long things take.
package setup
