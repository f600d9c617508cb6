// Package queue reads the warnings that EventBridge puts into an SQS queue of
// Spotter's own: interruption warnings, rebalance recommendations, changes of state
// and scheduled changes of EC2 instances.
//
// Consumers of one queue compete for its messages: a message that one takes is never seen by the
// other. A [Queue] therefore reports workloads that read its queue as Karpenter and the Node
// Termination Handler do; another Spotter is not found. It continues to read whatever it finds:
// nothing in the cluster may keep warnings from Spotter. For the same reason only the leader of
// several replicas reads it.
//
// A node that Karpenter, EKS or the AWS Node Termination Handler is expected to drain is left to
// them for [Config.ClaimWait]. If it is not cordoned, tainted or being deleted by then, Spotter
// drains it. Only workloads whose ServiceAccount may drain nodes in the whole cluster count, so
// that no tenant can be one.
//
// A message is deleted once the [backend.Sink] has taken it and a warned node had time to be
// marked. Otherwise it is received again. Unreadable messages never delay the messages after them.
package queue
