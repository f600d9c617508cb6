// Package capture writes a cluster as a scenario. What it reads is a snapshot, which
// both a running cluster and a recording give, so that either becomes the same file.
//
// [Take] makes the objects of the scenario, and says what it had to assume and what it
// left out. [Captured.Write] writes them, once it is known which prices they are run
// on; [Prices] and [Draw] give such prices where there is no trace.
package capture
