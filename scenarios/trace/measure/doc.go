// Package measure says in figures what a trace is like: how often prices change
// and by how much, how they stand to the on-demand price, how zones move together,
// and, where the trace records whether a node could be had, how long that lasted.
package measure
