package live

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
)

// gapMax is the maximum time between two steps that is metered. After a longer time without a
// controller, the nodes in it are unknown, so only its last part counts.
const gapMax = time.Hour

// namespacesMax is the maximum number of namespaces of one pool with an account of their own; the
// others share the account [otherNamespaces].
const namespacesMax = 500

// Account names of the cost that no pod requests, and of the namespaces beyond namespacesMax.
// Neither is a valid name of a namespace in Kubernetes.
const (
	noNamespace     = "(unused)"
	otherNamespaces = "(others)"
)

// arrearsMax is the maximum time for which a node without a known price is charged retroactively,
// once a price is known. Earlier time stays unpriced.
const arrearsMax = 24 * time.Hour

// openMax is the maximum number of nodes of one pool that are stored because they are not fully
// charged. The unpaid cost of further nodes is lost when the process ends.
const openMax = 1000

// An Account contains the cost of nodes and the cost that the same nodes would have had on demand,
// since it was opened. The on-demand price is the price of the same type in the same region. An
// on-demand cluster might have used other nodes; this is not estimated.
type Account struct {
	Paid     policy.Money `json:"paid"`
	OnDemand policy.Money `json:"onDemand"`

	// PaidRest and OnDemandRest are the rounding remainders of the sums, in micro-dollars × ms per
	// hour, so that the sums are rounded once (half a micro-dollar up) and not at every reading.
	PaidRest     int64 `json:"paidRest,omitempty"`
	OnDemandRest int64 `json:"onDemandRest,omitempty"`
}

// Saved returns the difference of the on-demand cost and the cost.
func (a Account) Saved() policy.Money { return a.OnDemand - a.Paid }

// SavedAgainst returns the savings against commitments for the same nodes with the given discount
// on the on-demand price, in [0, 1].
func (a Account) SavedAgainst(discount float64) policy.Money {
	return billing.Committed(a.OnDemand, discount) - a.Paid
}

func (a *Account) add(b Account) {
	a.Paid += b.Paid
	a.OnDemand += b.OnDemand
	a.charge(b.PaidRest, b.OnDemandRest)
}

// charge adds amounts in micro-dollars × ms per hour.
func (a *Account) charge(paid, onDemand int64) {
	a.Paid, a.PaidRest = carry(a.Paid, a.PaidRest+paid)
	a.OnDemand, a.OnDemandRest = carry(a.OnDemand, a.OnDemandRest+onDemand)
}

// carry moves the whole micro-dollars of a remainder to the sum, so that the new remainder is at
// most half a micro-dollar.
func carry(sum policy.Money, rest int64) (policy.Money, int64) {
	const perHour = int64(time.Hour / time.Millisecond)
	whole := (rest + perHour/2) / perHour
	if rest+perHour/2 < whole*perHour {
		whole-- // the division of a negative number rounds up
	}
	return sum + policy.Money(whole), rest - whole*perHour
}

// Savings are the accounts of one pool.
type Savings struct {
	// Since is when the accounts were opened, and At the time up to which they count.
	Since policy.Time `json:"since,omitempty"`
	At    policy.Time `json:"at,omitempty"`
	Total Account     `json:"total"`

	// Namespaces are ordered by name. The cost of a node is divided among its pods in proportion to
	// the largest share of any resource that each requests.
	Namespaces []NamespaceAccount `json:"namespaces,omitempty"`

	// Unpriced is the number of node-milliseconds without a known price, which are in none of the
	// accounts. It decreases when a price becomes known.
	Unpriced int64 `json:"unpriced,omitempty"`

	// Open contains the nodes that are not charged up to At, ordered by key: their price is
	// unknown, or they ended before the minimum billed time had passed.
	Open []nodeUsage `json:"open,omitempty"`
}

// A NamespaceAccount is the account of one namespace in a pool.
type NamespaceAccount struct {
	Name string `json:"name"`
	Account
}

// split divides the cost of a node among the namespaces of its pods.
func (m *meter) split(t *nodeUsage, paid, onDemand int64) {
	sum := 0.0
	for i := range t.shares {
		sum += t.shares[i].share
	}
	restPaid, restOnDemand := paid, onDemand
	for i := range t.shares {
		part := t.shares[i].share / max(1, sum)
		x := min(restPaid, int64(math.Round(float64(paid)*part)))
		y := min(restOnDemand, int64(math.Round(float64(onDemand)*part)))
		restPaid -= x
		restOnDemand -= y
		t.book.namespace(t.shares[i].namespace).charge(x, y)
	}
	if restPaid != 0 || restOnDemand != 0 {
		t.book.namespace(noNamespace).charge(restPaid, restOnDemand)
	}
}

// namespace returns the account of a namespace.
func (b *Savings) namespace(name string) *Account {
	find := func(name string) (int, bool) {
		return slices.BinarySearchFunc(b.Namespaces, name, func(a NamespaceAccount,
			name string) int {
			return cmp.Compare(a.Name, name)
		})
	}
	i, found := find(name)
	if !found && len(b.Namespaces) >= namespacesMax && name != noNamespace {
		name = otherNamespaces
		i, found = find(name)
	}
	if !found {
		b.Namespaces = slices.Insert(b.Namespaces, i, NamespaceAccount{Name: name})
	}
	return &b.Namespaces[i].Account
}

// divide computes the share of each node that each namespace requests. Pods of DaemonSets are a
// fixed cost of a node and count as unused.
func (m *meter) divide(s *policy.Snapshot) {
	m.shares = slices.Grow(m.shares[:0], len(s.Nodes))[:len(s.Nodes)]
	for i := range m.shares {
		m.shares[i] = m.shares[i][:0]
	}
	for i := range s.Pods {
		p := &s.Pods[i]
		if p.Phase == policy.PodGone || p.Node < 0 || p.Template < 0 {
			continue
		}
		t := &s.Templates[p.Template]
		n := &s.Nodes[p.Node]
		if t.DaemonSet || !n.Live() {
			continue
		}
		share := min(1, t.Requests.LargestShare(n.Allocatable))
		list := m.shares[p.Node]
		k := slices.IndexFunc(list, func(x nodeShare) bool { return x.namespace == t.Namespace })
		if k < 0 {
			list = append(list, nodeShare{namespace: t.Namespace})
			k = len(list) - 1
		}
		list[k].share += share
		m.shares[p.Node] = list
	}
}
