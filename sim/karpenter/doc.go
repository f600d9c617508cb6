// Package karpenter takes the decisions of Karpenter's disruption controller on
// one state of a cluster: which nodes are candidates, in which order, and which
// of them to remove or replace. It knows no clock and no events: who runs it
// says what the state is, and carries out the [Command] that comes back.
//
// The rules are those of sigs.k8s.io/karpenter v1.14.1; each names its source
// below pkg/controllers/disruption unless another folder is given.
package karpenter
