// Package karpenter makes the decisions of Karpenter's disruption controller for one state of a
// cluster: which nodes are candidates, in which order, and which of them to remove or replace. It
// has no clock and no events. The caller provides the state and carries out the resulting
// [Command].
//
// The rules are those of sigs.k8s.io/karpenter v1.14.1. Comments name the source of each rule,
// below pkg/controllers/disruption unless another folder is given.
package karpenter
