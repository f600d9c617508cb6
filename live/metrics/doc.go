// Package metrics contains the controller's Prometheus metrics: its own, named spotter_*, and
// optionally the same values under the names that the dashboards of other systems use.
//
// The cardinality of all labels is bounded: the user determines the number of pools, at most a
// hundred markets in use are reported, and only metrics of systems whose dashboards need nodes have
// a node as a label, with a limit.
package metrics
