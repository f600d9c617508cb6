package portfolio

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/scratch"
	"github.com/spotter-dev/spotter/policy/workload"
)

// steerEvery is the least time between two changes of what a pool may buy.
const steerEvery = 10 * time.Minute

// A ranked is a market and what it is worth.
type ranked struct {
	market   policy.MarketID
	capacity policy.CapacityType
	unit     float64 // dollars an hour for what one core's worth of the demand needs
}

// price computes what a node of each market of the pool costs an hour, with what
// its loss would cost counted in.
func (d *planState) price() {
	d.priceAt(d.lossPerCore(), 0)
}

// priceAt does the same where the loss of a node costs so much for each core, and
// at least so many nodes are reclaimed in an hour.
func (d *planState) priceAt(loss, hazard float64) {
	e, s := d.e, d.s
	d.worths = [2]evaluated{}
	if len(e.costs) < len(s.Markets) {
		e.costs = make([]float64, len(s.Markets))
	}
	for _, id := range d.pool.Markets {
		m := &s.Markets[id]
		cost := m.Charge().Float()
		if m.Capacity == policy.Spot {
			cost += float64(max(m.Forecast.Hazard, hazard)*loss) * float64(s.Types[m.Type].VCPU)
		}
		e.costs[id] = cost
	}
}

// keeping returns what node n costs an hour: nothing where what was paid for in
// advance covers it and no other node instead.
func (d *planState) keeping(n *policy.Node) float64 {
	if d.s.Markets[n.Market].Capacity != policy.Spot && d.e.cover.Covers(n.Market) {
		return d.e.cover.Saving(n.Market).Float()
	}
	return d.e.costs[n.Market]
}

// buying returns what one more node of market id costs an hour. One that was paid
// for in advance is taken to cost a thousandth, so that the smaller of two such is
// bought.
func (d *planState) buying(id policy.MarketID) float64 {
	if m := &d.s.Markets[id]; m.Capacity != policy.Spot && d.e.cover.Covers(id) {
		return max(d.e.cover.Marginal(id).Float(), m.OnDemand.Float()/1000)
	}
	return d.e.costs[id]
}

// lossPerCore returns what the loss of a node costs in dollars for each of its
// cores: what the loss of every pod of the pool would cost, one node at a time.
func (d *planState) lossPerCore() float64 {
	if d.demand.CPU == 0 {
		return 0
	}
	return d.lossAll / (float64(d.demand.CPU) / 1000)
}

// readLosses finds what the sudden loss of one pod of each template costs in
// dollars. Its workload is short of it until it serves again elsewhere, which is
// taken to cost what a drain may cost for it; besides there is the value of the
// pod itself, twice as long as it is gone, the penalty of an outage where the
// workload can spare none, and the work of a job that has to be done again.
func (d *planState) readLosses() {
	s, e := d.s, d.e
	e.losses = scratch.Zeroed(e.losses, len(s.Templates))
	e.values = scratch.Zeroed(e.values, len(s.Templates))
	e.minutes = scratch.Zeroed(e.minutes, len(s.Templates))
	clear(e.valueOf)
	for i := range s.Templates {
		t := &s.Templates[i]
		e.minutes[i] = (t.Startup + lossDelay).Minutes()
		if t.Startup == 0 {
			e.minutes[i] += usualStartup.Minutes()
		}
		value, known := e.valueOf[t.Requests]
		if !known {
			value = d.value(t.Requests)
			e.valueOf[t.Requests] = value
		}
		e.values[i] = value
	}
	for i := range s.Templates {
		e.losses[i] = d.loss(&s.Templates[i], e.values[i], e.minutes[i])
	}
}

// lossDelay is what passes besides a pod's start-up from the sudden loss of its
// node until it serves elsewhere: until the loss is noticed and a node has come.
// usualStartup is taken where a pod states none.
const (
	lossDelay    = 2 * time.Minute
	usualStartup = 30 * time.Second
)

// loss returns what the sudden loss of one pod of t costs in dollars, but for the
// work of a job, which depends on how long it has run.
func (d *planState) loss(t *policy.Template, value, minutes float64) float64 {
	if t.DaemonSet || t.Workload < 0 {
		return 0
	}
	w := &d.s.Workloads[t.Workload]
	if w.Kind == policy.KindJob {
		return 0
	}
	loss := d.e.missed(value, minutes)
	if slack := w.Replicas - workload.Required(d.s, t, w.Replicas); slack <= 1 {
		loss += value * penaltyHours(t) * float64(2-max(slack, 0)) / 2
	}
	return loss
}

// penaltyHours returns the hours of a pod's value that an outage costs.
func penaltyHours(t *policy.Template) float64 {
	switch {
	case t.OutagePenalty >= 0:
		return t.OutagePenalty
	case strings.Contains(t.PriorityClass, "high"), strings.Contains(t.PriorityClass, "system"):
		return 12
	case strings.Contains(t.PriorityClass, "low"):
		return 1
	}
	return 4
}

// value returns what a pod that asks for r is worth an hour: its part of the
// cheapest node on demand, be its price one that serves for comparison only.
func (d *planState) value(r policy.Resources) float64 {
	best := 0.0
	for _, id := range d.pool.Markets {
		m := &d.s.Markets[id]
		if m.Capacity != policy.OnDemand || !m.Offered && !m.OnDemandModelled {
			continue
		}
		price := m.Charge()
		if !m.Offered {
			price = m.OnDemand
		}
		if x := r.LargestShare(d.s.Types[m.Type].Allocatable); x <= 1 {
			if v := x * price.Float(); best == 0 || v < best {
				best = v
			}
		}
	}
	return best
}

// rank orders the open markets of the pool by what the demand would cost there.
func (d *planState) rank() {
	s := d.s
	need := d.demand
	if need.CPU == 0 && need.Memory == 0 {
		need = idleDemand
	}
	cores := max(float64(need.CPU)/1000, 0.001)
	d.ranked = d.ranked[:0]
	largest, closed := d.largest(), d.closed()
	for _, id := range d.pool.Markets {
		m := &s.Markets[id]
		if !m.Offered || closed[id] {
			continue
		}
		t := &s.Types[m.Type]
		if t.VCPU > largest {
			continue
		}
		share := need.LargestShare(t.Allocatable)
		if share >= 1e9 {
			continue
		}
		d.ranked = append(d.ranked, ranked{id, m.Capacity, float64(d.e.costs[id]*share) / cores})
	}
	d.worths = [2]evaluated{}
	slices.SortFunc(d.ranked, func(a, b ranked) int {
		if a.capacity != b.capacity {
			return cmp.Compare(b.capacity, a.capacity)
		}
		if a.unit != b.unit {
			return cmp.Compare(a.unit, b.unit)
		}
		return cmp.Compare(a.market, b.market)
	})
}

// What one node may take with it: a pool is bought no node of more than
// smallCores vCPUs that is a larger part of its demand than one in nodesLeast.
const (
	nodesLeast = 3
	smallCores = 8
)

// largest returns the largest node that is bought, in vCPUs.
func (d *planState) largest() int64 {
	return min(int64(d.e.cfg.Cores), max(d.demand.CPU/1000/nodesLeast, smallCores))
}

// selected returns the markets to buy in, ascending: of each zone some of the
// best on spot, and all that are on demand. Pods that must be spread over zones
// are bought for in all of them at once, so zones are given different types as
// far as these cost about the same: then not all of them are lost together. A
// market that holds all that a service can bear to lose is left out while its
// zone has another that costs little more.
func (d *planState) selected() []policy.MarketID {
	s, cfg := d.s, &d.e.cfg
	var markets []policy.MarketID
	best := make([]float64, len(s.Zones))
	uses := make([]int, len(s.Types))
	taken := make([]bool, len(d.ranked))
	for _, r := range d.ranked {
		m := &s.Markets[r.market]
		if m.Capacity != policy.Spot {
			markets = append(markets, r.market)
			continue
		}
		if x := d.unitWithRisk(r); best[m.Zone] == 0 || x < best[m.Zone] {
			best[m.Zone] = x
		}
	}
	full := d.full(best)
	for range cfg.Choices {
		for z := range s.Zones {
			pick, least := -1, 0.0
			for i, r := range d.ranked {
				m := &s.Markets[r.market]
				if taken[i] || m.Capacity != policy.Spot || int(m.Zone) != z {
					continue
				}
				width := cfg.Width
				if !full[i] {
					width *= wider
				}
				if d.unitWithRisk(r) > best[z]*(1+width) || pick >= 0 && full[i] && !full[pick] {
					continue
				}
				x := d.unitWithRisk(r) * (1 + float64(cfg.TypeRisk*float64(uses[m.Type]))/float64(len(s.Zones)))
				if pick < 0 || x < least || full[pick] && !full[i] {
					pick, least = i, x
				}
			}
			if pick >= 0 {
				taken[pick] = true
				uses[s.Markets[d.ranked[pick].market].Type]++
				markets = append(markets, d.ranked[pick].market)
			}
		}
	}
	slices.Sort(markets)
	return markets
}

// wider is how many times as much dearer than the best market of its zone one may be
// that is bought in so that services stay spread.
const wider = 1.25

// full reports, by place in the ranking, which spot markets hold as many pods of a
// service as it can bear to lose, or as its even spread over the markets would put
// there that are about as cheap as the best of their zones.
func (d *planState) full(best []float64) []bool {
	s, e := d.s, d.e
	full := make([]bool, len(d.ranked))
	choice := int32(0)
	for _, r := range d.ranked {
		if m := &s.Markets[r.market]; m.Capacity == policy.Spot && d.unitWithRisk(r) <= best[m.Zone]*(1+e.cfg.Width) {
			choice++
		}
	}
	for w := range s.Workloads {
		id := policy.WorkloadID(w)
		if !e.exposure.Tracks(id) {
			continue
		}
		l := e.exposure.Loss(id)
		most := max(l.Slack(), (l.Desired+choice-1)/max(choice, 1))
		if l.Desired <= 1 || l.Market.Pods < most {
			continue
		}
		for i, r := range d.ranked {
			if s.Markets[r.market].Capacity == policy.Spot && e.exposure.Pods(id, workload.Group{Market: r.market, Zone: policy.None}) >= most {
				full[i] = true
			}
		}
	}
	return full
}

// unitWithRisk returns the unit cost of r with the risk of concentration.
func (d *planState) unitWithRisk(r ranked) float64 {
	return r.unit * d.concentration.factor(d, r.market)
}
