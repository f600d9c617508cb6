package cluster

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/spotter-dev/spotter/live/drain"
	"github.com/spotter-dev/spotter/policy"
)

// The marks that others leave on nodes.
const (
	taintKarpenter        = "karpenter.sh/disrupted"
	taintKarpenterBefore  = "karpenter.sh/disruption" // until 1.0
	taintAutoscaler       = "ToBeDeletedByClusterAutoscaler"
	taintAutoscalerMaybe  = "DeletionCandidateOfClusterAutoscaler"
	taintNTH              = "aws-node-termination-handler/"
	taintNTHReclaim       = taintNTH + "spot-itn"
	taintNTHRebalance     = taintNTH + "rebalance-recommendation"
	taintGoogle           = "cloud.google.com/impending-node-termination"
	taintUnregistered     = "karpenter.sh/unregistered"
	taintUninitialized    = "node.cloudprovider.kubernetes.io/uninitialized"
	labelKarpenterReady   = "karpenter.sh/initialized"
	labelKarpenterPool    = "karpenter.sh/nodepool"
	labelNodeGroup        = "eks.amazonaws.com/nodegroup"
	conditionAzurePreempt = "PreemptScheduled"
	conditionAzureEnd     = "TerminateScheduled"
)

// ownerOf returns who puts taints of that key on nodes; ActorNone for those of
// pools and of Kubernetes itself.
func ownerOf(key string) policy.Actor {
	switch {
	case key == drain.TaintDraining:
		return policy.ActorUs
	case key == taintKarpenter, key == taintKarpenterBefore, key == taintUnregistered:
		return policy.ActorKarpenter
	case key == taintAutoscaler, key == taintAutoscalerMaybe:
		return policy.ActorClusterAutoscaler
	case strings.HasPrefix(key, taintNTH):
		return policy.ActorNTH
	}
	return policy.ActorNone
}

// A marking is what the marks on a Node object say.
type marking struct {
	// actor works on it, ActorNone when nobody does; draining says that it has
	// begun to empty it.
	actor    policy.Actor
	draining bool

	// reclaimLead is how long after the mark the provider takes the node, 0 when it
	// does not. markedAt is when that was said, 0 where the mark does not say.
	reclaimLead time.Duration
	markedAt    policy.Time

	// recommended says that a recommendation to leave stands.
	recommended bool
}

// marksOf reads the marks on n. What we do ourselves counts before all; what is
// being deleted counts as its maker's.
func marksOf(n *corev1.Node) marking {
	var m marking
	for i := range n.Spec.Taints {
		m.taint(&n.Spec.Taints[i])
	}
	for i := range n.Status.Conditions {
		c := &n.Status.Conditions[i]
		if (c.Type == conditionAzurePreempt || c.Type == conditionAzureEnd) && c.Status == corev1.ConditionTrue {
			m.reclaimLead, m.markedAt = policy.NoticeLead(policy.Azure), policy.TimeOf(c.LastTransitionTime.Time)
		}
	}
	_, ordered := n.Annotations[drain.AnnotationDrain]
	_, cordoned := n.Annotations[drain.AnnotationCordon]
	_, karpenters := n.Labels[labelKarpenterPool]
	switch {
	case ordered || cordoned:
		m.actor = policy.ActorUs
	case m.actor != policy.ActorNone:
	case n.DeletionTimestamp != nil && karpenters:
		m.actor = policy.ActorKarpenter
	case n.Spec.Unschedulable && n.DeletionTimestamp == nil:
		m.actor = policy.ActorPerson
	}
	m.draining = m.draining || n.DeletionTimestamp != nil
	return m
}

// taint adds what one taint says.
func (m *marking) taint(t *corev1.Taint) {
	owner := ownerOf(t.Key)
	switch t.Key {
	case taintNTHRebalance:
		m.recommended = true
	case taintNTHReclaim:
		m.reclaimLead = policy.NoticeLead(policy.AWS)
	case taintGoogle:
		m.reclaimLead = policy.NoticeLead(policy.GCP)
	}
	if t.TimeAdded != nil && m.reclaimLead != 0 {
		m.markedAt = policy.TimeOf(t.TimeAdded.Time)
	}
	switch {
	case owner == policy.ActorNone, t.Key == taintAutoscalerMaybe, t.Key == taintUnregistered:
		return
	case m.actor == policy.ActorNone, owner == policy.ActorUs:
		m.actor = owner
	}
	// Karpenter marks a node before its replacement is there; it empties it once
	// the object is being deleted.
	m.draining = m.draining || owner != policy.ActorKarpenter
}
