package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/sim/simtest"
)

const labelHost, labelZone = "kubernetes.io/hostname", "topology.kubernetes.io/zone"

var testStart = simtest.Start

const gib = simtest.GiB

// A builder makes scenarios by hand.
type builder struct{ w scenarios.BoundScenario }

// newBuilder returns a scenario of the given duration with no markets yet.
func newBuilder(duration time.Duration) *builder { return &builder{simtest.New(duration)} }

func (b *builder) markets(zones, types int, gpus bool) { simtest.AddMarkets(&b.w, zones, types, gpus) }

func (b *builder) pool(name string) *policy.Pool { return simtest.AddPool(&b.w, name) }

func (b *builder) workload(name string, kind policy.WorkloadKind, replicas int32, requests policy.Resources) *policy.Template {
	return simtest.AddWorkload(&b.w, name, kind, replicas, requests)
}

// budget adds a PodDisruptionBudget for a workload.
func (b *builder) budget(w policy.WorkloadID, maxUnavailable policy.Quantity) {
	t := &b.w.Templates[w]
	id := policy.PDBID(len(b.w.PDBs))
	b.w.PDBs = append(b.w.PDBs, policy.PDB{ID: id, Name: t.Name, Namespace: "default", MaxUnavailable: maxUnavailable,
		Selector: policy.Selector{Requirements: []policy.Requirement{{Key: "app", Op: policy.OpIn, Values: []string{t.Labels[0].Value}}}}})
	t.PDBs = append(t.PDBs, id)
}

// startOnDemand has the warm-up start on the cheapest on-demand packing, for tests of a cluster
// that is running.
func (b *builder) startOnDemand() *builder {
	b.w.StartCluster = scenarios.StartOnDemand
	return b
}

// scenario returns what was built, markets in the order of their names.
func (b *builder) scenario() *scenarios.BoundScenario {
	simtest.SortMarkets(&b.w)
	return &b.w
}

// randomWorld draws a small scenario: the seed chooses the options first, then
// what fills them.
func randomScenario(seed uint64) *scenarios.BoundScenario {
	rnd := rand.New(rand.NewPCG(seed, 1))
	b := newBuilder(time.Duration(6+rnd.IntN(30)) * time.Hour)
	gpus, faults, moving := rnd.IntN(6) == 0, rnd.IntN(2) == 0, rnd.IntN(2) == 0
	b.w.WarmUp = time.Duration(1+rnd.IntN(24)) * time.Hour
	b.w.Intensity = []float64{0, 1, 20, 200}[rnd.IntN(4)]
	b.w.Slots = []int{0, 0, 1, 3}[rnd.IntN(4)]
	b.markets(1+rnd.IntN(3), 1+rnd.IntN(3), gpus)
	if moving {
		b.movePrices(rnd)
	}
	for p := range 1 + rnd.IntN(2) {
		pool := b.pool(fmt.Sprintf("p%d", p))
		pool.Consolidation = policy.Consolidation(rnd.IntN(3))
		pool.ConsolidateAfter = time.Duration(rnd.IntN(3)) * time.Minute
		pool.OnDemandFallback = rnd.IntN(4) > 0
		if rnd.IntN(4) == 0 {
			pool.ExpireAfter = time.Duration(4+rnd.IntN(20)) * time.Hour
		}
		if rnd.IntN(3) == 0 {
			pool.Budgets[0].Nodes = policy.Quantity{Set: true, N: int32(rnd.IntN(4))}
		}
		if rnd.IntN(5) == 0 {
			pool.Provisioner = policy.ProvisionerNone
		}
	}
	if rnd.IntN(2) == 0 {
		b.workload("agent", policy.KindDaemonSet, 0, policy.Resources{CPU: 100, Memory: gib / 8})
	}
	for i := range 1 + rnd.IntN(5) {
		b.randomWorkload(rnd, i, gpus)
	}
	if faults {
		b.randomFaults(rnd)
	}
	b.randomExtras(rand.New(rand.NewPCG(seed, 2)))
	b.randomGroups(rand.New(rand.NewPCG(seed, 4)))
	b.randomAuctions(rand.New(rand.NewPCG(seed, 3)))
	b.randomBudgets(rand.New(rand.NewPCG(seed, 5)))
	b.randomCommitments(rand.New(rand.NewPCG(seed, 5)))
	b.randomPriceMax(rand.New(rand.NewPCG(seed, 6)))
	b.randomFees(rand.New(rand.NewPCG(seed, 7)))
	b.randomCredits(rand.New(rand.NewPCG(seed, 8)))
	for i := range b.w.Workloads { // drawn after all else, so that seeds keep their scenarios
		if w := &b.w.Workloads[i]; w.Kind == policy.KindDeployment && rnd.IntN(3) == 0 {
			w.Rollouts = []policy.Time{at(time.Hour), at(time.Hour + time.Duration(1+rnd.IntN(240))*time.Minute)}
		}
	}
	return b.scenario()
}

// randomFees charges nodes of some pools more than their prices.
func (b *builder) randomFees(rnd *rand.Rand) {
	for i := range b.w.Pools {
		if rnd.IntN(4) == 0 {
			b.w.Pools[i].Fees = policy.NodeFees{Fee: policy.Money(rnd.IntN(300_000)), Volumes: policy.Money(rnd.IntN(30_000))}
		}
	}
}

// randomCredits makes some types of some scenarios burstable.
func (b *builder) randomCredits(rnd *rand.Rand) {
	if rnd.IntN(3) > 0 {
		return
	}
	for i := range b.w.Types {
		if t := &b.w.Types[i]; rnd.IntN(2) == 0 {
			t.Credits = policy.CPUCredits{Baseline: t.VCPU * int64(50+rnd.IntN(350)), Surplus: 50_000,
				Standard: rnd.IntN(3) == 0, Launch: int64(rnd.IntN(2)) * 30 * t.VCPU}
		}
	}
	for i := range b.w.Templates {
		t := &b.w.Templates[i]
		t.CPUUse = t.Requests.CPU * int64(rnd.IntN(130)) / 100
	}
}

// randomPriceMax bounds what some pools pay for a node.
func (b *builder) randomPriceMax(rnd *rand.Rand) {
	for i := range b.w.Pools {
		if rnd.IntN(5) == 0 {
			b.w.Pools[i].PriceMax = policy.Money(60_000 + rnd.IntN(360_000))
		}
	}
}

// randomGroups lets the Cluster Autoscaler serve the pools of some scenarios.
func (b *builder) randomGroups(rnd *rand.Rand) {
	if rnd.IntN(4) > 0 {
		return
	}
	for i := range b.w.Pools {
		if rnd.IntN(4) > 0 {
			b.groups(&b.w.Pools[i])
		}
	}
	for i := range b.w.Workloads {
		b.w.Workloads[i].LocalStorage = rnd.IntN(8) == 0
	}
	if rnd.IntN(3) == 0 {
		b.w.Groups = scenarios.GroupBounds{Min: rnd.IntN(3), Max: 3 + rnd.IntN(10)}
	}
}

// groups makes p a pool of Auto Scaling groups.
func (b *builder) groups(p *policy.Pool) {
	p.Provisioner, p.Levers = policy.ProvisionerClusterAutoscaler, policy.Levers{Limits: true, Launch: true}
}

// randomAuctions turns some scenarios into one of Rackspace Spot, whose prices are
// at times far above what a node is worth.
func (b *builder) randomAuctions(rnd *rand.Rand) {
	if rnd.IntN(5) > 0 {
		return
	}
	b.auctions()
	for i := range b.w.Markets {
		if !b.w.Markets[i].Auction() {
			continue
		}
		c := &b.w.Prices[i]
		for k := range c.Price {
			if c.Price[k] != policy.NoPrice {
				c.Price[k] = c.Price[k] * policy.Money(1+rnd.IntN(400)*rnd.IntN(2)) / 100
			}
		}
	}
}

// randomExtras adds what few clusters have. It draws from a stream of its own,
// so that the rest of a seed's scenario is the same with and without.
func (b *builder) randomExtras(rnd *rand.Rand) {
	for i := range b.w.Pools {
		b.extraPool(rnd, &b.w.Pools[i])
	}
	for i := range b.w.Templates {
		b.extraPod(rnd, &b.w.Templates[i])
	}
	if rnd.IntN(4) == 0 {
		for i := range b.w.Markets {
			if rnd.IntN(3) == 0 {
				b.w.StartCluster = scenarios.StartNodes
				b.w.Seeds = append(b.w.Seeds, scenarios.NodeSeed{Pool: 0, Market: policy.MarketID(i), Count: 1 + rnd.IntN(4)})
			}
		}
	}
	if rnd.IntN(4) == 0 {
		b.recordAvailability(rnd)
	}
}

func (b *builder) extraPool(rnd *rand.Rand, p *policy.Pool) {
	if rnd.IntN(4) == 0 {
		p.Budgets = append(p.Budgets, policy.DisruptionBudget{Nodes: policy.Quantity{Set: true, N: int32(rnd.IntN(2))},
			Reasons:  [][]policy.DisruptionReason{nil, {policy.Empty}, {policy.Underutilized}}[rnd.IntN(3)],
			Schedule: fmt.Sprintf("%d %d * * *", rnd.IntN(60), rnd.IntN(24)), Duration: time.Duration(10+rnd.IntN(600)) * time.Minute})
	}
	if rnd.IntN(4) == 0 {
		p.Limits.CPU = int64(8+rnd.IntN(60)) * 1000
	}
	if p.ID > 0 && rnd.IntN(3) == 0 {
		p.Taints = []policy.Taint{{Key: "team", Value: "a", Effect: policy.NoSchedule}}
	}
}

func (b *builder) extraPod(rnd *rand.Rand, t *policy.Template) {
	w := &b.w.Workloads[t.Workload]
	if rnd.IntN(2) == 0 {
		t.Tolerations = []policy.Toleration{{Key: "team", Exists: true}}
	}
	if t.DaemonSet {
		return
	}
	own := policy.Selector{Requirements: []policy.Requirement{{Key: "app", Op: policy.OpIn, Values: []string{t.Labels[0].Value}}}}
	switch rnd.IntN(10) {
	case 0:
		t.PodAntiAffinity = []policy.PodTerm{{Selector: own, TopologyKey: labelHost}}
	case 1:
		t.PodAntiAffinity = []policy.PodTerm{{Selector: own, TopologyKey: labelZone, Weight: int32(rnd.IntN(2)) * 50}}
	case 2:
		t.HostPorts = []policy.HostPort{{Port: 8080, Protocol: "TCP"}}
	}
	if w.DoNotDisrupt = rnd.IntN(12) == 0; w.DoNotDisrupt {
		w.ProtectedFor = time.Duration(rnd.IntN(3)) * 20 * time.Minute
	}
	if rnd.IntN(6) == 0 {
		w.OutageCostPerHour = policy.Money(rnd.IntN(50)) * policy.Dollar
	}
}

// recordAvailability gives Spot markets a recorded availability instead of drawn shortages and
// reclaims.
func (b *builder) recordAvailability(rnd *rand.Rand) {
	b.w.Available = make([]scenarios.AvailabilityCurve, len(b.w.Markets))
	for i := range b.w.Markets {
		if b.w.Markets[i].Capacity != policy.Spot || rnd.IntN(4) == 0 {
			continue
		}
		c, up := &b.w.Available[i], true
		for at := b.w.Start.Add(-b.w.WarmUp); at < b.w.Start.Add(b.w.Duration); at = at.Add(10 * time.Minute) {
			if rnd.IntN(20) == 0 {
				up = !up
			}
			c.At, c.Available = append(c.At, at), append(c.Available, up)
		}
	}
}

// movePrices changes Spot prices every few hours, and leaves some out.
func (b *builder) movePrices(rnd *rand.Rand) {
	for i := range b.w.Prices {
		if b.w.Markets[i].Capacity != policy.Spot {
			continue
		}
		c := &b.w.Prices[i]
		base := c.Price[0]
		for t := c.At[0].Add(time.Hour); t < b.w.Start.Add(b.w.Duration); t = t.Add(time.Duration(1+rnd.IntN(12)) * time.Hour) {
			price := base * policy.Money(50+rnd.IntN(250)) / 100
			if rnd.IntN(20) == 0 {
				price = policy.NoPrice
			}
			c.At, c.Price = append(c.At, t), append(c.Price, price)
		}
	}
}

func (b *builder) randomWorkload(rnd *rand.Rand, i int, gpus bool) {
	kinds := []policy.WorkloadKind{policy.KindDeployment, policy.KindDeployment, policy.KindStatefulSet, policy.KindJob}
	kind := kinds[rnd.IntN(len(kinds))]
	requests := policy.Resources{CPU: int64(200 + rnd.IntN(3000)), Memory: int64(1+rnd.IntN(8)) * gib / 2}
	if gpus && rnd.IntN(2) == 0 {
		requests.GPU = 1
	}
	replicas := int32(1 + rnd.IntN(8))
	t := b.workload(fmt.Sprintf("w%d", i), kind, replicas, requests)
	t.Priority = int32(rnd.IntN(3)) * 1000
	if rnd.IntN(3) == 0 {
		t.Spread = []policy.Spread{{TopologyKey: "topology.kubernetes.io/zone", MaxSkew: 1, Soft: rnd.IntN(2) == 0,
			Selector: policy.Selector{Requirements: []policy.Requirement{{Key: "app", Op: policy.OpIn, Values: []string{t.Labels[0].Value}}}}}}
	}
	if kind == policy.KindStatefulSet && rnd.IntN(2) == 0 {
		t.Volumes = []policy.Volume{{Zonal: true}}
	}
	t.Startup = time.Duration(rnd.IntN(3)) * time.Minute
	t.NotSafeToEvict = rnd.IntN(12) == 0
	w := &b.w.Workloads[t.Workload]
	if kind == policy.KindJob {
		w.Schedule, w.Replicas = nil, 0
		w.Job = &scenarios.Job{Pods: replicas, Completions: replicas + int32(rnd.IntN(4)), Work: time.Duration(5+rnd.IntN(120)) * time.Minute,
			Checkpoint: time.Duration(rnd.IntN(3)) * 10 * time.Minute, Deadline: time.Duration(rnd.IntN(4)) * time.Hour}
		for at := b.w.Start.Add(-time.Hour); at < b.w.Start.Add(b.w.Duration); at = at.Add(time.Duration(2+rnd.IntN(10)) * time.Hour) {
			w.Job.Releases = append(w.Job.Releases, at)
		}
		return
	}
	if rnd.IntN(2) == 0 {
		b.budget(t.Workload, policy.Quantity{Set: true, N: int32(rnd.IntN(3))})
	}
	for at := b.w.Start.Add(-2 * time.Hour); rnd.IntN(3) > 0 &&
		at < b.w.Start.Add(b.w.Duration); at = at.Add(time.Duration(1+rnd.IntN(8)) * time.Hour) {
		w.Schedule = append(w.Schedule, scenarios.ReplicaStep{At: at, Replicas: int32(rnd.IntN(12))})
	}
}

func (b *builder) randomFaults(rnd *rand.Rand) {
	for range 1 + rnd.IntN(4) {
		f := scenarios.Fault{Kind: scenarios.FaultKind(rnd.IntN(int(scenarios.FaultZonalShift) + 1)),
			At: b.w.Start.Add(time.Duration(rnd.IntN(int(b.w.Duration/time.Minute))) * time.Minute), Duration: time.Duration(1+rnd.IntN(120)) * time.Minute,
			Share: []float64{0.3, 1}[rnd.IntN(2)], Factor: 1 + 3*rnd.Float64(), Delay: time.Duration(rnd.IntN(3)) * time.Minute}
		if rnd.IntN(2) == 0 {
			f.Zone = b.w.Zones[rnd.IntN(len(b.w.Zones))]
		}
		b.w.Faults = append(b.w.Faults, f)
	}
}
