// Package stats has the statistics of a comparison: quantiles, intervals of
// medians, bounds on rates, and the test of paired differences. All of it is
// exact: tails of binomial distributions are sums of integers, so a result has
// the same bits on every machine, and nothing rests on a shape of the values or
// on large samples. What it asks for is units that are independent of each
// other and drawn alike: seeds of one window, or windows.
//
// An error rate is the chance of a wrong statement, in (0, 1): 0.05 is a level
// of 95 %.
package stats
