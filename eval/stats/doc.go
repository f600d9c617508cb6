// Package stats has the statistics of a comparison: quantiles, intervals of medians, bounds on
// rates, and the test of paired differences. All of it is exact: tails of binomial distributions
// are sums of integers, so a result has the same bits on every machine, and nothing assumes a
// distribution of the values or large samples. The only requirement is that units are independent
// and identically distributed: seeds of one window, or windows.
//
// An error rate is the probability of a wrong statement, in (0, 1): 0.05 is a confidence level of
// 95%.
package stats
