package cluster

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/spotter-dev/spotter/policy"
)

// Conditions in which providers announce the end of a machine.
const (
	// conditionAzurePreemption is set for an eviction of a Spot machine and for the advice to
	// replace one, which differ only in the message (Azure/karpenter-provider-azure,
	// pkg/controllers/interruption). conditionAzureEvent is set for every scheduled event of the
	// machine (AKS documentation, "Node Problem Detector in AKS nodes"). The others are named for
	// one kind of event.
	conditionAzurePreemption = "PreemptionScheduled"
	conditionAzureEvent      = "VMEventScheduled"
	conditionAzurePreempt    = "PreemptScheduled"
	conditionAzureEnd        = "TerminateScheduled"

	// conditionGooglePreempt is set by the detector of Karpenter's provider for Google Cloud, when
	// the metadata of a Spot machine announce its preemption
	// (cloudpilot-ai/karpenter-provider-gcp, proposals/0007-spot-preemption-notice.md).
	conditionGooglePreempt = "GCESpotPreempting"
)

// startedLead is the time to the reclaim of a machine whose reclaim has started. It is positive
// because a lead of zero means that there is no reclaim.
const startedLead = time.Millisecond

// condition adds the mark of one condition.
func (m *Marks) condition(c *corev1.NodeCondition) {
	if c.Status != corev1.ConditionTrue {
		return
	}
	marked := c.LastTransitionTime.Time
	switch c.Type {
	case conditionGooglePreempt:
		m.reclaim(marked, time.Time{}, policy.NoticeLead(policy.GCP))
	case conditionAzurePreempt, conditionAzureEnd, conditionAzurePreemption, conditionAzureEvent:
		of := scheduledEvent(c.Message)
		switch {
		case of.started:
			m.reclaim(marked, time.Time{}, startedLead)
		case of.advised:
			m.Recommended = true
		case of.reclaims, c.Type == conditionAzurePreempt, c.Type == conditionAzureEnd:
			m.reclaim(marked, of.deadline, policy.NoticeLead(policy.Azure))
		}
	}
}

// reclaim records that the provider takes the machine at a deadline, or lead after the mark if
// the deadline is zero. The earliest of several ends counts.
func (m *Marks) reclaim(marked, deadline time.Time, lead time.Duration) {
	at := policy.Time(0)
	if !marked.IsZero() {
		at = policy.TimeOf(marked)
	}
	if !deadline.IsZero() {
		end := policy.TimeOf(deadline)
		if at == 0 {
			at = end.Add(-lead)
		}
		lead = max(startedLead, end.Sub(at))
	}
	if m.ReclaimLead == 0 || at != 0 && (m.MarkedAt == 0 || at.Add(lead) < m.MarkedAt.Add(m.ReclaimLead)) {
		m.ReclaimLead, m.MarkedAt = lead, at
	}
}

// An azureEvent is a scheduled event of a machine, read from the message of a condition.
type azureEvent struct {
	reclaims bool      // an eviction of a Spot machine, or a deletion
	started  bool      // the end has started
	advised  bool      // the advice to replace a Spot machine
	deadline time.Time // zero if the message has none
}

// scheduledEvent reads the message that AKS's node-problem-detector writes: the type and the status
// of the event, and its time in the format of RFC 1123, as in
//
//	Preempt Scheduled: Mon, 03 Aug 2026 08:18:16 GMT. DurationInSeconds: -1. For more information, …
//
// The type and the status are those of Azure's Scheduled Events. A date that is not in GMT is not
// used: Go would read an unknown zone as GMT.
func scheduledEvent(message string) (e azureEvent) {
	head, rest := strings.Join(strings.Fields(message), " "), ""
	if i := strings.IndexAny(head, ":."); i >= 0 { // a colon precedes the date, if there is one
		head, rest = head[:i], head[i+1:]
	}
	switch head {
	case "SpotRebalanceRecommendation Advisory":
		e.advised = true
	case "Preempt Started", "Terminate Started":
		e.reclaims, e.started = true, true
	case "Preempt Scheduled", "Terminate Scheduled":
		e.reclaims = true
		text, _, _ := strings.Cut(strings.TrimSpace(rest), ".")
		if strings.HasSuffix(text, " GMT") || strings.HasSuffix(text, " UTC") {
			if at, err := time.ParseInLocation("Mon, 2 Jan 2006 15:04:05 MST", text, time.UTC); err == nil {
				e.deadline = at
			}
		}
	}
	return e
}

// cordonedByAKS reports whether AKS itself has cordoned a node before its reclaim, which is not a
// person's cordon. AKS drains such nodes, but often not in time (Azure/AKS issue 3528), so Spotter
// drains them too: an eviction has no effect on a pod that is already being evicted.
func (m *Marks) cordonedByAKS(n *corev1.Node) bool {
	return m.ReclaimLead != 0 && slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == taintAKSRemediator
	})
}
