package bill

import (
	"strings"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
	"github.com/spotter-dev/spotter/sim"
)

// A Watch records the usage of a simulated run. It is the run's sim.RunObserver and does not change
// the run's hash.
type Watch struct {
	usage Usage
	pools []policy.Pool

	// All by name. markets and owners contain all; nodes and pods only the current ones.
	markets map[string]policy.MarketID
	owners  map[string]int32
	nodes   map[string]int32
	pods    map[string]int32

	// seen reports for each node whether its pool and bid are known.
	seen []bool
}

// NewWatch returns a Watch and sets it as the observer of cfg. It must be called before sim.Run.
func NewWatch(cfg *sim.Config, about About) *Watch {
	s := cfg.Prepared.Scenario()
	_, window := cfg.Prepared.Span()
	w := &Watch{
		usage: Usage{About: about, Window: window, Types: s.Types, Zones: s.Zones, Markets: s.Markets,
			Commitments: s.Commitments},
		pools: s.Pools, markets: map[string]policy.MarketID{}, owners: map[string]int32{}, nodes: map[string]int32{}, pods: map[string]int32{},
	}
	for i := range s.Markets {
		w.markets[s.Markets[i].Name] = policy.MarketID(i)
		c := cfg.Prepared.Charges(policy.MarketID(i))
		w.usage.Charges = append(w.usage.Charges, curve(c.At, c.Price))
	}
	for i := range s.Templates {
		t := &s.Templates[i]
		w.owners[s.Workloads[t.Workload].Name] = int32(i)
		w.usage.Owners = append(w.usage.Owners, ownerOf(t, s.Workloads[t.Workload].Kind))
	}
	cfg.Observer = w
	return w
}

// curve returns the curve of prices over time, nil if no price is known.
func curve(at []policy.Time, price []policy.Money) *billing.Curve {
	for _, p := range price {
		if p != policy.NoPrice {
			return billing.NewCurve(at, price)
		}
	}
	return nil
}

// ownerOf returns the owner of the pods of a template.
func ownerOf(t *policy.Template, kind policy.WorkloadKind) Owner {
	o := Owner{Namespace: t.Namespace, Name: strings.TrimPrefix(t.Name, t.Namespace+"/"), Labels: t.Labels,
		Requests: t.Requests}
	if kind != policy.KindBare {
		o.Kind = strings.ToLower(kind.String())
	}
	return o
}

// Happened implements sim.RunObserver.
func (w *Watch) Happened(e sim.Entry) {
	u := &w.usage
	switch e.Kind {
	case "launch":
		w.nodes[e.Subject] = int32(len(u.Nodes))
		w.seen = append(w.seen, false)
		u.Nodes = append(u.Nodes, Node{Name: e.Subject, Market: w.markets[e.Object], From: e.At, To: u.Window.To,
			Billed: policy.NoPrice})
	case "bill":
		if i, ok := w.nodes[e.Subject]; ok { // the last bill event is that of the run, not of a node
			u.Nodes[i].To, u.Nodes[i].Billed = e.At, policy.Money(e.Amount)
		}
	case "credits":
		if i, ok := w.nodes[e.Subject]; ok {
			u.Nodes[i].Credits = policy.Money(e.Amount)
		}
	case "bound":
		w.pods[e.Subject] = int32(len(u.Pods))
		owner := w.owners[e.Subject[:strings.LastIndexByte(e.Subject, '-')]] // pods are named after their workload and a number
		u.Pods = append(u.Pods, Pod{Name: e.Subject, Node: w.nodes[e.Object], Owner: owner, From: e.At, To: u.Window.To})
	case "ended":
		if i, ok := w.pods[e.Subject]; ok {
			u.Pods[i].To = e.At
			delete(w.pods, e.Subject)
		}
	}
}

// Settled implements sim.RunObserver.
func (w *Watch) Settled(m *sim.Moment) {
	for _, id := range m.Nodes() {
		n, _, _, ok := m.Node(id)
		if !ok {
			continue
		}
		if i := w.nodes[n.Name]; !w.seen[i] {
			w.seen[i] = true
			x, pool := &w.usage.Nodes[i], &w.pools[n.Pool]
			x.Pool, x.Fees, x.Bid = pool.Name, pool.Fees, n.Bid
		}
	}
}

// Usage returns the usage of the run. It must be called after the run has ended.
func (w *Watch) Usage() *Usage { return &w.usage }
