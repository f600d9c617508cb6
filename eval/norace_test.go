//go:build !race

package eval

// worldsTried is the number of random worlds in which every policy is run.
const worldsTried = 1000
