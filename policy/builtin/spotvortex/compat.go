package spotvortex

import (
	"cmp"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/portable"
	"github.com/spotter-dev/spotter/policy/replan"
	"github.com/spotter-dev/spotter/policy/scratch"
	"github.com/spotter-dev/spotter/policy/workload"
)

// The agent's settings outside its runtime file, as its chart ships them.
const (
	riskThreshold  = 0.85 // a higher capacity score is an emergency
	drainRatioMax  = 0.10 // maximum fraction of all nodes drained in one tick
	fractionMax    = 0.10 // maximum fraction of the Spot nodes that one node may be
	steerCooldown  = time.Minute
	blockedUtility = 0.95 // above it no Spot node is drained
)

// Reasons for which the agent leaves a node alone.
const (
	reasonFraction    policy.Reason = "cluster_fraction"
	reasonUtilization policy.Reason = "high_utilization"
)

// compatScratch is reusable memory for decideCompat.
type compatScratch struct {
	groups  workload.Groups // by instance type and zone
	byPlace []int32         // by type and zone, 1 + the index of its group
	spotIn  []int32         // by type and zone, 1 + the id of its Spot market
	zones   []int32         // by type, the number of zones in which it has nodes
	cpu     []int64         // requested thousandths of a core, by node
	guarded []bool          // by node, whether it runs a pod of the namespace monitoring
	members []int32         // by pool, zone and type, the number of nodes
	judged  []judgement     // by pool and zone
	picks   []pick
}

// A judgement is the decision for one group: the nodes of a pool in a zone.
type judgement struct {
	nodes, spot int
	utilization float64 // the sum over the nodes, then their mean
	action      Action
	freeze      bool
	capacity    float64
	reason      string
	market      policy.MarketID // Spot market of the dominant type
}

// A pick is a node that the decision for its group applies to.
type pick struct {
	node   policy.NodeID
	action Action // Hold means a freeze
	of     *judgement
}

// A compat is the state of one decision that reproduces the agent exactly.
type compat struct {
	cfg  *Config
	s    *policy.Snapshot
	sc   *compatScratch
	plan policy.Plan

	nodes, spot int // numbers of nodes of the cluster
}

// decideCompat follows the agent's own pipeline. It makes one decision for the nodes of a pool in a
// zone, judged by the dominant instance type there. The nodes concerned are limited and guarded one
// by one. The majority of them steers the pool, and each is drained without waiting for a
// replacement.
//
// What the agent's actuators do beyond that (evictions without grace, an abort at the first
// failure) cannot be expressed in a plan and is left to Spotter's actuators. The agent's target
// ratio is not kept: only its metrics and its shadow model read it.
func (p *Policy) decideCompat(s *policy.Snapshot, m policy.Memory, all *buffers) (policy.Plan, policy.Memory) {
	c := compat{cfg: &p.cfg, s: s, sc: &all.compat, plan: policy.Plan{Wake: policy.NextStep(s.Now, p.cfg.step())}}
	c.index()
	c.readPods()
	features := workload.CollectBy(s, c.sc.groups, workload.Options{Compat: true}, &all.workload)
	c.judge(features)
	c.pick()
	c.limit()
	c.guard()
	c.steer()
	c.drain()
	// The agent assumes a provisioner. If a pool has none, nodes are bought for pending pods at the
	// share to which the pool was steered, and released when they are not needed.
	share := func(id policy.PoolID) float64 {
		if !s.Pools[id].Steer.Set {
			return p.cfg.TargetShare
		}
		return s.Pools[id].Steer.Share
	}
	launches, holds := placement.Shortages(s, share)
	c.plan.Launches = append(c.plan.Launches, launches...)
	c.plan.Holds = append(c.plan.Holds, holds...)
	return replan.Consolidate(s, c.plan, m, replan.ConsolidateOptions{Share: share})
}

// managed reports whether the agent considers n: a node of a pool, in a known market, that has
// joined.
func (c *compat) managed(n *policy.Node) bool {
	return n.Pool >= 0 && n.Market >= 0 && c.s.Pools[n.Pool].Mode != policy.ModeOff &&
		(n.Phase == policy.NodeInitialized || n.Phase == policy.NodeDraining)
}

func (c *compat) place(m *policy.Market) int { return int(m.Type)*len(c.s.Zones) + int(m.Zone) }

// index groups the nodes by type and zone, and finds the Spot market of each group.
func (c *compat) index() {
	s, sc := c.s, c.sc
	sc.byPlace = scratch.Zeroed(sc.byPlace, len(s.Types)*len(s.Zones))
	sc.spotIn = scratch.Zeroed(sc.spotIn, len(s.Types)*len(s.Zones))
	sc.zones = scratch.Zeroed(sc.zones, len(s.Types))
	g := &sc.groups
	g.N, g.Of = 0, scratch.Zeroed(g.Of, len(s.Nodes))
	for i := range s.Markets {
		m := &s.Markets[i]
		at := c.place(m)
		if m.Capacity == policy.Spot && (sc.spotIn[at] == 0 || m.Offered && !s.Markets[sc.spotIn[at]-1].Offered) {
			sc.spotIn[at] = int32(i) + 1
		}
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		g.Of[i] = policy.None
		if !c.managed(n) {
			continue
		}
		m := &s.Markets[n.Market]
		at := &sc.byPlace[c.place(m)]
		if *at == 0 {
			g.N++
			*at = int32(g.N)
			sc.zones[m.Type]++
		}
		g.Of[i] = *at - 1
		c.nodes++
		if m.Capacity == policy.Spot {
			c.spot++
		}
	}
	g.Zones, g.GPU = scratch.Zeroed(g.Zones, g.N), scratch.Zeroed(g.GPU, g.N)
	for i := range s.Nodes {
		if g.Of[i] >= 0 {
			g.Zones[g.Of[i]] = sc.zones[s.Markets[s.Nodes[i].Market].Type]
		}
	}
}

// readPods sums the CPU requests of each node as its load, and finds the nodes that the agent does
// not drain because its own monitoring runs on them.
func (c *compat) readPods() {
	s, sc := c.s, c.sc
	sc.cpu, sc.guarded = scratch.Zeroed(sc.cpu, len(s.Nodes)), scratch.Zeroed(sc.guarded, len(s.Nodes))
	for i := range s.Pods {
		p := &s.Pods[i]
		if p.Phase == policy.PodGone || p.Node < 0 {
			continue
		}
		t := &s.Templates[p.Template]
		sc.cpu[p.Node] += t.Requests.CPU
		if t.Namespace == "monitoring" && !t.DaemonSet {
			sc.guarded[p.Node] = true
		}
	}
}

// judge makes the decision for the nodes of each pool in each zone.
func (c *compat) judge(features []workload.Features) {
	s, sc, zones := c.s, c.sc, len(c.s.Zones)
	sc.judged = scratch.Zeroed(sc.judged, len(s.Pools)*zones)
	sc.members = scratch.Zeroed(sc.members, len(s.Pools)*zones*len(s.Types))
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if sc.groups.Of[i] < 0 {
			continue
		}
		m := &s.Markets[n.Market]
		at := int(n.Pool)*zones + int(m.Zone)
		j := &sc.judged[at]
		j.nodes++
		if m.Capacity == policy.Spot {
			j.spot++
		}
		j.utilization += unit(float64(sc.cpu[i]) / float64(max(1, n.Allocatable.CPU)))
		sc.members[at*len(s.Types)+int(m.Type)]++
	}
	for at := range sc.judged {
		j := &sc.judged[at]
		if j.nodes == 0 {
			continue
		}
		dominant := 0 // the agent breaks ties randomly; here the first type is chosen
		for t, n := range sc.members[at*len(s.Types) : (at+1)*len(s.Types)] {
			if n > sc.members[at*len(s.Types)+dominant] {
				dominant = t
			}
		}
		j.utilization /= float64(j.nodes)
		c.apply(j, policy.PoolID(at/zones), dominant*zones+at%zones, features)
	}
}

// apply applies the rules to the group j, whose dominant type and zone are given by place. A group
// without prices is skipped.
func (c *compat) apply(j *judgement, pool policy.PoolID, place int, features []workload.Features) {
	if c.sc.spotIn[place] == 0 {
		return
	}
	j.market = policy.MarketID(c.sc.spotIn[place] - 1)
	m := &c.s.Markets[j.market]
	if !m.Offered || m.OnDemand <= 0 {
		return
	}
	f := &features[c.sc.byPlace[place]-1]
	spot, fixed := m.Price.Float(), m.OnDemand.Float()
	st := State{
		SpotPrice: spot, OnDemandPrice: fixed, Startup: f.Startup, Penalty: f.Penalty,
		MigrationCost: f.Startup / 3600 * (fixed - spot) * j.utilization * 2,
		Priority:      f.Priority, Utilization: j.utilization, Share: float64(j.spot) / float64(j.nodes),
	}
	var capacity, runtime float64
	if m.Forecast.Source == policy.SourceModel {
		capacity, runtime = m.Forecast.Capacity, m.Forecast.Runtime
	}
	capacity, runtime = exponent(capacity, c.cfg.RiskMultiplier), exponent(runtime, c.cfg.RiskMultiplier)
	d := Evaluate(c.cfg, st, f.Safety, capacity, runtime)
	j.action, j.freeze, j.capacity, j.reason = d.Action, d.Mode == Freeze, capacity, d.Reason
	if capacity > riskThreshold {
		j.action, j.freeze, j.reason = EmergencyExit, false, EmergencyRisk
	}
	if j.action == Hold {
		c.plan.Holds = append(c.plan.Holds, policy.Hold{Pool: pool, Node: policy.None, Why: policy.Why{
			Reason: policy.Reason(d.Reason), Text: text(d.Reason), Before: m.OnDemand, After: m.Price,
		}})
	}
}

// exponent returns p with its odds raised to the power m, as the agent's risk multiplier does.
func exponent(p, m float64) float64 {
	if m == 1 {
		return p
	}
	p = clamp(p, 1e-6, 1-1e-6)
	o := portable.Pow(p/(1-p), m)
	return o / (1 + o)
}

// pick collects the nodes to which the decisions apply: on-demand nodes if the share should grow,
// Spot nodes if it should fall, and all nodes of a freeze.
func (c *compat) pick() {
	s, sc := c.s, c.sc
	sc.picks = sc.picks[:0]
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if sc.groups.Of[i] < 0 {
			continue
		}
		m := &s.Markets[n.Market]
		j := &sc.judged[int(n.Pool)*len(s.Zones)+int(m.Zone)]
		var concerned bool
		switch change := j.action.Change(); {
		case change > 0:
			concerned = m.Capacity == policy.OnDemand
		case change < 0:
			concerned = m.Capacity == policy.Spot
		default:
			concerned = j.freeze
		}
		if concerned && !reserved(n) {
			sc.picks = append(sc.picks, pick{node: n.ID, action: j.action, of: j})
		}
	}
}

// reserved reports whether n is a control-plane node or a fake node, which the agent leaves alone.
func reserved(n *policy.Node) bool {
	for i := range n.Labels {
		switch n.Labels[i].Key {
		case "node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master":
			return true
		}
	}
	return slices.ContainsFunc(n.Taints, func(t policy.Taint) bool { return t.Key == "spotvortex.io/fake" })
}

// limit keeps the freezes and as many other picks as may be drained in one tick, emergencies first
// and then in descending order of capacity score.
func (c *compat) limit() {
	picks := c.sc.picks
	left := max(1, int(drainRatioMax*float64(c.nodes)))
	for i := range picks {
		pool := &c.s.Pools[c.s.Nodes[picks[i].node].Pool]
		if picks[i].action != Hold && pool.Provisioner == policy.ProvisionerKarpenter {
			left = min(left, c.budget(pool))
		}
	}
	slices.SortStableFunc(picks, func(a, b pick) int {
		if (a.action == EmergencyExit) != (b.action == EmergencyExit) {
			if a.action == EmergencyExit {
				return -1
			}
			return 1
		}
		return cmp.Compare(b.of.capacity, a.of.capacity)
	})
	kept := picks[:0]
	for _, x := range picks {
		if x.action != Hold {
			if left <= 0 {
				continue
			}
			left--
		}
		kept = append(kept, x)
	}
	c.sc.picks = kept
}

// budget returns the smallest of the pool's disruption budgets as the agent reads them: whether
// active or not, with percentages of the whole cluster, rounded down.
func (c *compat) budget(pool *policy.Pool) int {
	least := c.nodes
	for i := range pool.Budgets {
		if b := &pool.Budgets[i]; b.Closed != "" && !b.Active {
			continue // a window or freeze, which the agent does not know
		}
		n := int(pool.Budgets[i].Nodes.N)
		if pool.Budgets[i].Nodes.Percent {
			n = n * c.nodes / 100
		}
		least = min(least, n)
	}
	return least
}

// guard drops the nodes that the agent's guardrails block. Nodes for which they only downgrade the
// decision are still drained. The cluster-fraction guardrail blocks every move while the cluster
// has one to nine Spot nodes.
func (c *compat) guard() {
	kept := c.sc.picks[:0]
	for _, x := range c.sc.picks {
		switch {
		case x.action == Hold:
		case c.spot > 0 && 1/float64(c.spot) > fractionMax:
			c.holdNode(x.node, reasonFraction, "one node is too large a part of the Spot nodes")
			continue
		case x.action.Change() < 0 && x.of.utilization > blockedUtility:
			c.holdNode(x.node, reasonUtilization, "the nodes are too full to lose one")
			continue
		}
		kept = append(kept, x)
	}
	c.sc.picks = kept
}

func (c *compat) holdNode(n policy.NodeID, reason policy.Reason, text string) {
	price := c.s.Markets[c.s.Nodes[n].Market].Price
	c.plan.Holds = append(c.plan.Holds, policy.Hold{Pool: c.s.Nodes[n].Pool, Node: n, Why: policy.Why{
		Reason: reason, Text: text, Before: price, After: price,
	}})
}

// steer lets the picks of each pool vote: Spot is tried first if more picks request growth than
// anything else, and on-demand otherwise.
func (c *compat) steer() {
	for id := range c.s.Pools {
		pool := &c.s.Pools[id]
		spot, fixed := 0, 0
		var first *pick
		for i := range c.sc.picks {
			x := &c.sc.picks[i]
			if c.s.Nodes[x.node].Pool != pool.ID {
				continue
			}
			if first == nil {
				first = x
			}
			if x.action.Change() > 0 {
				spot++
			} else {
				fixed++
			}
		}
		share := 0.0
		if spot > fixed {
			share = 1
		}
		if first == nil || pool.Steer.Set && (pool.Steer.Share == share || c.s.Now.Sub(pool.Steer.Since) < steerCooldown) {
			continue
		}
		m := &c.s.Markets[first.of.market]
		why := policy.Why{
			Reason: policy.Reason(first.of.reason), Text: "most of its nodes favor on-demand first",
			Before: m.Price, After: m.OnDemand, RunnerUp: "Spot first",
		}
		if share == 1 {
			why.Text, why.RunnerUp = "most of its nodes favor Spot first", "on-demand first"
			why.Before, why.After = m.OnDemand, m.Price
		}
		c.plan.Steers = append(c.plan.Steers, policy.Steer{Pool: pool.ID, Share: share, Fallback: true,
			Bid: placement.Bid(c.s, pool.ID), Why: why})
	}
}

// drain drains the picks one by one. In a pool of scaling groups, one node of the other capacity
// type is bought first for all of them.
func (c *compat) drain() {
	swapped := make([]bool, len(c.s.Pools))
	for _, x := range c.sc.picks {
		n := &c.s.Nodes[x.node]
		if x.action == Hold || n.Phase != policy.NodeInitialized || c.sc.guarded[x.node] {
			continue
		}
		if n.ActedBy != policy.ActorNone && n.ActedBy != policy.ActorUs {
			continue // another controller evicts the remaining pods there
		}
		m := &c.s.Markets[x.of.market]
		why := policy.Why{
			Reason: policy.Reason(x.of.reason), Text: text(x.of.reason),
			Before: c.s.Markets[n.Market].Price, After: m.OnDemand,
		}
		if x.action.Change() > 0 {
			why.After = m.Price
		}
		if c.s.Pools[n.Pool].Provisioner == policy.ProvisionerClusterAutoscaler && !swapped[n.Pool] {
			swapped[n.Pool] = true
			c.swap(n, x.action, why)
		}
		c.plan.Drains = append(c.plan.Drains, policy.Drain{Node: n.ID, Why: why})
	}
}

// swap buys one node of n's type in the other capacity type. The agent drains whether that node
// starts or not, so no drain waits for it.
func (c *compat) swap(n *policy.Node, a Action, why policy.Why) {
	to := policy.OnDemand
	if a.Change() > 0 {
		to = policy.Spot
	}
	l := policy.Launch{Pool: n.Pool, Replaces: policy.None, Why: why}
	for _, id := range c.s.Pools[n.Pool].Markets {
		m := &c.s.Markets[id]
		if m.Capacity == to && m.Offered && m.Type == c.s.Markets[n.Market].Type {
			l.Markets = append(l.Markets, id)
		}
	}
	if len(l.Markets) == 0 {
		return
	}
	l.Token = policy.Token(c.s.Now, c.s.Pools[n.Pool].Name, c.s.Markets[l.Markets[0]].Name, 0)
	c.plan.Launches = append(c.plan.Launches, l)
}
