// Package queue reads the warnings that EventBridge puts into an SQS queue of
// Spotter's own: interruption warnings, rebalance recommendations, changes of state
// and scheduled changes of EC2 instances.
//
// Consumers of one queue compete for its messages: what one takes the other never
// sees. A [Queue] therefore refuses a queue that Karpenter or the AWS Node
// Termination Handler reads, and reads nothing while it is one. For the same reason
// only the leader of several replicas reads it.
//
// A message is deleted once the [backend.Sink] has taken it, and comes again
// otherwise. What cannot be read never keeps what stands behind it waiting.
package queue
