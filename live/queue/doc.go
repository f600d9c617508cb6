// Package queue reads the events that EventBridge sends to an SQS queue for Spotter: interruption
// notices, rebalance recommendations, state changes and scheduled changes of EC2 instances.
//
// Consumers of a queue compete for its messages: a message that one consumer receives is not seen
// by the others. A [Queue] therefore reports workloads that read the same queue in the way that
// Karpenter and the Node Termination Handler do; it does not find another Spotter. It continues to
// read in any case, because no workload in the cluster may keep notices from Spotter. For the same
// reason only the leader of several replicas reads the queue.
//
// If Karpenter, EKS or the AWS Node Termination Handler is expected to drain a node, Spotter waits
// for [Config.ClaimWait]. If the node is then not cordoned, tainted or being deleted, Spotter
// drains it. Only workloads whose ServiceAccount may drain nodes in the whole cluster count, so
// that a tenant cannot pretend to be such a controller.
//
// A message is deleted after the [backend.Sink] has processed it and, for a notice, after the wait
// for the other controller. Otherwise it is received again. Unreadable messages do not delay later
// messages.
package queue
