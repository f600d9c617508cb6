// Package check says in figures what a trace is like, and how far two traces
// are apart.
//
// [Measure] computes the [Statistics] of one trace: how often prices change and
// by how much, how they stand to the on-demand price, how zones move together,
// and, where the trace records whether a node could be had, how long that lasted.
// [Compare] measures two traces alike and judges their differences by
// tolerances that can be read and changed: each carries the sentence that
// defends it. [Inspect] looks in one trace for what no market can have done.
//
// A trace that lists every change and one that was fetched four times a day
// differ even where their markets do not. Compare therefore sees both with the
// eyes of the coarser one before it measures them.
package check
