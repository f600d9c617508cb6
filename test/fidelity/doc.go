// Package fidelity holds the simulated cluster as a whole against the real one: it plays
// scripted days on etcd, the API server, the controller manager, the scheduler and
// Karpenter, as of test/e2e, and in the simulator, from the same manifests, offers, prices
// and weather, and compares what became of both. See docs/fidelity.md.
//
// Real runs are kept in testdata, so that a change of the simulator is held against them
// in seconds; `make fidelity` plays new ones.
package fidelity
