package live

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
)

// gapMax bounds what is metered between two steps. In a longer time without a controller the nodes
// are not known, so that only its last part counts.
const gapMax = time.Hour

// namespacesMax bounds the namespaces of one pool that are counted one by one; the rest are
// counted together as [otherNamespaces].
const namespacesMax = 500

// The cost of a node beyond the requests of its pods has no namespace, and namespaces beyond
// namespacesMax share one. Kubernetes allows neither of the two names.
const (
	noNamespace     = "(unused)"
	otherNamespaces = "(others)"
)

// arrearsMax bounds for how long a node without a known price is charged later, once
// there is one. What is older stays without a price.
const arrearsMax = 24 * time.Hour

// openMax bounds the nodes of one pool that are remembered since they are not charged
// in full; of more, what they owe is lost with the process.
const openMax = 1000

// An Account is what was paid for nodes and what the same nodes would have cost on
// demand, since it was opened. The price on demand is that of the same type in the same
// region; which other nodes an on-demand cluster would have used is not known here and
// nothing is claimed about it.
type Account struct {
	Paid     policy.Money `json:"paid"`
	OnDemand policy.Money `json:"onDemand"`

	// PaidRest and OnDemandRest are what was rounded off of the sums, half a micro-dollar
	// up, in micro-dollars × ms per hour: so that they are rounded once, and not at every
	// reading.
	PaidRest     int64 `json:"paidRest,omitempty"`
	OnDemandRest int64 `json:"onDemandRest,omitempty"`
}

// Saved returns what was not paid.
func (a Account) Saved() policy.Money { return a.OnDemand - a.Paid }

// SavedAgainst returns what was saved against commitments for the same nodes that
// take the given share, in [0, 1], off the price on demand.
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

// carry moves the whole micro-dollars of a rest to the sum, so that the remaining rest is at most
// half a micro-dollar.
func carry(sum policy.Money, rest int64) (policy.Money, int64) {
	const perHour = int64(time.Hour / time.Millisecond)
	whole := (rest + perHour/2) / perHour
	if rest+perHour/2 < whole*perHour {
		whole-- // a division of what is below zero rounds up
	}
	return sum + policy.Money(whole), rest - whole*perHour
}

// Savings are the accounts of one pool.
type Savings struct {
	// Since is when the accounts were opened and At up to when they count.
	Since policy.Time `json:"since,omitempty"`
	At    policy.Time `json:"at,omitempty"`
	Total Account     `json:"total"`

	// Namespaces are ascending by name. A node's cost is divided among the pods on it by the
	// largest share of any resource that each requests.
	Namespaces []NamespaceAccount `json:"namespaces,omitempty"`

	// Unpriced is how many node-milliseconds had no known price and are in none of the accounts. It
	// falls when a price becomes known.
	Unpriced int64 `json:"unpriced,omitempty"`

	// Open are the nodes that are not charged up to At, ascending by key: they wait for
	// a price, or went before their first minute was over.
	Open []nodeUsage `json:"open,omitempty"`
}

// A NamespaceAccount is what one namespace used of a pool.
type NamespaceAccount struct {
	Name string `json:"name"`
	Account
}

// split divides what a node cost among the namespaces of its pods.
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

// divide writes which part of each node each namespace requests. Pods of DaemonSets are a fixed
// cost of a node and count as unused.
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
