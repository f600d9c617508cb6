package queue

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/live/drain"
	"github.com/spotter-dev/spotter/policy"
)

// A warning is a notice that was reported to the sink. Its message is deleted ClaimWait later, when
// its nodes are being drained. If the process ends before that, the next leader receives the
// message again.
type warning struct {
	due     time.Time
	receipt string
	notices []backend.Notice
}

// Taints with which Karpenter and the Node Termination Handler mark the nodes that they drain, and
// the label of Karpenter's nodes.
const (
	labelNodePool  = "karpenter.sh/nodepool"
	taintKarpenter = "karpenter.sh/disrupted"
	taintNTH       = "aws-node-termination-handler/"
)

// clockSkew is how far the clock of AWS may be ahead of the cluster's.
const clockSkew = 30 * time.Second

// settle processes the warnings that are due: Spotter drains their nodes if no other controller
// does, and their messages are deleted.
func (q *Queue) settle(ctx context.Context) {
	now := q.config.Clock.Now()
	for len(q.warned) > 0 && !q.warned[0].due.After(now) {
		for _, n := range q.warned[0].notices {
			if n.ActedBy == policy.ActorNone {
				continue
			}
			if node := q.node(ctx, n.Machine); node == nil || !claimed(node, n.At) {
				n.ActedBy, n.Unclaimed = policy.ActorNone, true
				q.sink.Notice(n)
			}
		}
		q.done = append(q.done, q.warned[0].receipt)
		q.warned = q.warned[1:]
	}
}

// claimed reports whether another controller drains a node because of a warning at that time. A
// cordon that is older by more than clockSkew does not count.
func claimed(n *corev1.Node, warned policy.Time) bool {
	if n.DeletionTimestamp != nil {
		return true
	}
	cordoned := n.Spec.Unschedulable
	for _, t := range n.Spec.Taints {
		if t.Key == drain.TaintDraining || t.Key == taintKarpenter || strings.HasPrefix(t.Key, taintNTH) {
			return true
		}
		if t.Key == corev1.TaintNodeUnschedulable && t.TimeAdded != nil && t.TimeAdded.Add(clockSkew).Before(warned.Std()) {
			cordoned = false
		}
	}
	return cordoned
}

// expected returns the controller that is expected to drain a node under notice: the one that
// DrainedBy returns, such as EKS, else the Node Termination Handler for all nodes or Karpenter for
// its own nodes, if the cluster has such a workload. It returns ActorNone for rebalance
// recommendations that DrainedBy does not know.
func (q *Queue) expected(ctx context.Context, n backend.Notice) policy.Actor {
	by := policy.ActorNone
	if q.config.DrainedBy != nil {
		by = q.config.DrainedBy(n)
	}
	if by != policy.ActorNone || n.ReclaimAt == 0 {
		return by
	}
	for _, r := range q.Rivals() {
		switch r.Actor {
		case policy.ActorNTH:
			return policy.ActorNTH
		case policy.ActorKarpenter:
			if node := q.node(ctx, n.Machine); node != nil && node.Labels[labelNodePool] != "" {
				by = policy.ActorKarpenter
			}
		}
	}
	return by
}

// node returns the node of an instance, nil if it is missing or nodes cannot be listed. The node is
// shared with the cache, and has the state at which the messages were received.
func (q *Queue) node(ctx context.Context, instance string) *corev1.Node {
	if q.byInstance != nil || q.nodes == nil {
		return q.byInstance[instance]
	}
	var nodes corev1.NodeList
	if err := q.nodes.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		if q.logged.first("nodes: " + err.Error()) {
			q.config.Log.Warn("no controller is known to drain nodes under notice; Spotter does", "error", err)
		}
		return nil
	}
	q.byInstance = make(map[string]*corev1.Node, len(nodes.Items))
	for i := range nodes.Items {
		n := &nodes.Items[i]
		q.byInstance[n.Spec.ProviderID[strings.LastIndexByte(n.Spec.ProviderID, '/')+1:]] = n
	}
	return q.byInstance[instance]
}
