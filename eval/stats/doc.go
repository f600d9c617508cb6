// Package stats contains the statistics of a comparison: intervals of medians and of Poisson means,
// bounds on rates, and the test of paired differences. Tests and intervals of medians are exact:
// tails of binomial distributions are sums of integers, so a result has the same bits on every
// machine, and they require no assumption about the distribution of the values or the size of the
// sample. The only requirement is that units are independent and identically distributed: seeds of
// one window, or windows.
//
// An error rate is the probability of a wrong statement, in (0, 1): 0.05 is a confidence level of
// 95%.
package stats
