package cluster

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/spotter-dev/spotter/live/drain"
	"github.com/spotter-dev/spotter/policy"
)

// Taints, labels and conditions that other controllers set on nodes.
const (
	taintKarpenter       = "karpenter.sh/disrupted"
	taintKarpenterBefore = "karpenter.sh/disruption" // until 1.0
	taintAutoscaler      = "ToBeDeletedByClusterAutoscaler"
	taintAutoscalerMaybe = "DeletionCandidateOfClusterAutoscaler"
	taintNTH             = "aws-node-termination-handler/"
	taintNTHReclaim      = taintNTH + "spot-itn"
	taintNTHRebalance    = taintNTH + "rebalance-recommendation"
	taintGoogle          = "cloud.google.com/impending-node-termination"
	taintAKSRemediator   = "remediator.kubernetes.azure.com/unschedulable"
	taintUnregistered    = "karpenter.sh/unregistered"
	taintUninitialized   = "node.cloudprovider.kubernetes.io/uninitialized"
	labelKarpenterReady  = "karpenter.sh/initialized"
	labelKarpenterPool   = "karpenter.sh/nodepool"
	labelNodeGroup       = "eks.amazonaws.com/nodegroup"
)

// ownerOf returns the controller that sets taints with a key; ActorNone for taints of pools and of
// Kubernetes itself.
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

// Marks are the actions on a Node that its taints, annotations and conditions show.
type Marks struct {
	// Actor is the controller or person that acts on the node, or ActorNone. Draining reports
	// whether the node is being drained.
	Actor    policy.Actor
	Draining bool

	// ReclaimLead is the time from the mark to the reclaim by the provider; 0 if there is no
	// reclaim. MarkedAt is the time of the mark; 0 if it is not known.
	ReclaimLead time.Duration
	MarkedAt    policy.Time

	// Recommended reports whether there is a rebalance recommendation.
	Recommended bool
}

// MarksOf reads the marks on n. Spotter's own marks take precedence. A deletion is attributed to
// the node's provisioner.
func MarksOf(n *corev1.Node) Marks {
	var m Marks
	for i := range n.Spec.Taints {
		m.taint(&n.Spec.Taints[i])
	}
	for i := range n.Status.Conditions {
		m.condition(&n.Status.Conditions[i])
	}
	_, ordered := n.Annotations[drain.AnnotationDrain]
	_, cordoned := n.Annotations[drain.AnnotationCordon]
	_, karpenters := n.Labels[labelKarpenterPool]
	switch {
	case ordered || cordoned:
		m.Actor = policy.ActorUs
	case m.Actor != policy.ActorNone:
	case n.DeletionTimestamp != nil && karpenters:
		m.Actor = policy.ActorKarpenter
	case n.Spec.Unschedulable && n.DeletionTimestamp == nil && !m.cordonedByAKS(n):
		m.Actor = policy.ActorPerson
	}
	m.Draining = m.Draining || n.DeletionTimestamp != nil
	return m
}

// taint adds the mark of one taint.
func (m *Marks) taint(t *corev1.Taint) {
	owner := ownerOf(t.Key)
	switch t.Key {
	case taintNTHRebalance:
		m.Recommended = true
	case taintNTHReclaim:
		m.ReclaimLead = policy.NoticeLead(policy.AWS)
	case taintGoogle:
		m.ReclaimLead = policy.NoticeLead(policy.GCP)
	}
	if t.TimeAdded != nil && m.ReclaimLead != 0 {
		m.MarkedAt = policy.TimeOf(t.TimeAdded.Time)
	}
	switch {
	case owner == policy.ActorNone, t.Key == taintAutoscalerMaybe, t.Key == taintUnregistered:
		return
	case m.Actor == policy.ActorNone, owner == policy.ActorUs:
		m.Actor = owner
	}
	// Karpenter taints a node before its replacement is ready, and drains it once the object is
	// being deleted.
	m.Draining = m.Draining || owner != policy.ActorKarpenter
}
