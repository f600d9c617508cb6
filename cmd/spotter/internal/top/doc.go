// Package top is the command that lists the nodes of a running cluster with their market,
// price, age and use. It needs no Spotter in the cluster.
//
// [Read] collects a [Table], which has no text of its own, so that any screen can draw it.
package top
