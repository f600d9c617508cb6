//go:build race

package eval

// worldsTried is the number of random worlds in which every policy is run; the
// race detector makes each of them ten times as slow.
const worldsTried = 80
