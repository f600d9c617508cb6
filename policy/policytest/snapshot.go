package policytest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
)

// Epoch is before every instant of a generated snapshot.
var Epoch = policy.TimeOf(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))

// gib is a gibibyte.
const gib = 1 << 30

// Snapshot generates valid snapshots: small clusters in odd states, with many
// markets and few prices, so that ties are common.
func Snapshot() *rapid.Generator[*policy.Snapshot] {
	return rapid.Custom(func(t *rapid.T) *policy.Snapshot {
		now := Epoch.Add(time.Duration(rapid.IntRange(1, 2000).Draw(t, "minutes")) * time.Minute)
		s := &policy.Snapshot{Now: now, Zones: []string{"zone-a", "zone-b", "zone-c"}[:rapid.IntRange(1, 3).Draw(t, "zones")]}
		g := generator{t: t, s: s}
		g.types()
		g.markets()
		g.pools()
		g.workloads()
		g.nodes()
		g.pods()
		g.budgets()
		g.commitments()
		s.Sources = []policy.Source{{Name: "prices", Prices: true, At: now}}
		if err := s.Validate(); err != nil {
			t.Fatalf("generated snapshot: %v", err)
		}
		return s
	})
}

// Memory generates memories that a policy may meet together with s: empty, or
// of some of its pools and nodes.
func Memory(s *policy.Snapshot) *rapid.Generator[policy.Memory] {
	return rapid.Custom(func(t *rapid.T) policy.Memory {
		m := policy.Memory{Decisions: rapid.Uint64Range(0, 3).Draw(t, "decisions")}
		for i := range s.Pools {
			if !rapid.Bool().Draw(t, "remembered") {
				continue
			}
			p := policy.PoolMemory{Name: s.Pools[i].Name}
			p.HasTarget = rapid.Bool().Draw(t, "hasTarget")
			if p.HasTarget {
				p.Target = rapid.SampledFrom([]float64{0, 0.25, 0.5, 1}).Draw(t, "target")
			}
			ago := func(name string) policy.Time {
				return s.Now.Add(-time.Duration(rapid.SampledFrom([]int{1, 10, 300}).Draw(t, name)) * time.Minute)
			}
			p.Moved, p.Steered, p.Below = ago("moved"), ago("steered"), ago("below")
			m = m.With(p)
		}
		return m
	})
}

// A generator fills one snapshot, table by table.
type generator struct {
	t *rapid.T
	s *policy.Snapshot

	free []policy.Resources // by node
}

func (g *generator) chance(name string, percent int) bool {
	return rapid.IntRange(0, 99).Draw(g.t, name) < percent
}

func (g *generator) minutesAgo(name string) policy.Time {
	return g.s.Now.Add(-time.Duration(rapid.IntRange(0, 500).Draw(g.t, name)) * time.Minute)
}

// commitments gives some clusters reserved instances of one of their types, of
// which nodes may use a part.
func (g *generator) commitments() {
	if !g.chance("commitment", 20) {
		return
	}
	n := rapid.Int64Range(1, 3).Draw(g.t, "reserved")
	of := rapid.SampledFrom(g.s.Types).Draw(g.t, "reserved type")
	g.s.Commitments = []policy.Commitment{{Name: "reserved", Type: of.Name, Amount: n, Fee: policy.NoPrice}}
	g.s.Commitments[0].Unused = billing.CoverageOf(g.s).Unused(0)
}

func (g *generator) types() {
	gpus := int64(0)
	if g.chance("gpus", 20) {
		gpus = 1
	}
	for i, vcpu := range []int64{2, 4, 8}[:rapid.IntRange(1, 3).Draw(g.t, "types")] {
		r := policy.Resources{CPU: vcpu * 1000, Memory: vcpu * 4 * gib, Storage: 20 * gib, GPU: gpus * vcpu / 2, Pods: 20}
		it := policy.InstanceType{
			ID: policy.TypeID(i), Provider: "aws", Name: fmt.Sprintf("m%d.size", vcpu), Family: fmt.Sprintf("m%d", vcpu),
			Category: "m", Arch: "amd64", VCPU: vcpu, Capacity: r,
			Allocatable: r.Minus(policy.Resources{CPU: 100, Memory: gib}), VolumesMax: 25,
		}
		if gpus > 0 {
			it.GPUResource, it.GPUName = "nvidia.com/gpu", "T4"
		}
		g.s.Types = append(g.s.Types, it)
	}
}

func (g *generator) markets() {
	for z, zone := range g.s.Zones {
		for i := range g.s.Types {
			for _, c := range []policy.CapacityType{policy.OnDemand, policy.Spot} {
				it := &g.s.Types[i]
				m := policy.Market{
					Name:     strings.Join([]string{"aws", "region", zone, it.Name, c.String()}, "/"),
					Provider: "aws", Region: "region", Zone: policy.ZoneID(z), Type: it.ID, Capacity: c,
					Offered: true, OnDemand: policy.Money(it.VCPU) * 50_000, PlacementScore: -1, Band: policy.BandUnknown,
				}
				m.Price = m.OnDemand
				if c == policy.Spot {
					g.spot(&m)
				}
				g.s.Markets = append(g.s.Markets, m)
			}
		}
	}
	slices.SortFunc(g.s.Markets, func(a, b policy.Market) int { return strings.Compare(a.Name, b.Name) })
	for i := range g.s.Markets {
		g.s.Markets[i].ID = policy.MarketID(i)
	}
}

// spot draws the properties that differ between Spot markets.
func (g *generator) spot(m *policy.Market) {
	t := g.t
	m.Price = m.OnDemand.Times(rapid.SampledFrom([]float64{0.3, 0.4, 1.1}).Draw(t, "price"))
	m.Offered = g.chance("offered", 90)
	m.Band = policy.Band(rapid.IntRange(-1, 4).Draw(t, "band"))
	m.PricedAt = g.minutesAgo("pricedAt")
	for range rapid.SampledFrom([]int{0, 3, 24}).Draw(t, "history") {
		m.History = append(m.History, m.Price)
	}
	if g.chance("experience", 30) {
		m.Experience = policy.Experience{
			At: g.minutesAgo("at"), Launches: 4, NodeHours: 40,
			Refusals: float64(rapid.IntRange(0, 2).Draw(t, "refusals")),
			Reclaims: float64(rapid.IntRange(0, 2).Draw(t, "reclaims")),
		}
		if m.Experience.Refusals > 0 {
			m.Experience.Refused = g.minutesAgo("refused")
		}
	}
	if g.chance("forecast", 80) {
		m.Forecast = policy.Forecast{
			Hazard:     rapid.SampledFrom([]float64{0, 1.0 / 8192, 1.0 / 4}).Draw(t, "hazard"),
			Capacity:   rapid.SampledFrom([]float64{0, 0.25, 0.875}).Draw(t, "capacity"),
			Runtime:    rapid.SampledFrom([]float64{0, 0.125, 0.75}).Draw(t, "runtime"),
			Confidence: rapid.SampledFrom([]float64{0, 0.5, 0.75}).Draw(t, "confidence"),
			Source:     policy.SourceClosedForm,
		}
	}
}

func (g *generator) pools() {
	t := g.t
	for i := range rapid.IntRange(1, 2).Draw(t, "pools") {
		p := policy.Pool{
			ID: policy.PoolID(i), Name: fmt.Sprintf("pool-%d", i), Mode: policy.ModeActive,
			Provisioner: rapid.SampledFrom([]policy.Provisioner{policy.ProvisionerNone, policy.ProvisionerKarpenter}).Draw(t,
				"provisioner"),
			Share: rapid.SampledFrom([]policy.ShareRange{
				{Max: 1}, {Max: 1}, {Max: 0.5}, {Min: 0.25, Max: 0.75}, {},
			}).Draw(t, "share"),
			OnDemandFallback: rapid.Bool().Draw(t, "fallback"),
			Levers:           policy.Levers{Weights: true, Limits: true, Launch: g.chance("launch", 80)},
			Cooldown:         rapid.SampledFrom([]time.Duration{0, 30 * time.Minute}).Draw(t, "cooldown"),
		}
		for m := range g.s.Markets {
			p.Markets = append(p.Markets, policy.MarketID(m))
		}
		if g.chance("off", 5) {
			p.Mode = policy.ModeOff
		}
		if rapid.Bool().Draw(t, "steered") {
			p.Steer = policy.SteerState{Set: true, Share: rapid.SampledFrom([]float64{0, 0.5, 1}).Draw(t, "steer"),
				Exact: p.Share.Exact, Fallback: p.OnDemandFallback && g.chance("fallback steered", 80), Since: g.minutesAgo("since")}
		}
		switch rapid.IntRange(0, 2).Draw(t, "budget") {
		case 1:
			p.Budgets = []policy.DisruptionBudget{{Nodes: policy.Quantity{Set: true, Percent: true, N: 10}, Active: true}}
		case 2:
			p.Budgets = []policy.DisruptionBudget{
				{Nodes: policy.Quantity{Set: true, N: 2}, Active: true},
				{Nodes: policy.Quantity{Set: true}, Active: rapid.Bool().Draw(t, "closed")},
			}
		}
		g.s.Pools = append(g.s.Pools, p)
	}
}

func (g *generator) workloads() {
	t := g.t
	kinds := []policy.WorkloadKind{policy.KindDeployment, policy.KindDeployment, policy.KindStatefulSet, policy.KindJob,
		policy.KindBare}
	for i := range rapid.IntRange(1, 5).Draw(t, "workloads") {
		name := fmt.Sprintf("space/app-%d", i)
		id := policy.WorkloadID(i)
		g.s.Workloads = append(g.s.Workloads, policy.Workload{ID: id, Name: name,
			Kind: rapid.SampledFrom(kinds).Draw(t, "kind")})
		label := policy.Label{Key: "app", Value: fmt.Sprint(i)}
		pt := policy.Template{
			ID: policy.TemplateID(i), Workload: id, Name: name, Namespace: "space", Labels: []policy.Label{label},
			Requests: policy.Resources{
				CPU: rapid.SampledFrom([]int64{0, 500, 1500}).Draw(t, "cpu"), Memory: rapid.SampledFrom([]int64{0, gib,
					4 * gib}).Draw(t, "memory"), Pods: 1,
			},
			Grace: 30 * time.Second, OutagePenalty: -1, MigrationTier: -1,
			Critical: g.chance("critical", 10), NotSafeToEvict: g.chance("notSafe", 5),
		}
		if g.chance("selects", 20) {
			pt.NodeSelector = []policy.Label{{Key: "topology.kubernetes.io/zone", Value: g.s.Zones[0]}}
		}
		if g.chance("pdb", 60) {
			b := policy.PDB{
				ID: policy.PDBID(len(g.s.PDBs)), Name: name, Namespace: "space",
				Selector: policy.Selector{Requirements: []policy.Requirement{{Key: label.Key, Values: []string{label.Value}}}},
			}
			limit := policy.Quantity{Set: true, N: int32(rapid.IntRange(0, 3).Draw(t, "limit"))}
			if rapid.Bool().Draw(t, "minAvailable") {
				b.MinAvailable = limit
			} else {
				b.MaxUnavailable = limit
			}
			g.s.PDBs = append(g.s.PDBs, b)
			pt.PDBs = []policy.PDBID{b.ID}
		}
		g.s.Templates = append(g.s.Templates, pt)
	}
}

func (g *generator) nodes() {
	t := g.t
	phases := []policy.NodePhase{
		policy.NodeInitialized, policy.NodeInitialized, policy.NodeInitialized, policy.NodeInitialized,
		policy.NodeGone, policy.NodeLaunching, policy.NodeRegistered, policy.NodeDraining, policy.NodeDeleting,
	}
	for i := range rapid.IntRange(0, 14).Draw(t, "nodes") {
		n := policy.Node{ID: policy.NodeID(i), Phase: rapid.SampledFrom(phases).Draw(t, "phase"), Pool: policy.None,
			Market: policy.None}
		if n.Phase == policy.NodeGone {
			g.s.Nodes, g.free = append(g.s.Nodes, policy.Node{ID: n.ID}), append(g.free, policy.Resources{})
			continue
		}
		m := &g.s.Markets[rapid.IntRange(0, len(g.s.Markets)-1).Draw(t, "market")]
		it := &g.s.Types[m.Type]
		n.Name, n.Market, n.Launched = fmt.Sprintf("node-%d", i), m.ID, g.minutesAgo("launched")
		n.Pool = policy.PoolID(rapid.IntRange(-1, len(g.s.Pools)-1).Draw(t, "pool"))
		n.Allocatable, n.VolumesMax, n.GPUResource = it.Allocatable, it.VolumesMax, it.GPUResource
		n.Labels = []policy.Label{
			{Key: "karpenter.sh/capacity-type", Value: m.Capacity.String()},
			{Key: "kubernetes.io/hostname", Value: n.Name},
			{Key: "node.kubernetes.io/instance-type", Value: it.Name},
			{Key: "topology.kubernetes.io/zone", Value: g.s.Zones[m.Zone]},
		}
		if n.Phase < policy.NodeInitialized && g.chance("ours", 50) {
			n.Token = fmt.Sprintf("token-%d", i)
		}
		if m.Capacity == policy.Spot && n.Phase > policy.NodeLaunching && g.chance("notice", 15) {
			n.NoticeAt, n.ReclaimAt = g.s.Now.Add(-time.Second), g.s.Now.Add(119*time.Second)
		}
		n.NotReady, n.DoNotDisrupt = g.chance("notReady", 5), g.chance("doNotDisrupt", 5)
		n.AtGroupMin = n.Pool != policy.None && g.s.Pools[n.Pool].Provisioner == policy.ProvisionerClusterAutoscaler &&
			g.chance("groupMin", 10)
		if g.chance("acted", 15) {
			n.ActedBy = rapid.SampledFrom([]policy.Actor{policy.ActorUs, policy.ActorKarpenter, policy.ActorNTH}).Draw(t,
				"actedBy")
		}
		if g.chance("recommended", 5) {
			n.Recommended = g.s.Now
		}
		g.s.Nodes, g.free = append(g.s.Nodes, n), append(g.free, n.Allocatable)
	}
}

func (g *generator) pods() {
	t := g.t
	for i := range rapid.IntRange(0, 40).Draw(t, "pods") {
		pt := &g.s.Templates[rapid.IntRange(0, len(g.s.Templates)-1).Draw(t, "template")]
		w := &g.s.Workloads[pt.Workload]
		p := policy.Pod{
			ID: policy.PodID(i), Name: fmt.Sprintf("%s-%d", pt.Name, i), Template: pt.ID, Phase: policy.PodPending,
			Node: policy.None, Nominated: policy.None, VolumeZone: policy.None, Created: g.minutesAgo("created"),
			DoNotDisrupt: g.chance("podDoNotDisrupt", 3),
		}
		w.Replicas++
		if len(g.s.Nodes) > 0 && g.chance("bound", 85) {
			g.bind(&p, pt, w, policy.NodeID(rapid.IntRange(0, len(g.s.Nodes)-1).Draw(t, "node")))
		}
		g.s.Pods = append(g.s.Pods, p)
	}
}

// bind puts p on node where it may run; otherwise p stays pending.
func (g *generator) bind(p *policy.Pod, pt *policy.Template, w *policy.Workload, node policy.NodeID) {
	n := &g.s.Nodes[node]
	zone, _ := n.Label("topology.kubernetes.io/zone")
	selected := len(pt.NodeSelector) == 0 || pt.NodeSelector[0].Value == zone
	if n.Phase < policy.NodeInitialized || !selected || !pt.Requests.Within(g.free[node]) {
		return
	}
	g.free[node] = g.free[node].Minus(pt.Requests)
	p.Node, p.Bound = node, p.Created
	if g.chance("deletionCost", 20) {
		p.DeletionCost = rapid.Int32Range(-3, 3).Draw(g.t, "cost")
		p.DeletionCostFixed = g.chance("fixed", 20)
	}
	p.Phase = rapid.SampledFrom([]policy.PodPhase{
		policy.PodReady, policy.PodReady, policy.PodReady, policy.PodStarting, policy.PodTerminating,
	}).Draw(g.t, "podPhase")
	switch p.Phase {
	case policy.PodReady:
		p.ReadySince = p.Bound
		w.Ready++
	case policy.PodTerminating:
		p.Deleting = g.s.Now
		w.Replicas--
	}
}

// budgets fills the state of every disruption budget from its pods.
func (g *generator) budgets() {
	for i := range g.s.Templates {
		pt := &g.s.Templates[i]
		w := &g.s.Workloads[pt.Workload]
		for _, id := range pt.PDBs {
			b := &g.s.PDBs[id]
			b.Expected, b.Healthy = w.Replicas, w.Ready
			b.Desired = b.Required(b.Expected)
			b.Allowed = max(0, b.Healthy-b.Desired)
		}
	}
}
