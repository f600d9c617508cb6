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

// The types of the conditions of a SpotNode. Each is set once and stays, so that
// its transition is the instant of what it says.
const (
	condOrdered   = "Ordered"   // the API has the node pool
	condWon       = "Won"       // the bid won, or the machine is reserved
	condOutbid    = "Outbid"    // the market price is above the bid
	condReclaimed = "Reclaimed" // the provider has the machine back
	condFailed    = "Failed"    // it will not come
)

// A machine is one order and what has become of it.
type machine struct {
	spot  v1alpha1.SpotNode // as last read or written
	order order

	// written counts changes, so that a reading which began before one does not
	// take it back.
	written uint64

	// The instants of what was seen; zero while it was not.
	ordered, won, outbid, reclaimed, failed policy.Time

	failure string // the reason of failed

	// draining and released are what the calls of a drain did.
	draining, released bool

	// listed says that the API showed the node pool when it was last read; absent
	// counts the readings in a row that did not, and unwon those that showed it
	// without a machine.
	listed        bool
	absent, unwon int

	// size is how many machines its node pool has or should have: one, unless a user changed it.
	size int

	// node and providerID are those of the Node object. Both stay when it goes;
	// present says whether it is there, and ready that it takes pods.
	node, providerID string
	present, ready   bool

	// reported are the events and warnings that were reported to the sink.
	reported reported
}

type reported struct{ launch, refusal, reclaim, notice, dropped bool }

// A view is what a reading of the API and of the cluster shows of an order.
type view struct {
	now    policy.Time
	listed bool
	given  int  // machines that the node pool has
	size   int  // machines that it has or should have
	above  bool // the market price is above the bid
	node   *corev1.Node
}

// newMachine reads what the ledger reports. Events that it has were reported to the
// sink by who wrote them.
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

// over reports whether the machine is gone for good.
func (m *machine) over() bool { return m.failed != 0 || m.reclaimed != 0 || m.released }

// see takes in a reading.
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

// seeBid looks at an order that has no machine yet.
func (m *machine) seeBid(v view, cfg *Config) {
	switch age := v.now.Sub(m.order.at); {
	case v.above && m.order.capacity == policy.Spot:
		m.fail(v.now, "Outbid")
	case age >= cfg.WinMax:
		m.fail(v.now, "NotWon")
	case m.absent > 1:
		m.fail(v.now, nodePoolGone) // it was deleted by a user
	}
}

// fail notes that the machine will not start. That counts as a refusal of the market only if the
// order was open for long enough, and not if a user cancelled it.
func (m *machine) fail(now policy.Time, reason string) {
	m.failed, m.failure = now, reason
	m.reported.refusal = reason == nodePoolGone || reason == machineGone
}

// Reasons of a failure that was not caused by the market.
const (
	nodePoolGone = "NodePoolGone"
	machineGone  = "MachineGone"
)

// seeLoss looks at an order that has, or had, its machine. The API is believed at
// the second reading that shows none: it may lag.
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

// lose notes the end of a machine: a reclaim if it was outbid, else the deletion of the node pool
// or the server by a user.
func (m *machine) lose(now policy.Time) {
	if m.outbid != 0 {
		m.reclaimed = now
		return
	}
	m.fail(now, machineGone)
}

// phase is where the SpotNode is in its life.
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

// write puts what is known into a status; conditions that are there stay.
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

// machine returns what the sink is to know.
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

// ended reports whether nothing is left of the machine: neither its node pool nor
// its Node.
func (m *machine) ended() bool { return m.over() && !m.listed && !m.present }

// notice returns the warning that the machine is under.
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
