package models

import (
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/portable"
	"github.com/spotter-dev/spotter/policy/share"
	"github.com/spotter-dev/spotter/policy/workload"
)

// PoolFeaturesQ are the features of Spotter's own action values: the current and permitted nodes of
// a pool, the cost and the risk of Spot, recent events, and the tolerance of its pods. They do not
// depend on the unit of prices or the names of markets.
const PoolFeaturesQ = "spotter-pool/1"

// The features of [PoolFeaturesQ], in order.
const (
	poolShare      = iota // fraction of the capacity on Spot
	poolTarget            // target share of the pool
	poolMin               // minimum share
	poolMax               // maximum share
	poolArriving          // fraction of the capacity that is launching
	poolBest              // price per vCPU of the cheapest Spot market / of the cheapest on-demand market
	poolEighth            // the same for the eighth cheapest Spot market
	poolHeld              // charge / on-demand price of the pool's Spot nodes
	poolTrend             // price change of the cheapest markets within four hours
	poolHazard            // logarithm of the forecast hazard, mean of the cheapest
	poolHazardHeld        // the same for the pool's Spot nodes
	poolCapacity          // capacity score, mean of the cheapest
	poolChoice            // logarithm of the number of Spot markets that cost at most half of the on-demand price
	poolRefusing          // fraction of these that refused a launch within the last hour
	poolRefused           // 1/(1 + hours since a launch was refused)
	poolReclaimed         // 1/(1 + hours since a node was reclaimed)
	poolRate              // logarithm of the observed reclaims per node-hour
	poolShocks            // number of times that many nodes were lost together
	poolDepth             // fraction of nodes that were lost in these
	poolWarned            // fraction of nodes with a notice
	poolNodes             // logarithm of the number of nodes
	poolUsed              // utilization
	poolStartup           // startup of its pods, in units of ten minutes
	poolPenalty           // penalty of an outage, in days
	poolPriority
	poolSingle  // fraction of the CPU of single replicas
	poolSlack   // mean fraction of replicas that a service can spare
	poolTight   // minimum of this fraction
	poolJobs    // fraction of the CPU of jobs
	poolUnsafe  // fraction of the CPU of jobs without checkpoints
	poolPending // CPU of pending pods / CPU of all pods
	poolFeaturesQ
)

// poolNamesQ are the names of the features.
var poolNamesQ = []string{
	"share", "target", "share_min", "share_max", "arriving", "price_best", "price_eighth", "price_held", "price_trend",
	"hazard_best", "hazard_held", "capacity_score", "choice", "refusing", "since_refusal", "since_reclaim", "reclaim_rate",
	"shocks", "shock_depth", "warned", "nodes", "utilization", "startup", "outage_penalty", "priority", "single", "slack",
	"slack_least", "jobs", "jobs_without_checkpoint", "pending",
}

// cheapest is the number of cheapest markets whose properties are features.
const cheapest = 8

// PoolRows builds the rows of [PoolFeaturesQ]. The zero value is ready for use. It must not be used
// concurrently.
type PoolRows struct {
	s        *policy.Snapshot
	m        *policy.Memory
	features []workload.Features
	scratch  workload.Scratch
}

// Collect prepares the rows of s. m is the memory of the pools.
func (b *PoolRows) Collect(s *policy.Snapshot, m *policy.Memory) {
	b.s, b.m = s, m
	b.features = workload.Collect(s, workload.Options{}, &b.scratch)
}

// Row writes the features of pool id to row, each limited to [-1, 2]. row must be long enough.
func (b *PoolRows) Row(id policy.PoolID, row []float32) {
	var x [poolFeaturesQ]float64
	b.holding(id, &x)
	b.markets(id, &x)
	b.nodes(id, &x)
	b.pods(id, &x)
	for i, v := range x {
		row[i] = float32(max(-1, min(2, v)))
	}
}

// holding sets the features about the current and permitted nodes of the pool.
func (b *PoolRows) holding(id policy.PoolID, x *[poolFeaturesQ]float64) {
	p, f := &b.s.Pools[id], &b.features[id]
	was := b.m.Pool(p.Name)
	h := share.Of(b.s, id)
	total := float64(h.Spot + h.Fixed)
	x[poolShare] = h.Share()
	x[poolTarget] = h.Share()
	if was.HasTarget {
		x[poolTarget] = was.Target
	}
	x[poolMin], x[poolMax] = p.Share.Min, p.Share.Max
	x[poolArriving] = float64(h.Arriving[policy.Spot]+h.Arriving[policy.OnDemand]) / max(total, 1)
	x[poolNodes] = portable.Log1p(float64(f.Nodes)) / 6
	x[poolUsed] = f.Utilization
	x[poolStartup], x[poolPenalty] = f.Startup/600, f.Penalty/24
	x[poolPriority], x[poolSingle] = f.Priority, f.Single
	x[poolShocks], x[poolDepth] = was.Shocks.Count/4, was.Shocks.Depth
	x[poolRefused] = ago(b.s.Now, p.Refused)
}

// ago returns 1/(1 + hours since t), 0 if t is 0.
func ago(now, t policy.Time) float64 {
	if t == 0 {
		return 0
	}
	return 1 / (1 + max(0, now.Sub(t).Hours()))
}

// A quote is a Spot market and its price per vCPU.
type quote struct {
	unit   float64
	market policy.MarketID
}

// markets sets the features about the cost and the risk of Spot.
func (b *PoolRows) markets(id policy.PoolID, x *[poolFeaturesQ]float64) {
	s := b.s
	var list [cheapest]quote
	n, fixed := 0, 0.0
	reclaims, hours := 0.0, 0.0
	last := policy.Time(0)
	for _, m := range s.Pools[id].Markets {
		k := &s.Markets[m]
		if k.Capacity == policy.Spot {
			reclaims, hours = reclaims+k.Experience.Reclaims, hours+k.Experience.NodeHours
			last = max(last, k.Experience.Reclaimed)
		}
		unit := k.Charge().Float() / float64(max(1, s.Types[k.Type].VCPU))
		switch {
		case !k.Offered || unit <= 0:
		case k.Capacity != policy.Spot:
			if fixed == 0 || unit < fixed {
				fixed = unit
			}
		case n < cheapest || unit < list[n-1].unit:
			n = insert(&list, n, quote{unit, m})
		}
	}
	x[poolReclaimed] = ago(s.Now, last)
	x[poolRate] = portable.Log1p(float64(reclaims/max(hours, 24)*1000)) / 6
	x[poolBest], x[poolEighth] = 2, 2
	if n == 0 || fixed == 0 {
		return
	}
	x[poolBest] = list[0].unit / fixed
	if n == cheapest {
		x[poolEighth] = list[n-1].unit / fixed
	}
	for _, q := range list[:n] {
		m := &s.Markets[q.market]
		x[poolHazard] += logHazard(m.Forecast.Hazard) / float64(n)
		x[poolCapacity] += m.Forecast.Capacity / float64(n)
		if h := m.History; len(h) > 0 && h[0] > 0 && h[0] != policy.NoPrice {
			x[poolTrend] += (m.Price.Float()/h[0].Float() - 1) / float64(n)
		}
	}
	b.choice(id, fixed/2, x)
}

// insert inserts q into the cheapest quotes, which ascend, and returns their new number.
func insert(list *[cheapest]quote, n int, q quote) int {
	n = min(n+1, cheapest)
	i := n - 1
	for ; i > 0 && list[i-1].unit > q.unit; i-- {
		list[i] = list[i-1]
	}
	list[i] = q
	return n
}

// logHazard scales a hazard to about [0, 1].
func logHazard(h float64) float64 { return portable.Log1p(float64(h*1000)) / 6 }

// choice sets the features about Spot markets whose price per vCPU is at most most.
func (b *PoolRows) choice(id policy.PoolID, most float64, x *[poolFeaturesQ]float64) {
	s := b.s
	cheap, refusing := 0.0, 0.0
	for _, m := range s.Pools[id].Markets {
		k := &s.Markets[m]
		if k.Capacity != policy.Spot || !k.Offered || k.Charge().Float() > float64(most*float64(s.Types[k.Type].VCPU)) {
			continue
		}
		cheap++
		if r := k.Experience.Refused; r != 0 && s.Now-r < refusedLately {
			refusing++
		}
	}
	x[poolChoice] = portable.Log1p(cheap) / 6
	x[poolRefusing] = refusing / max(cheap, 1)
}

// refusedLately is the time that a market counts as refusing after a refusal, in milliseconds.
const refusedLately policy.Time = 3_600_000

// nodes sets the features about the cost and the risk of the pool's Spot nodes.
func (b *PoolRows) nodes(id policy.PoolID, x *[poolFeaturesQ]float64) {
	s := b.s
	all, spot, warned := 0.0, 0.0, 0.0
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Pool != id || n.Market < 0 || n.Phase != policy.NodeInitialized {
			continue
		}
		all++
		if n.ReclaimAt != 0 {
			warned++
		}
		m := &s.Markets[n.Market]
		if m.Capacity != policy.Spot {
			continue
		}
		spot++
		if m.OnDemand > 0 {
			x[poolHeld] += m.Charge().Float() / m.OnDemand.Float()
		}
		x[poolHazardHeld] += logHazard(m.Forecast.Hazard)
	}
	if spot > 0 {
		x[poolHeld] /= spot
		x[poolHazardHeld] /= spot
	} else {
		x[poolHeld], x[poolHazardHeld] = x[poolBest], x[poolHazard]
	}
	x[poolWarned] = warned / max(all, 1)
}

// pods sets the features about the tolerance of pods and about pending pods. A pending pod counts
// in every pool whose labels it selects.
func (b *PoolRows) pods(id policy.PoolID, x *[poolFeaturesQ]float64) {
	s := b.s
	all, jobs, unsafe, pending, served := 0.0, 0.0, 0.0, 0.0, 0.0
	x[poolTight] = 1
	for i := range s.Pods {
		p := &s.Pods[i]
		if p.Phase == policy.PodGone || p.Phase == policy.PodTerminating {
			continue
		}
		t := &s.Templates[p.Template]
		if t.DaemonSet || t.Workload < 0 {
			continue
		}
		cpu := float64(max(t.Requests.CPU, 1))
		if p.Node < 0 {
			if selects(t.NodeSelector, s.Pools[id].Labels) {
				pending, all = pending+cpu, all+cpu
			}
			continue
		}
		if s.Nodes[p.Node].Pool != id {
			continue
		}
		all += cpu
		w := &s.Workloads[t.Workload]
		if w.Kind == policy.KindJob {
			jobs += cpu
			if t.Checkpoint == 0 {
				unsafe += cpu
			}
			continue
		}
		spare := float64(w.Replicas-workload.Required(s, t, w.Replicas)) / float64(max(w.Replicas, 1))
		served += cpu
		x[poolSlack] += float64(cpu * spare)
		x[poolTight] = min(x[poolTight], spare)
	}
	x[poolSlack] /= max(served, 1)
	x[poolJobs], x[poolUnsafe], x[poolPending] = jobs/max(all, 1), unsafe/max(all, 1), pending/max(all, 1)
}

// selects reports whether labels contain all of selector.
func selects(selector, labels []policy.Label) bool {
	for _, l := range selector {
		if v, ok := policy.FindLabel(labels, l.Key); !ok || v != l.Value {
			return false
		}
	}
	return true
}
