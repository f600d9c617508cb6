//go:build race

package main

// raced says that the race detector is on. TestGate is then left to a run without it,
// which would build for minutes to find what the other tests find, and TestRunKarpenter
// to one with the machine to itself, since it holds a node under notice to 30 s.
const raced = true
