// Package measure says in figures what a trace is like: how often prices change and by how much, how
// they stand to the on-demand price, how zones move together, and how often a node could be had.
package measure
