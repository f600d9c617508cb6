package cluster_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/live/cluster"
	"github.com/spotter-dev/spotter/policy"
)

// announced returns a change of a node: a condition that became true so long after epoch.
func announced(kind, message string, after time.Duration) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeConditionType(kind),
			Status: corev1.ConditionTrue, Message: message, LastTransitionTime: metav1.NewTime(epoch.Add(after))})
	}
}

// dated is a message of AKS's node-problem-detector about an event so long after epoch.
func dated(event string, after time.Duration) string {
	return fmt.Sprintf("%s: %s. DurationInSeconds: -1. For more information, see https://aka.ms/aks/scheduledevents "+
		"EventId: 218E4ED7-0000-0000-0000-000000000000", event, epoch.Add(after).UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT"))
}

// TestConditionsOfProviders: what a condition announces follows from its type and message, with the
// deadline that the provider states. Other events of a machine are no notice.
func TestConditionsOfProviders(t *testing.T) {
	const s, both, other = time.Second, "PreemptionScheduled", "VMEventScheduled"
	for name, c := range map[string]struct {
		kind, message string
		lead          time.Duration
		recommended   bool
	}{
		"Spot eviction":            {both, dated("Preempt Scheduled", 39*s), 39 * s, false},
		"as any event":             {other, dated("Preempt Scheduled", 39*s), 39 * s, false},
		"one digit of a day":       {both, "Preempt Scheduled: Mon, 2 Mar 2026 08:00:20 GMT", 20 * s, false},
		"UTC, spaces":              {both, " Preempt  Scheduled:  Mon, 02 Mar 2026 08:00:20 UTC. More.", 20 * s, false},
		"deletion":                 {other, dated("Terminate Scheduled", 5*time.Minute), 5 * time.Minute, false},
		"past":                     {both, dated("Preempt Scheduled", -time.Minute), time.Millisecond, false},
		"started":                  {both, "Preempt Started. For more information, see https://aka.ms/x.", time.Millisecond, false},
		"started, with a date":     {both, dated("Preempt Started", time.Hour), time.Millisecond, false},
		"no date":                  {both, "Preempt Scheduled.", 30 * s, false},
		"no valid date":            {both, "Preempt Scheduled: soon. EventId: x", 30 * s, false},
		"date in another zone":     {both, "Preempt Scheduled: Mon, 02 Mar 2026 08:00:20 PST.", 30 * s, false},
		"advice":                   {both, dated("SpotRebalanceRecommendation Advisory", 39*s), 0, true},
		"advice that names it":     {both, "SpotRebalanceRecommendation Advisory: " + dated("Preempt Scheduled", 39*s), 0, true},
		"reboot":                   {other, dated("Reboot Scheduled", 39*s), 0, false},
		"freeze":                   {other, dated("Freeze Scheduled", 39*s), 0, false},
		"redeploy":                 {other, dated("Redeploy Scheduled", 39*s), 0, false},
		"metadata service is away": {other, "IMDS unavailable", 0, false},
		"quoted eviction":          {other, "Unknown: " + dated("Preempt Scheduled", 39*s), 0, false},
		"condition of its own":     {"PreemptScheduled", "", 30 * s, false},
		"deletion of its own":      {"TerminateScheduled", "VM Scheduled for Terminate", 30 * s, false},
		"Google":                   {"GCESpotPreempting", "", 30 * s, false},
		"another condition":        {"KernelDeadlock", dated("Preempt Scheduled", 39*s), 0, false},
	} {
		m := cluster.MarksOf(node("a", announced(c.kind, c.message, 0)))
		if m.ReclaimLead != c.lead || m.Recommended != c.recommended || c.lead != 0 && m.MarkedAt != at(0) {
			t.Errorf("%s: lead %v, want %v; recommended %v; marked at %v", name, m.ReclaimLead, c.lead, m.Recommended, m.MarkedAt)
		}
		off := node("a", announced(c.kind, c.message, 0))
		off.Status.Conditions[len(off.Status.Conditions)-1].Status = corev1.ConditionFalse
		if m := cluster.MarksOf(off); m.ReclaimLead != 0 || m.Recommended {
			t.Errorf("%s: a condition that is false: %+v", name, m)
		}
	}
	m := cluster.MarksOf(node("a", announced(both, dated("Preempt Scheduled", 39*s), 0),
		announced(other, dated("Preempt Scheduled", 25*s), 2*s)))
	if end := m.MarkedAt.Add(m.ReclaimLead); end != at(25*s) {
		t.Errorf("of two deadlines %v counts, want the earlier", end)
	}
}

// TestAzureEviction: the advice to replace a Spot node wakes the controller, and the eviction that
// follows under the same condition is a notice with Azure's deadline, reported once.
func TestAzureEviction(t *testing.T) {
	advised := announced("PreemptionScheduled", dated("SpotRebalanceRecommendation Advisory", time.Minute), 0)
	l := newLab(t, capacityPool("p"), node("a"))
	l.observe(0)
	l.wakes()
	l.put(node("a", advised))
	if got := l.wakes(); !slices.Equal(got, []string{backend.WakeRebalance}) {
		t.Errorf("the advice wakes for %v", got)
	}
	if n := nodeIn(t, l.observe(time.Second), "a"); n.Recommended == 0 || n.ReclaimAt != 0 {
		t.Errorf("advised: %+v", n)
	}
	evicted := announced("PreemptionScheduled", dated("Preempt Scheduled", 50*time.Second), 0)
	l.put(node("a", evicted))
	if got := l.wakes(); !slices.Equal(got, []string{backend.WakeNotice}) {
		t.Errorf("the eviction wakes for %v", got)
	}
	if all := l.notices(); len(all) != 1 || all[0].ReclaimAt != at(50*time.Second) {
		t.Errorf("to be drained: %+v", all)
	}
	l.put(node("a", evicted, func(n *corev1.Node) { n.Annotations["x"] = "y" }))
	if got := l.wakes(); len(got) != 0 {
		t.Errorf("the same eviction wakes again, for %v", got)
	}
}

// TestCordonOfAKS: AKS cordons a node that Azure takes. That is no person's cordon, so the node is
// still drained; without a notice a cordon is a person's, whatever its taints.
func TestCordonOfAKS(t *testing.T) {
	cordoned := func(n *corev1.Node) {
		n.Spec.Unschedulable = true
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "remediator.kubernetes.azure.com/unschedulable",
			Effect: corev1.TaintEffectNoSchedule})
	}
	evicted := announced("VMEventScheduled", dated("Preempt Scheduled", 30*time.Second), 0)
	for want, n := range map[policy.Actor]*corev1.Node{policy.ActorNone: node("a", cordoned, evicted),
		policy.ActorPerson: node("a", cordoned)} {
		if got := cluster.MarksOf(n).Actor; got != want {
			t.Errorf("acted by %v, want %v", got, want)
		}
	}
	l := newLab(t, capacityPool("p"), node("a", cordoned, evicted))
	if all := l.notices(); len(all) != 1 {
		t.Errorf("to be drained: %+v", all)
	}
}
