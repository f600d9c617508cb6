package metrics

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/lru"

	"github.com/spotter-dev/spotter/policy"
)

// Systems are the systems under whose metric names the controller can report. Karpetrack and the
// leftover operator have no metrics other than those that every controller has.
var Systems = []string{"gpu-operator", "karpetrack", "leftover", "rescheduler", "spotvortex"}

// nodesMax limits the series of metrics that have one series per node.
const nodesMax = 1000

// A compatible reports events under the metric names of one system.
type compatible interface {
	step(*Step)
	entry(kind, outcome string)
	evicted(answer string)
	drained(node, outcome string)
}

// nothing is embedded in systems that do not report all events.
type nothing struct{}

func (nothing) entry(string, string)   {}
func (nothing) evicted(string)         {}
func (nothing) drained(string, string) {}

// newCompatible creates the metrics of a system. It returns nil for a system without own metrics.
func newCompatible(name string, b *builder) (compatible, error) {
	switch name {
	case "spotvortex":
		return newSpotVortex(b), nil
	case "rescheduler":
		return newRescheduler(b), nil
	case "gpu-operator":
		return newGPUOperator(b), nil
	case "karpetrack", "leftover":
		return nil, nil
	}
	return nil, fmt.Errorf("metrics of %q are unknown; known: %s", name, strings.Join(Systems, ", "))
}

// spotVortex contains the metrics of SpotVortex for which this controller has a value, including
// those that SpotVortex registers but never sets.
type spotVortex struct {
	nothing
	actions, blocked                       *prometheus.CounterVec
	spotPrice, odPrice, saving, risk       *prometheus.GaugeVec
	managed, draining                      *prometheus.GaugeVec
	ratioTarget, ratioCurrent              *prometheus.GaugeVec
	potential, potentialTotal, optimizable *prometheus.GaugeVec
	evictions                              *prometheus.CounterVec
}

func newSpotVortex(b *builder) *spotVortex {
	return &spotVortex{
		actions:   b.counter("spotvortex_action_taken_total", "Actions that were carried out.", "action"),
		blocked:   b.counter("spotvortex_guardrail_blocked_total", "Actions that a guardrail held.", "guardrail"),
		spotPrice: b.gauge("spotvortex_spot_price_usd", "Spot price per hour of a market in use.", "instance", "zone"),
		odPrice:   b.gauge("spotvortex_ondemand_price_usd", "Price per hour on demand of a type in use.", "instance"),
		saving:    b.gauge("spotvortex_savings_usd_hourly", "Savings of all pools per hour against on-demand."),
		managed:   b.gauge("spotvortex_nodes_managed", "Nodes of all pools."),
		draining:  b.gauge("spotvortex_nodes_draining", "Nodes that are being drained."),
		risk: b.gauge("spotvortex_risk_score",
			"Risk of a shortage of capacity, the highest of a pool's nodes in a zone.", "pool", "zone"),
		ratioTarget:  b.gauge("spotvortex_spot_ratio_target", "Target Spot share.", "pool"),
		ratioCurrent: b.gauge("spotvortex_spot_ratio_current", "Current Spot share.", "pool"),
		potential: b.gauge("spotvortex_potential_savings_hourly_usd",
			"On-demand price minus Spot price of an on-demand node.", "node", "pool", "instance_type"),
		potentialTotal: b.gauge("spotvortex_potential_savings_pool_total_usd", "The same of a whole pool over 720 hours.",
			"pool"),
		optimizable: b.gauge("spotvortex_nodes_optimizable", "On-demand nodes for which Spot would be cheaper.", "pool"),
		evictions:   b.counter("spotvortex_pod_evictions_total", "Pods that were evicted."),
	}
}

func (c *spotVortex) step(x *Step) {
	reset(c.spotPrice, c.odPrice, c.risk, c.ratioTarget, c.ratioCurrent, c.potential, c.potentialTotal, c.optimizable)
	s := x.Snapshot
	var saving policy.Money
	for i := range x.Pools {
		p := &x.Pools[i]
		saving += p.SavingPerHour
		c.ratioCurrent.WithLabelValues(p.Name).Set(p.Share)
		if m := x.Memory.Pool(p.Name); m.HasTarget {
			c.ratioTarget.WithLabelValues(p.Name).Set(m.Target)
		}
	}
	c.saving.WithLabelValues().Set(saving.Float())
	for _, h := range x.Plan.Holds {
		c.blocked.WithLabelValues(string(h.Why.Reason)).Inc()
	}
	c.nodes(s)
}

// nodes reports the nodes, their prices and their potential savings.
func (c *spotVortex) nodes(s *policy.Snapshot) {
	spot := cheapestSpot(s)
	managed, draining, reported := 0, 0, 0
	risk := map[[2]string]float64{}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if !n.Live() || n.Pool < 0 || n.Market < 0 {
			continue
		}
		managed++
		if n.Phase == policy.NodeDraining {
			draining++
		}
		m := &s.Markets[n.Market]
		kind, zone, pool := s.Types[m.Type].Name, s.Zones[m.Zone], s.Pools[n.Pool].Name
		c.odPrice.WithLabelValues(kind).Set(m.OnDemand.Float())
		risk[[2]string{pool, zone}] = max(risk[[2]string{pool, zone}], m.Forecast.Capacity)
		if m.Capacity == policy.Spot && m.Offered {
			c.spotPrice.WithLabelValues(kind, zone).Set(m.Charge().Float())
		}
		cheap, sold := spot[[2]int32{int32(m.Type), int32(m.Zone)}]
		if m.Capacity != policy.OnDemand || !sold || cheap >= m.OnDemand {
			continue
		}
		c.optimizable.WithLabelValues(pool).Inc()
		c.potentialTotal.WithLabelValues(pool).Add(((m.OnDemand - cheap) * 720).Float())
		if reported++; reported <= nodesMax {
			c.potential.WithLabelValues(n.Name, pool, kind).Set((m.OnDemand - cheap).Float())
		}
	}
	for at, score := range risk {
		c.risk.WithLabelValues(at[0], at[1]).Set(score)
	}
	c.managed.WithLabelValues().Set(float64(managed))
	c.draining.WithLabelValues().Set(float64(draining))
}

// cheapestSpot returns the Spot price by type and zone.
func cheapestSpot(s *policy.Snapshot) map[[2]int32]policy.Money {
	spot := make(map[[2]int32]policy.Money, len(s.Markets)/2)
	for i := range s.Markets {
		if m := &s.Markets[i]; m.Capacity == policy.Spot && m.Offered {
			spot[[2]int32{int32(m.Type), int32(m.Zone)}] = m.Charge()
		}
	}
	return spot
}

func (c *spotVortex) entry(kind, outcome string) {
	if outcome == "done" {
		c.actions.WithLabelValues(kind).Inc()
	}
}

func (c *spotVortex) evicted(answer string) {
	if answer == "evicted" {
		c.evictions.WithLabelValues().Inc()
	}
}

// rescheduler contains the metrics of the Spot rescheduler.
type rescheduler struct {
	nothing
	pods, nodes *prometheus.GaugeVec
	drains      *prometheus.CounterVec
	evictedPods *prometheus.CounterVec

	// seen are the nodes with a series of drains.
	seen *lru.Cache
}

func newRescheduler(b *builder) *rescheduler {
	c := &rescheduler{
		pods:        b.gauge("spot_rescheduler_node_pods_count", "Pods on a node.", "node_type", "node"),
		nodes:       b.gauge("spot_rescheduler_nodes_count", "Nodes of a type.", "node_type"),
		drains:      b.counter("spot_rescheduler_node_drain_total", "Drains, by result.", "drain_state", "node"),
		evictedPods: b.counter("spot_rescheduler_evicted_pods_total", "Pods that were evicted."),
	}
	c.seen = lru.NewWithEvictionFunc(nodesMax, func(node lru.Key, _ any) {
		c.drains.DeletePartialMatch(prometheus.Labels{"node": node.(string)})
	})
	return c
}

func (c *rescheduler) step(x *Step) {
	reset(c.pods, c.nodes)
	s := x.Snapshot
	pods := make([]int, len(s.Nodes))
	for i := range s.Pods {
		if p := &s.Pods[i]; p.Phase != policy.PodGone && p.Node >= 0 && p.Template >= 0 &&
			!s.Templates[p.Template].DaemonSet {
			pods[p.Node]++
		}
	}
	reported := 0
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if !n.Live() || n.Pool < 0 || n.Market < 0 {
			continue
		}
		kind := s.Markets[n.Market].Capacity.String()
		c.nodes.WithLabelValues(kind).Inc()
		if reported++; reported <= nodesMax {
			c.pods.WithLabelValues(kind, n.Name).Set(float64(pods[i]))
		}
	}
}

func (c *rescheduler) evicted(answer string) {
	if answer == "evicted" {
		c.evictedPods.WithLabelValues().Inc()
	}
}

// drained counts a drain of a node. Only the most recent nodes keep a series, since the number of
// nodes over time is not bounded.
func (c *rescheduler) drained(node, outcome string) {
	state := "Failure"
	if outcome == "done" {
		state = "Success"
	}
	c.seen.Add(node, nil)
	c.drains.WithLabelValues(state, node).Inc()
}

// gpuOperator contains the metrics of the GPU budget operator.
type gpuOperator struct {
	nothing
	consumed, remaining, tracked *prometheus.GaugeVec
	actions                      *prometheus.CounterVec

	// budgets are the budgets for which actions were counted.
	budgets counted
}

func newGPUOperator(b *builder) *gpuOperator {
	c := &gpuOperator{
		consumed:  b.gauge("gwb_consumed_gpu_hours", "Device-hours used within the window.", "namespace", "name"),
		remaining: b.gauge("gwb_remaining_gpu_hours", "Device-hours left within the window.", "namespace", "name"),
		tracked:   b.gauge("gwb_tracked_pods", "Pods that count now.", "namespace", "name"),
		actions: b.counter("gwb_enforcement_actions_total", "Pods evicted and jobs suspended.", "namespace", "name",
			"action"),
	}
	c.budgets.vecs = append(c.budgets.vecs, c.actions)
	c.budgets.labels = func(budget string) prometheus.Labels {
		namespace, name, _ := strings.Cut(budget, "/")
		return prometheus.Labels{"namespace": namespace, "name": name}
	}
	return c
}

func (c *gpuOperator) step(x *Step) {
	reset(c.consumed, c.remaining, c.tracked)
	s := x.Snapshot
	c.budgets.keep(func(name string) bool {
		_, exists := slices.BinarySearchFunc(s.Budgets, name, func(b policy.Budget,
			name string) int {
			return strings.Compare(b.Name, name)
		})
		return exists
	})
	reported := reportedBudgets(s)
	for i := range reported {
		b := &reported[i]
		namespace, name, _ := strings.Cut(b.Name, "/")
		used := 0.0
		if m := x.Memory.Budget(b.Name); m != nil {
			used = DeviceHours(m.Used)
		}
		c.consumed.WithLabelValues(namespace, name).Set(used)
		if b.HasGPUHours {
			c.remaining.WithLabelValues(namespace, name).Set(max(0, b.GPUHours-used))
		}
		c.tracked.WithLabelValues(namespace, name).Set(float64(tracked(s, b)))
	}
	if !x.Active || x.Stopped || x.Unreadable {
		return
	}
	for _, e := range x.Plan.Evicts {
		if namespace, name, ok := strings.Cut(c.budgets.saw(e.Budget), "/"); ok {
			c.actions.WithLabelValues(namespace, name, "Evict").Inc()
		}
	}
	for _, p := range x.Plan.Pauses {
		if namespace, name, ok := strings.Cut(c.budgets.saw(p.Budget), "/"); ok && p.Paused {
			c.actions.WithLabelValues(namespace, name, "Pause").Inc()
		}
	}
}

// tracked returns the number of pods that count against a budget at present.
func tracked(s *policy.Snapshot, b *policy.Budget) int {
	counts := make([]bool, len(s.Templates))
	for i := range s.Templates {
		counts[i] = b.Counts(&s.Templates[i]) > 0
	}
	n := 0
	for i := range s.Pods {
		if p := &s.Pods[i]; p.Phase != policy.PodGone && p.Template >= 0 && counts[p.Template] {
			n++
		}
	}
	return n
}
