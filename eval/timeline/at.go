package timeline

import (
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/policy"
)

// A nodeState is the state of a node in its history. The zero value is an empty slot.
type nodeState struct {
	name                     uint32
	pool, market             int32
	since, notice            policy.Time
	cpu, memory, gpu         int16
	pods                     int16
	phase                    policy.NodePhase
	by                       policy.Actor
	there, spot, recommended bool
}

// stateOf returns the state of n. requested is the sum of the requests of its pods.
func (t *Timeline) stateOf(n *policy.Node, pool, market int32, requested policy.Resources, pods int32) nodeState {
	s := nodeState{there: true, name: t.names.id(n.Name), pool: pool, market: market, since: n.Launched,
		notice: n.ReclaimAt,
		cpu:    part(requested.CPU, n.Allocatable.CPU), memory: part(requested.Memory, n.Allocatable.Memory), gpu: -1,
		pods: int16(min(pods, 1<<15-1)), phase: n.Phase, by: n.ActedBy, recommended: n.Recommended != 0}
	if n.Allocatable.GPU > 0 {
		s.gpu = part(requested.GPU, n.Allocatable.GPU)
	}
	if market >= 0 {
		s.spot = t.markets[market].Spot
	}
	return s
}

// part returns x as a fraction of all in thousandths, rounded down, at most 1000.
func part(x, all int64) int16 {
	if all <= 0 {
		return 0
	}
	return int16(min(1000, int64(float64(x)/float64(all)*1000)))
}

// A hazard is a forecast in units of 1/65,536 reclaim per node-hour. Forecasts are multiples of
// this unit.
type hazard uint32

const hazardUnit = 65536

func hazardOf(m *policy.Market) hazard { return hazard(m.Forecast.Hazard * hazardUnit) }

func (h hazard) perHour() float64 { return float64(h) / hazardUnit }

// At sets into to the state at an instant, or at the nearest available one. It takes about a
// microsecond for each node and market, independently of the instant, and only allocates to grow
// the slices of into.
func (t *Timeline) At(at policy.Time, into *Frame) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	at = max(min(at, t.until), t.warmup)
	into.At = at
	t.nodesAt(at, into)
	into.Markets = into.Markets[:0]
	for i := range t.markets {
		m := Market{Price: policy.NoPrice}
		if p, ok := t.prices[i].value(at); ok {
			m.Price = p
		}
		h, _ := t.hazards[i].value(at)
		m.Hazard = h.perHour()
		into.Markets = append(into.Markets, m)
	}
	into.Workloads = into.Workloads[:0]
	for i := range t.work {
		w, _ := t.work[i].value(at)
		into.Workloads = append(into.Workloads, w)
	}
	into.Budgets = into.Budgets[:0]
	for i := range t.ledgers {
		b, _ := t.ledgers[i].value(at)
		into.Budgets = append(into.Budgets, b)
	}
	into.LossBudget, _ = t.losses.value(at)
	into.Costs = t.costsAt(at)
	into.Decision, into.Event = t.lastDecision(at), t.lastEvent(at)
}

// An ordered is a node with its name, for sorting.
type ordered struct {
	name  string
	state *nodeState
}

// nodesAt sets the nodes of a frame. It sorts small elements instead of the nodes.
func (t *Timeline) nodesAt(at policy.Time, into *Frame) {
	into.order = into.order[:0]
	for i := range t.nodes {
		h := &t.nodes[i]
		if k := h.find(at); k >= 0 && h.what[k].there {
			into.order = append(into.order, ordered{t.names.list[h.what[k].name], &h.what[k]})
		}
	}
	slices.SortFunc(into.order, func(a, b ordered) int { return strings.Compare(a.name, b.name) })
	into.Nodes = into.Nodes[:0]
	for _, x := range into.order {
		s := x.state
		into.Nodes = append(into.Nodes, Node{Name: x.name, Pool: s.pool, Market: s.market, Phase: s.phase, Spot: s.spot,
			Since: s.since, CPU: s.cpu, Memory: s.memory, GPU: s.gpu, Pods: s.pods, Notice: s.notice, Recommended: s.recommended, By: s.by})
	}
	clear(into.order) // a frame that is kept must not refer to the timeline
}
