// Package shard divides the runs of a comparison among machines and merges their results. A part is
// a file with some of the runs and bounds, each with a key that depends on all its inputs. A
// comparison of merged parts equals the comparison on a single machine.
package shard
