// Package shard divides the runs of a comparison between machines and puts what they did
// together again. A part is a file with some of the runs and bounds, each under a key that
// says all that it depends on; a comparison of parts is the one that a single machine makes.
package shard
