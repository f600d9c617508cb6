// Package top implements the command that lists the nodes of a running cluster with their market,
// price, age and usage. It does not need Spotter in the cluster.
//
// [Read] returns a [Table], which is independent of its presentation.
package top
