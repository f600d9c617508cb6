// Package capture writes a cluster as a scenario. Its input is a snapshot, which comes from a
// running cluster or from a recording; both result in the same file.
//
// [Take] creates the objects of the scenario, and lists what it assumed and what it left out.
// [Captured.Write] writes them once the prices are known; [Prices] and [Captured.Draw] provide
// prices if there is no trace.
package capture
