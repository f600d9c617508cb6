package live

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
)

// gapMax bounds what is metered between two steps. Of a longer time without a
// controller nobody knows which nodes came and went, so that only its last part
// counts.
const gapMax = time.Hour

// namespacesMax bounds the namespaces of one pool that are told apart; the rest are
// counted together as [otherNamespaces].
const namespacesMax = 500

// What a node costs beyond what pods ask for has no namespace, and those beyond
// namespacesMax have one together. Neither is a name that Kubernetes allows.
const (
	noNamespace     = "(unused)"
	otherNamespaces = "(others)"
)

// An Account is what was paid for nodes and what the same nodes would have cost on
// demand, since it was opened. It counts lives that were seen: a node that came
// and went between two steps is not in it. The price on demand is that of the same
// type in the same region; which other nodes an on-demand cluster would have used
// is not known here and nothing is claimed about it.
type Account struct {
	Paid     policy.Money `json:"paid"`
	OnDemand policy.Money `json:"onDemand"`
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
}

// Savings are the accounts of one pool.
type Savings struct {
	// Since is when the accounts were opened and At up to when they count.
	Since policy.Time `json:"since,omitempty"`
	At    policy.Time `json:"at,omitempty"`
	Total Account     `json:"total"`

	// Namespaces are ascending by name. A node's cost is divided among the pods on
	// it by the largest share that each asks of one resource.
	Namespaces []NamespaceAccount `json:"namespaces,omitempty"`

	// Unpriced is how many node-milliseconds had no known price and are in none of
	// the accounts.
	Unpriced int64 `json:"unpriced,omitempty"`
}

// A NamespaceAccount is what one namespace used of a pool.
type NamespaceAccount struct {
	Name string `json:"name"`
	Account
}

// A meter adds to the accounts of all pools what passed between two snapshots.
type meter struct {
	// charged are the prices per hour of the markets in use at the last snapshot,
	// by name: ids belong to one snapshot.
	charged map[string]policy.Money

	// The rest is scratch: what commitments pay, the nodes by market, and the
	// namespaces by node.
	cover  *policy.Coverage
	nodes  []int64
	shares [][]nodeShare
}

// A nodeShare is the part of a node that one namespace asks for.
type nodeShare struct {
	namespace string
	share     float64
}

// read adds what passed since each account was last read. The accounts are by
// PoolID.
func (m *meter) read(s *policy.Snapshot, books []*Savings) {
	m.cover = s.Coverage()
	m.count(s)
	m.divide(s)
	prices := make(map[string]policy.Money, len(m.charged))
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if !n.Live() || n.Pool < 0 {
			continue
		}
		if n.Market >= 0 {
			x := &s.Markets[n.Market]
			if old, known := m.charged[x.Name]; known {
				prices[x.Name] = old // still charged where the market was withdrawn
			}
			if x.Offered {
				prices[x.Name] = x.Charge()
			}
		}
		book := books[n.Pool]
		window := billing.Span{From: max(book.At, s.Now.Add(-gapMax)), To: s.Now}
		if book.At != 0 && window.From < window.To && n.Launched < s.Now {
			m.node(s, n, book, window)
		}
	}
	for _, book := range books {
		book.At = max(book.At, s.Now)
		if book.Since == 0 {
			book.Since = s.Now
		}
	}
	m.charged = prices
}

// node adds what one node cost within the window.
func (m *meter) node(s *policy.Snapshot, n *policy.Node, book *Savings, window billing.Span) {
	life := billing.Span{From: n.Launched, To: s.Now}
	if n.Market < 0 {
		book.Unpriced += int64(life.Clip(window).Length() / time.Millisecond)
		return
	}
	x := &s.Markets[n.Market]
	old, known := m.charged[x.Name]
	now := policy.NoPrice
	if x.Offered {
		now = x.Charge()
	}
	if !known {
		old = now
	}
	if now == policy.NoPrice && !known || x.OnDemand <= 0 {
		book.Unpriced += int64(life.Clip(window).Length() / time.Millisecond)
		return
	}
	changed := min(max(x.PricedAt, window.From), window.To)
	curve := billing.NewCurve([]policy.Time{min(window.From, life.From) - 1, changed}, []policy.Money{old, now})
	most := policy.Money(math.MaxInt64)
	if n.Bid > 0 {
		most = n.Bid
	}
	a := Account{
		Paid:     curve.BillAtMost(life, window, most),
		OnDemand: billing.Flat(x.OnDemand, life, window),
	}
	if x.Capacity == policy.OnDemand && m.cover.Covers(n.Market) {
		a.Paid = m.open(x, a.Paid)
	}
	book.Total.add(a)
	m.split(n, book, a)
}

// open returns what commitments leave of what the nodes of a market on demand are
// charged, each of them the same part.
func (m *meter) open(x *policy.Market, paid policy.Money) policy.Money {
	all := x.OnDemand * policy.Money(max(1, m.nodes[x.ID]))
	return paid.Times(1 - min(1, m.cover.Paid(x.ID).Float()/all.Float()))
}

// split divides what a node cost among the namespaces of its pods.
func (m *meter) split(n *policy.Node, book *Savings, a Account) {
	rest := a
	sum := 0.0
	shares := m.shares[n.ID]
	for i := range shares {
		sum += shares[i].share
	}
	for i := range shares {
		part := shares[i].share / max(1, sum)
		x := Account{Paid: a.Paid.Times(part), OnDemand: a.OnDemand.Times(part)}
		rest.Paid -= x.Paid
		rest.OnDemand -= x.OnDemand
		book.namespace(shares[i].namespace).add(x)
	}
	if rest != (Account{}) {
		book.namespace(noNamespace).add(rest)
	}
}

// namespace returns the account of a namespace.
func (b *Savings) namespace(name string) *Account {
	find := func(name string) (int, bool) {
		return slices.BinarySearchFunc(b.Namespaces, name, func(a NamespaceAccount, name string) int { return cmp.Compare(a.Name, name) })
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

// count writes how many nodes each market has, as commitments count them.
func (m *meter) count(s *policy.Snapshot) {
	m.nodes = slices.Grow(m.nodes[:0], len(s.Markets))[:len(s.Markets)]
	clear(m.nodes)
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.Live() && n.Market >= 0 {
			m.nodes[n.Market]++
		}
	}
}

// divide writes which namespaces ask for which part of each node. Pods of
// DaemonSets are what a node costs anyway and count as unused.
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
