// Package measure computes statistics of traces: how often prices change and by how much, their
// ratio to the on-demand price, how zones are correlated, and how often a node was available.
package measure
