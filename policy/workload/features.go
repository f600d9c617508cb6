package workload

import (
	"strings"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/scratch"
	"github.com/spotter-dev/spotter/policy/share"
)

// Options configure the computation of features.
type Options struct {
	// Compat computes features as the SpotVortex agent does; see [Safety]. It also uses the number
	// of disruptions that a budget allows at this moment, so that a pod that is not ready yet
	// counts against the pool. Otherwise the number that the budget allows when all of its pods are
	// healthy is used, because the drains that execute one decision would change the input of the
	// next.
	Compat bool
}

// Features describe the pods of one group of nodes, which is usually a pool.
type Features struct {
	// Startup is the 95th percentile of the time from bound to ready in seconds, weighted by CPU.
	// Pods that are not ready yet count if their startup time is stated.
	Startup float64

	// Penalty is the cost of an outage in hours of pod value, and Priority the importance of the
	// pods in [0, 1]. Both are means weighted by CPU.
	Penalty, Priority float64

	// Utilization in [0, 1] is the requested fraction of the allocatable resources on the usable
	// nodes: of CPU with Compat, otherwise of the scarcest among CPU, memory and GPUs. It is based
	// on requests, because a snapshot does not contain usage.
	Utilization float64

	// Single is the fraction of the pods' CPU that belongs to workloads with one replica, for which
	// a move is an outage. Jobs do not count as such.
	Single float64

	// Requested and Allocatable are sums over the usable nodes.
	Requested, Allocatable policy.Resources

	// SpotUnits of Units are on Spot, in vCPUs, or in GPUs for a GPU pool, over the nodes that are
	// initialized and not being drained or deleted. SpotNodes of Nodes counts the same nodes.
	SpotUnits, Units int64
	SpotNodes, Nodes int

	// Pods is the number of pods, without those of DaemonSets. The other fields count subsets of
	// them.
	Pods, Stateful, Evictable, Critical, CriticalOnSpot int

	// Zones is the number of zones; see [Groups].
	Zones int

	Safety PoolSafety
}

// Share returns the current Spot share in [0, 1], or 0 if the group is empty.
func (f *Features) Share() float64 {
	if f.Units == 0 {
		return 0
	}
	return float64(f.SpotUnits) / float64(f.Units)
}

// SafetyAt returns the safety of the group if share of it were Spot: with correspondingly fewer
// idle on-demand nodes, and with the fraction share of the critical pods on Spot, or more if they
// are already concentrated there.
//
// A limit computed from the current share changes with the share, so that a pool that follows it
// oscillates. A pool that evaluates the limit at its target share does not.
func (f *Features) SafetyAt(share float64) PoolSafety {
	p := f.Safety
	if f.Pods == 0 {
		return p
	}
	p.SpareOnDemand = max(0, float64(f.Nodes)*float64((1-share)*(1-f.Utilization)))
	if f.Critical > 0 {
		p.CriticalOnSpot = share
		held := f.Share()
		if actual := float64(f.CriticalOnSpot) / float64(f.Critical); held > 0 && actual > held {
			p.CriticalOnSpot = min(1, actual*share/held)
		}
	}
	p.Risk = risk(&p)
	p.SafeMax = safeMax(&p)
	return p
}

// StableShare returns the largest share that is allowed by [Features.SafetyAt] for that share.
func (f *Features) StableShare() float64 {
	lo, hi := 0.0, 1.0
	if f.SafetyAt(hi).SafeMax >= hi {
		return hi
	}
	for range 16 { // to 1/65,536, which is much finer than a node
		mid := (lo + hi) / 2
		if f.SafetyAt(mid).SafeMax >= mid {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// unknown returns the features of a group without pods.
func unknown() Features {
	return Features{Startup: 300, Penalty: 5, Priority: 0.5, Safety: DefaultPoolSafety()}
}

// Groups assign nodes to groups, for which features are computed.
type Groups struct {
	// N is the number of groups. Of contains the group in 0…N-1 of each node of the snapshot, or a
	// negative number for a node without a group.
	N  int
	Of []int32

	// Zones is the number of zones over which each group counts as spread.
	Zones []int32

	// GPU reports, by group, whether its unit is GPUs instead of vCPUs.
	GPU []bool
}

// Collect returns the features of every pool of s, indexed by ID. The slice belongs to sc and is
// valid until its next use.
//
// A pool counts as spread over the zones of its nodes. Without Compat, it also counts as spread
// over the zones in which its Spot markets are currently offered, because capacity lost in one zone
// is available again in another, and a pool whose on-demand nodes are all in one zone may move to
// others. Auctions count like zones, because each has its own price.
func Collect(s *policy.Snapshot, o Options, sc *Scratch) []Features {
	g := &sc.pools
	sc.readPoolsOfNodes(s)
	g.N, g.Zones, g.GPU = len(s.Pools), scratch.Zeroed(g.Zones, len(s.Pools)), scratch.Zeroed(g.GPU, len(s.Pools))
	sc.zones = scratch.Zeroed(sc.zones, len(s.Zones))
	for p := range s.Pools {
		g.GPU[p] = share.CountsGPUs(s, policy.PoolID(p))
		for z, n := range sc.inZone[p*len(s.Zones) : (p+1)*len(s.Zones)] {
			sc.zones[z] = n > 0
		}
		auctions := int32(0)
		if !o.Compat {
			for _, id := range s.Pools[p].Markets {
				m := &s.Markets[id]
				if m.Capacity == policy.Spot && m.Offered {
					sc.zones[m.Zone] = true
					if m.Auction() {
						auctions++
					}
				}
			}
		}
		for _, in := range sc.zones {
			if in {
				g.Zones[p]++
			}
		}
		g.Zones[p] = max(g.Zones[p], auctions)
	}
	return CollectBy(s, *g, o, sc)
}

// readPoolsOfNodes updates the pool of every node that changed, and the numbers of nodes by zone.
func (sc *Scratch) readPoolsOfNodes(s *policy.Snapshot) {
	of, zones := sc.pools.Of, len(s.Zones)
	if !s.Follows(sc.mark) || len(sc.inZone) != len(s.Pools)*zones {
		sc.mark, of = policy.Mark{}, of[:0]
		sc.zoneOf, sc.inZone = sc.zoneOf[:0], scratch.Zeroed(sc.inZone, len(s.Pools)*zones)
	}
	for len(of) < len(s.Nodes) {
		of, sc.zoneOf = append(of, policy.None), append(sc.zoneOf, policy.None)
	}
	for c := s.NodesSince(sc.mark); c.Next(); {
		id := c.ID
		if at := sc.zoneOf[id]; at >= 0 {
			sc.inZone[at]--
		}
		n := &s.Nodes[id]
		of[id], sc.zoneOf[id] = policy.None, policy.None
		if n.Phase == policy.NodeGone || n.Pool < 0 {
			continue
		}
		of[id] = int32(n.Pool)
		if n.Market >= 0 {
			sc.zoneOf[id] = int32(n.Pool)*int32(zones) + int32(s.Markets[n.Market].Zone)
			sc.inZone[sc.zoneOf[id]]++
		}
	}
	sc.pools.Of, sc.mark = of, s.Mark()
}

// CollectBy returns the features of the groups of g. The slice belongs to sc and is valid until its
// next use.
func CollectBy(s *policy.Snapshot, g Groups, o Options, sc *Scratch) []Features {
	sc.features = scratch.Zeroed(sc.features, g.N)
	sc.readTemplates(s, o)
	sc.readCounts(s, g, o)
	sc.sumTemplates(s, g)
	sc.countEvictable(s, o)
	for i := range sc.features {
		f := &sc.features[i]
		f.Zones = int(g.Zones[i])
		f.Utilization = utilization(f, o)
		in := SafetyInput{
			OnDemandNodes: f.Nodes - f.SpotNodes, Pods: f.Pods, Stateful: f.Stateful,
			Evictable: f.Evictable, Critical: f.Critical, CriticalOnSpot: f.CriticalOnSpot,
			Budgets: sc.budgetsOf(s, i, o), Utilization: f.Utilization,
			ZoneCount: f.Zones, Restart: f.Startup,
		}
		if o.Compat {
			in.Utilization = compatUtilization
		}
		if sc.weights[i] > 0 {
			f.Safety = Safety(in, o.Compat)
		}
	}
	return sc.features
}

// compatUtilization is the utilization that the agent uses for every pool when it computes the
// safety of the pool: the agent never receives the actual value.
const compatUtilization = 0.5

func utilization(f *Features, o Options) float64 {
	cpu := ratio(f.Requested.CPU, f.Allocatable.CPU)
	if o.Compat {
		return unit(cpu)
	}
	memory, gpu := ratio(f.Requested.Memory, f.Allocatable.Memory), ratio(f.Requested.GPU, f.Allocatable.GPU)
	return unit(max(cpu, memory, gpu))
}

func ratio(part, whole int64) float64 {
	if whole <= 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// A traits contains the properties that the pods of one template share.
type traits struct {
	weight            int64 // milli-CPU, above 0
	penalty, priority float64
	startup           int64 // milliseconds; 0 if not stated
	single, stateful  bool
	critical, daemon  bool
	budgets           []policy.PDBID // budgets that count; empty for DaemonSets
}

// readTemplates computes the traits of every template.
func (sc *Scratch) readTemplates(s *policy.Snapshot, o Options) {
	sc.restricted = sc.restricted[:0]
	for i := range s.PDBs {
		if s.PDBs[i].Healthy <= s.PDBs[i].Desired {
			sc.restricted = append(sc.restricted, s.PDBs[i].Namespace)
		}
	}
	sc.traits = scratch.Zeroed(sc.traits, len(s.Templates))
	for i := range s.Templates {
		t := &s.Templates[i]
		kind, replicas := policy.KindBare, int32(1)
		if t.Workload >= 0 {
			kind, replicas = s.Workloads[t.Workload].Kind, s.Workloads[t.Workload].Replicas
		}
		x := &sc.traits[i]
		x.weight = t.Requests.CPU
		if x.weight <= 0 {
			x.weight = 1000
		}
		x.startup = t.Startup.Milliseconds()
		x.stateful = kind == policy.KindStatefulSet
		x.daemon = t.DaemonSet || kind == policy.KindDaemonSet
		x.single = !x.daemon && kind != policy.KindJob && replicas <= 1
		x.priority = priority(t)
		if !x.daemon {
			x.budgets = selecting(t, o)
		}
		x.critical = t.Critical || x.priority >= 0.75
		x.penalty = t.OutagePenalty
		if x.penalty < 0 {
			x.penalty = penalty(t.PriorityClass, kind, replicas, sc.isRestricted(t.Namespace))
		}
	}
}

func (sc *Scratch) isRestricted(namespace string) bool {
	for _, n := range sc.restricted {
		if n == namespace {
			return true
		}
	}
	return false
}

// penalty returns the assumed cost of an outage of a pod in hours if the user states none. A
// namespace is restricted if one of its PodDisruptionBudgets has no more healthy pods than it
// requires.
func penalty(class string, kind policy.WorkloadKind, replicas int32, restricted bool) float64 {
	hours := 4.0
	switch {
	case strings.Contains(class, "system-node-critical"), strings.Contains(class, "system-cluster-critical"):
		hours = 48
	case strings.Contains(class, "high"):
		hours = 12
	case strings.Contains(class, "low"):
		hours = 1
	}
	if restricted {
		hours *= 2
	}
	switch {
	case kind == policy.KindStatefulSet:
		hours *= 2
	case kind == policy.KindDeployment && replicas >= 2 && !restricted:
		hours *= 0.5
	}
	return hours
}

func priority(t *policy.Template) float64 {
	switch t.MigrationTier {
	case 0:
		return 1
	case 1:
		return 0.5
	case 2:
		return 0.25
	}
	switch class := t.PriorityClass; {
	case strings.Contains(class, "system"):
		return 1
	case strings.Contains(class, "high"):
		return 0.75
	case strings.Contains(class, "low"):
		return 0.25
	}
	return 0.5
}
