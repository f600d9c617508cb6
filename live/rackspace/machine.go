package rackspace

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// Types of the conditions of a SpotNode. Each is set once and never removed, so its transition time
// is the time of the event.
const (
	condOrdered   = "Ordered"   // the API has the node pool
	condWon       = "Won"       // the bid won, or the machine is reserved
	condOutbid    = "Outbid"    // the market price is above the bid
	condReclaimed = "Reclaimed" // the provider has reclaimed the machine
	condFailed    = "Failed"    // the machine will not be provided
)

// A machine is an order and its state.
type machine struct {
	spot  v1alpha1.SpotNode // as last read or written
	order order

	// written is the count of writes at the last change, so that a read that started earlier does
	// not overwrite the change.
	written uint64

	// Times of the observed events; zero if an event has not been observed.
	ordered, won, outbid, reclaimed, failed policy.Time

	failure string // the reason of failed

	// draining and released record the calls of a drain.
	draining, released bool

	// listed reports whether the last read of the API contained the node pool. absent is the number
	// of consecutive reads without it, and unwon the number of consecutive reads in which it had no
	// machine.
	listed        bool
	absent, unwon int

	// size is the present or desired number of machines of its node pool, whichever is larger: 1,
	// unless a user changed it.
	size int

	// node and providerID are the name and provider ID of the Node. They are kept after the Node is
	// gone; present reports whether it exists, and ready whether it can run pods.
	node, providerID string
	present, ready   bool

	// reported records which events and notices were reported to the sink.
	reported reported
}

type reported struct{ launch, refusal, reclaim, notice, dropped bool }

// A view is the state of an order in a read of the API and the cluster.
type view struct {
	now    policy.Time
	listed bool
	given  int  // number of machines of the node pool
	size   int  // present or desired number of machines
	above  bool // the market price exceeds the bid
	node   *corev1.Node
}

// newMachine returns the machine of a ledger entry. The events in the entry were already reported
// to the sink by the process that wrote them.
func newMachine(n *v1alpha1.SpotNode, o order) *machine {
	m := &machine{order: o}
	n.DeepCopyInto(&m.spot)
	at := func(t string) policy.Time {
		c := meta.FindStatusCondition(n.Status.Conditions, t)
		if c == nil || c.Status != metav1.ConditionTrue {
			return 0
		}
		return policy.TimeOf(c.LastTransitionTime.Time)
	}
	m.ordered, m.won, m.outbid, m.reclaimed, m.failed = at(condOrdered), at(condWon), at(condOutbid), at(condReclaimed), at(condFailed)
	if m.failed != 0 {
		m.failure = meta.FindStatusCondition(n.Status.Conditions, condFailed).Reason
	}
	m.draining, m.released = n.Status.Phase == v1alpha1.SpotNodeDraining, n.Status.Phase == v1alpha1.SpotNodeTerminating
	m.node, m.providerID = n.Status.NodeName, n.Status.ProviderID
	m.reported = reported{launch: m.won != 0, refusal: m.failed != 0, reclaim: m.reclaimed != 0}
	return m
}

// over reports whether the machine failed, was reclaimed or was released.
func (m *machine) over() bool { return m.failed != 0 || m.reclaimed != 0 || m.released }

// see updates the state of the machine with a read.
func (m *machine) see(v view, cfg *Config) {
	m.seeNode(v.node)
	m.size = v.size
	settled := v.now.Sub(max(m.ordered, m.order.at)) >= cfg.Settle
	if m.listed = v.listed; v.listed {
		m.absent = 0
		if m.ordered == 0 {
			m.ordered = v.now
		}
	} else if settled {
		m.absent++
	}
	if m.won == 0 && (v.given > 0 || m.present) {
		m.won = v.now
	}
	if v.listed && v.given == 0 {
		m.unwon++
	} else {
		m.unwon = 0
	}
	switch {
	case m.over() || m.ordered == 0:
	case m.won == 0:
		m.seeBid(v, cfg)
	default:
		m.seeLoss(v, cfg)
	}
}

func (m *machine) seeNode(n *corev1.Node) {
	if m.present = n != nil; n == nil {
		m.ready = false
		return
	}
	m.node, m.ready = n.Name, kube.IsPrepared(n)
	if n.Spec.ProviderID != "" {
		m.providerID = n.Spec.ProviderID
	}
}

// seeBid determines the state of an order that has no machine yet.
func (m *machine) seeBid(v view, cfg *Config) {
	switch age := v.now.Sub(m.order.at); {
	case v.above && m.order.capacity == policy.Spot:
		m.fail(v.now, "Outbid")
	case age >= cfg.WinMax:
		m.fail(v.now, "NotWon")
	case m.absent > 1:
		m.fail(v.now, nodePoolGone) // a user deleted it
	}
}

// fail records that the machine will not be provided. This counts as a refusal of the market,
// unless a user cancelled the order.
func (m *machine) fail(now policy.Time, reason string) {
	m.failed, m.failure = now, reason
	m.reported.refusal = reason == nodePoolGone || reason == machineGone
}

// Reasons of failures that the market did not cause.
const (
	nodePoolGone = "NodePoolGone"
	machineGone  = "MachineGone"
)

// seeLoss determines the state of an order that has or had a machine. Only the second consecutive
// read without a machine counts, because the API may lag.
func (m *machine) seeLoss(v view, cfg *Config) {
	auction := m.order.capacity == policy.Spot
	without := m.unwon > 1 || m.absent > 1
	if auction && m.outbid == 0 && (v.above || m.unwon > 1) {
		m.outbid = v.now
	}
	joined := m.node != ""
	switch {
	case joined && !m.present && without:
		m.lose(v.now)
	case auction && m.outbid != 0 && without && v.now.Sub(m.outbid) >= cfg.Notice:
		m.lose(v.now)
	case !joined && m.absent > 1:
		m.fail(v.now, nodePoolGone)
	case !joined && v.now.Sub(m.order.at) >= cfg.JoinMax:
		m.fail(v.now, "NotJoined")
	}
}

// lose records the end of a machine: a reclaim if it was outbid, else the deletion of the node pool
// or the server by a user.
func (m *machine) lose(now policy.Time) {
	if m.outbid != 0 {
		m.reclaimed = now
		return
	}
	m.fail(now, machineGone)
}

// phase returns the phase of the SpotNode.
func (m *machine) phase() v1alpha1.SpotNodePhase {
	switch {
	case m.over():
		return v1alpha1.SpotNodeTerminating
	case m.draining:
		return v1alpha1.SpotNodeDraining
	case m.present:
		return v1alpha1.SpotNodeRunning
	case m.ordered != 0:
		return v1alpha1.SpotNodeProvisioning
	}
	return v1alpha1.SpotNodePending
}

// write copies the state to a status. Existing conditions are kept.
func (m *machine) write(s *v1alpha1.SpotNodeStatus) {
	s.Phase, s.NodeName, s.ProviderID = m.phase(), m.node, m.providerID
	s.Conditions = slices.Clone(s.Conditions)
	for _, x := range []struct {
		kind          string
		at            policy.Time
		reason, words string
	}{
		{condOrdered, m.ordered, "NodePoolSeen", "The API has node pool " + m.order.nodePool + "."},
		{condWon, m.won, "MachineGiven", "A machine was assigned."},
		{condOutbid, m.outbid, "PriceAboveBid", "The market price is above the bid of " + m.order.bid.Short() +
			" an hour; the machine is reclaimed within minutes."},
		{condReclaimed, m.reclaimed, "MachineGone", "The machine was returned to the provider."},
		{condFailed, m.failed, m.failure, "The machine will not be assigned, or ended without a reclaim."},
	} {
		if x.at != 0 && meta.FindStatusCondition(s.Conditions, x.kind) == nil {
			meta.SetStatusCondition(&s.Conditions, metav1.Condition{
				Type: x.kind, Status: metav1.ConditionTrue, Reason: x.reason, Message: x.words,
				LastTransitionTime: metav1.NewTime(x.at.Std()),
			})
		}
	}
}

func sameStatus(a, b *v1alpha1.SpotNodeStatus) bool { return equality.Semantic.DeepEqual(a, b) }

// machine returns the state to report to the sink.
func (m *machine) machine() backend.Machine {
	x := backend.Machine{
		Name: m.order.name, Pool: m.order.pool, Market: m.order.market, ProviderID: m.providerID, Node: m.node,
		Token: m.order.token, Bid: m.order.bid, Launched: m.order.at, Phase: policy.NodeLaunching,
	}
	switch {
	case m.over():
		x.Phase = policy.NodeDeleting
		if m.released {
			x.ActedBy = policy.ActorUs
		}
	case m.present:
		x.Phase = policy.NodeRegistered
		if m.absent > 1 && m.outbid == 0 {
			x.Phase, x.ActedBy = policy.NodeDeleting, policy.ActorPerson // a user deleted the node pool
		}
	}
	return x
}

// ended reports whether the machine is over and neither its node pool nor its Node exists.
func (m *machine) ended() bool { return m.over() && !m.listed && !m.present }

// notice returns the notice of the machine, and reports whether it has one: it was outbid and is
// not over.
func (m *machine) notice(wait time.Duration) (backend.Notice, bool) {
	if m.outbid == 0 || m.over() {
		return backend.Notice{}, false
	}
	name := m.node
	if name == "" {
		name = m.order.name
	}
	return backend.Notice{Machine: name, At: m.outbid, ReclaimAt: m.outbid.Add(wait), Source: Name}, true
}
