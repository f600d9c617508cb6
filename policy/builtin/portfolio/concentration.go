package portfolio

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/scratch"
	"github.com/spotter-dev/spotter/policy/share"
)

// A concentration is the distribution of the Spot capacity of a pool over the groups that are lost
// together: a market, a type in all zones, a zone. Each of the three sums to the same capacity;
// total also includes on-demand capacity.
type concentration struct {
	s                  *policy.Snapshot
	cfg                *Config
	pool               policy.PoolID
	market, kind, zone []float64 // in units of the pool's share
	total              float64
}

// readConcentration counts the nodes of the pool that are not leaving.
func readConcentration(x *poolContext) *concentration {
	c := newConcentration(x)
	c.read(&x.e.nodes)
	return &c
}

// newConcentration returns a concentration without nodes.
func newConcentration(x *poolContext) concentration {
	return concentration{s: x.s, cfg: &x.e.cfg, pool: x.pool.ID, market: make([]float64, len(x.s.Markets)),
		kind: make([]float64, len(x.s.Types)), zone: make([]float64, len(x.s.Zones))}
}

// read counts the nodes in nodes that belong to the pool and are not leaving.
func (c *concentration) read(nodes *nodeIndex) {
	count := slices.Clone(nodes.in(c.pool))
	for _, id := range nodes.odd {
		if n := &nodes.all[id]; n.pool == c.pool && n.market >= 0 && n.phase < policy.NodeDraining && !n.reclaimed {
			count[n.market]++
		}
	}
	for m, k := range count {
		if k > 0 {
			c.add(policy.MarketID(m), float64(k))
		}
	}
}

// add adds n nodes of market m; a negative n removes nodes.
func (c *concentration) add(m policy.MarketID, n float64) {
	x := &c.s.Markets[m]
	zone := x.Zone
	if x.Capacity != policy.Spot {
		zone = policy.None
	}
	c.addTo(m, x.Type, zone, n*float64(share.Units(c.s, c.pool, m)))
}

// addTo adds capacity of the given size in market m, of a type in a zone. zone is None if the
// market is not Spot.
func (c *concentration) addTo(m policy.MarketID, kind policy.TypeID, zone policy.ZoneID, size float64) {
	c.total += size
	if zone < 0 {
		return
	}
	c.market[m] += size
	c.kind[kind] += size
	c.zone[zone] += size
}

// factor returns the factor by which a node of m counts as more expensive than its price, because
// of what would be lost with it.
func (c *concentration) factor(m policy.MarketID) float64 {
	x := &c.s.Markets[m]
	if x.Capacity != policy.Spot || c.total <= 0 {
		return 1
	}
	return 1 + c.risk(m)/c.total
}

// risk returns the capacity that would be lost with a node of Spot market m, each group weighted
// with its risk, and 0 for other markets.
func (c *concentration) risk(m policy.MarketID) float64 {
	x := &c.s.Markets[m]
	if x.Capacity != policy.Spot {
		return 0
	}
	return c.riskIn(m, x.Type, x.Zone)
}

// riskIn is risk for market m of a type in a zone. zone is None if the market is not Spot.
func (c *concentration) riskIn(m policy.MarketID, kind policy.TypeID, zone policy.ZoneID) float64 {
	if zone < 0 {
		return 0
	}
	cfg := c.cfg
	return float64(cfg.MarketRisk*c.market[m]) + float64(cfg.TypeRisk*c.kind[kind]) + float64(cfg.ZoneRisk*c.zone[zone])
}

// capacityLabel is the topology key by which pods are spread over Spot and on-demand.
const capacityLabel = "karpenter.sh/capacity-type"

// A capacitySpread counts the pods of every workload on-demand and on Spot, including tentative
// moves. Pods that prefer to be spread over the two must not be lost all at once. No forecast
// justifies ignoring that, so a move respects the spread, even one that a scheduler may violate
// (ScheduleAnyway).
type capacitySpread struct {
	s      *policy.Snapshot
	wished bool       // some workload is spread over capacity types
	skew   []int32    // maximum skew by workload; 0 without such a spread
	pods   [][2]int32 // by workload, indexed by of
}

// read counts the pods of s.
func (c *capacitySpread) read(s *policy.Snapshot, pods *podIndex) {
	c.s = s
	c.skew, c.pods = scratch.Zeroed(c.skew, len(s.Workloads)), scratch.Zeroed(c.pods, len(s.Workloads))
	c.wished = false
	for i := range s.Templates {
		t := &s.Templates[i]
		if x := capacityWish(t); x > 0 && t.Workload >= 0 {
			c.skew[t.Workload], c.wished = x, true
		}
	}
	for i := 0; c.wished && i < len(s.Nodes); i++ {
		n := &s.Nodes[i]
		for _, p := range pods.on(n.ID) {
			if p.phase != policy.PodTerminating {
				c.count(s.Templates[p.template].Workload, n.Market, 1)
			}
		}
	}
}

// capacityWish returns the maximum skew of the topology spread of t over capacity types, or 0 if it
// has no such spread.
func capacityWish(t *policy.Template) int32 {
	i := slices.IndexFunc(t.Spread, func(x policy.Spread) bool { return x.TopologyKey == capacityLabel })
	if i < 0 {
		return 0
	}
	return max(t.Spread[i].MaxSkew, 1)
}

// count adds pods of w in market m.
func (c *capacitySpread) count(w policy.WorkloadID, m policy.MarketID, pods int32) {
	if w >= 0 && m >= 0 && c.skew[w] > 0 {
		c.pods[w][of(c.s.Markets[m].Capacity == policy.Spot)] += pods
	}
}

// move tentatively moves the given number of pods from the node of x to its market.
func (c *capacitySpread) move(x podMove, pods int32) {
	c.count(x.workload, c.s.Nodes[x.from].Market, -pods)
	c.count(x.workload, x.to, pods)
}

// clone returns a copy of c.
func (c *capacitySpread) clone() capacitySpread {
	x := *c
	x.pods = slices.Clone(c.pods)
	return x
}

// toSpot moves one pod of w from on-demand to Spot.
func (c *capacitySpread) toSpot(w policy.WorkloadID) {
	if w >= 0 {
		c.pods[w][0]--
		c.pods[w][1]++
	}
}

// allows reports whether w keeps its spread if the given number of its pods move from on-demand to
// Spot.
func (c *capacitySpread) allows(w policy.WorkloadID, pods int32) bool {
	return w < 0 || c.skew[w] == 0 || c.pods[w][1]+pods-(c.pods[w][0]-pods) <= c.skew[w]
}

// keptBy reports whether the tentative moves take no workload further from its spread.
func (c *capacitySpread) keptBy(moves []podMove) bool {
	return !slices.ContainsFunc(moves, func(x podMove) bool {
		from := c.s.Nodes[x.from].Market
		return x.to >= 0 && from >= 0 && c.s.Markets[x.to].Capacity == policy.Spot &&
			c.s.Markets[from].Capacity != policy.Spot && !c.allows(x.workload, 0)
	})
}

// mayLeave reports whether all pods of n may move from on-demand to Spot.
func (c *capacitySpread) mayLeave(n policy.NodeID, pods *podIndex) bool {
	if !c.wished {
		return true
	}
	there := pods.on(n)
	for i := range there {
		w, count := c.s.Templates[there[i].template].Workload, int32(0)
		if w < 0 || c.skew[w] == 0 {
			continue
		}
		for k := range there {
			if c.s.Templates[there[k].template].Workload == w {
				count++
			}
		}
		if !c.allows(w, count) {
			return false
		}
	}
	return true
}
