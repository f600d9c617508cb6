package portfolio

import "github.com/spotter-dev/spotter/policy"

// A wasting is a node that costs more than its pods need, or that the provider
// recommends to leave.
type wasting struct {
	node   policy.NodeID
	all    float64 // dollars an hour
	perPod float64
}

// A marketCost is what a node of a market costs, and the value of its resources.
type marketCost struct {
	node  float64 // dollars an hour
	value *resourceValue
}

// wastingNodes returns the nodes that may be emptied, in no order that says anything.
func (m *rebalance) wastingNodes() []wasting {
	s := m.s
	list := make([]wasting, 0, len(m.targets))
	costs := make([]marketCost, len(s.Markets))
	for _, id := range m.targets {
		n := &s.Nodes[id]
		if m.pinned[id] || n.DoNotDisrupt || n.Market < 0 || m.memory.BackedOff(n.Name, s.Now) {
			continue
		}
		x := &costs[n.Market]
		if x.value == nil {
			*x = marketCost{m.prices.keeping(n), m.valueFor(n)}
		}
		waste := x.node - x.value.of(m.e.pods.used(s, id))
		if waste <= 0 && n.Recommended == 0 {
			continue
		}
		list = append(list, wasting{id, waste, waste / float64(1+len(m.e.pods.on(id)))})
	}
	return list
}

// first returns the nodes that are tried: those that waste most for each pod.
func (m *rebalance) first() []wasting {
	after := func(a, b *wasting) bool {
		if a.perPod != b.perPod {
			return a.perPod < b.perPod
		}
		return m.e.names.rank[a.node] > m.e.names.rank[b.node]
	}
	list := make([]wasting, 0, triesMax+1)
	for i := range m.wasting {
		x := &m.wasting[i]
		if len(list) == triesMax && after(x, &list[triesMax-1]) {
			continue
		}
		list = append(list, *x)
		for k := len(list) - 1; k > 0 && after(&list[k-1], x); k-- {
			list[k-1], list[k] = *x, list[k-1]
		}
		list = list[:min(len(list), triesMax)]
	}
	return list
}
