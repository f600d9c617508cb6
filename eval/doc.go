// Package eval compares policies: it runs every policy on every scenario, window and seed with the
// same weather, measures the runs with one set of definitions ([Metrics]) and checks gates. It does
// not know how a comparison is presented; packages eval/format and eval/report write it.
//
// Comparisons are paired. All policies of a case and seed have the same prices, refusals and
// reclaims; [Run] rejects runs for which this is not true. Metrics are differences to the runs of
// the policy on-demand and of the baseline in the same case and seed, so the common effects of
// weather cancel out. Package eval/stats contains the statistical inference: intervals of medians
// over windows, or over the seeds of one window, and the test of paired differences with another
// side. Package eval/oracle computes the lower bounds of cost.
//
// Every scenario is summarized and judged separately ([Group]), because an aggregate of several
// would be true of none of them. [Report.Across] contains the statements about several scenarios.
//
// Runs are executed in parallel. Each writes to its own index, and all later computations are in
// index order, so a report does not depend on the number of processors.
package eval
