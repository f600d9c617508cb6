//go:build !race

package main

// gateSkipped says that TestGate is left to another run.
const gateSkipped = false
