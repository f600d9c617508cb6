// Package try is the command that says of the cluster at hand, within a minute, what it
// costs, what it would cost under other policies, and what to do next. It reads, and
// changes nothing.
//
// A [trial] goes from the cluster to its prices, from these to the runs that the time
// allows, and from them to a [result], which is printed and written into a folder.
package try
