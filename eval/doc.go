// Package eval compares policies: every policy on every scenario, window and seed,
// under the same weather, measured by one set of definitions ([Metrics]) and judged
// by gates. It knows nothing of how a comparison is shown: package eval/format and
// eval/report write it.
//
// A comparison is paired. All policies of one case and seed meet the same prices,
// refusals and reclaims, and [Run] refuses a set of runs in which they did not.
// Figures are differences to the runs of the policy on-demand and of the baseline in
// that same case and seed, so what the weather does to all of them cancels out. What
// is inferred from the runs is of package eval/stats: intervals of medians, over
// windows or over the seeds of one window, and the test of paired differences with
// another side. What no policy can undercut is of package eval/oracle.
//
// Every scenario is summed up and judged on its own ([Group]): a figure of several
// together would be true for none. [Report.Across] has what can be said over them.
//
// Runs are done in parallel. Each writes to its own index, and everything after that
// is computed in index order, so a report does not depend on the number of
// processors.
package eval
