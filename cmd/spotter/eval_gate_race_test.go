//go:build race

package main

// gateSkipped says that TestGate is left to a run without the race detector,
// which would build for minutes to find what the other tests find.
const gateSkipped = true
