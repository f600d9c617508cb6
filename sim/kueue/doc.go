// Package kueue makes the decisions of Kueue's scheduler: which suspended workloads are admitted,
// with which flavor for each resource, and which admitted workloads are preempted for them.
//
// The rules are those of sigs.k8s.io/kueue v0.17.0 with its default configuration (pkg/scheduler,
// pkg/scheduler/flavorassigner, pkg/scheduler/preemption and pkg/cache): cohorts in trees,
// borrowing and lending limits, classical preemption, flavor fungibility, and both queueing
// strategies. Fair sharing, partial admission, admission checks and topology-aware scheduling are
// not part of it.
package kueue
