// Package try implements the command that estimates within a minute what the current cluster costs,
// what it would cost under other policies, and what to do next. It changes nothing in the cluster.
//
// A [trial] reads the cluster, determines its prices, simulates as many runs as the time allows,
// and returns a [result], which is printed and written to a folder.
package try
