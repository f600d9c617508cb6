package leftover

import (
	"fmt"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/share"
)

// refusalMemory is how long a market that refused a launch is ranked after the others.
const refusalMemory = 30 * time.Minute

// unchangedMax is the age from which the explanation of a steer states the age of a price. A price
// holds until it changes, so an old price is not necessarily wrong.
const unchangedMax = 24 * time.Hour

// A candidate is a market in which a pool may buy, with what the pool's pods would cost there.
type candidate struct {
	id policy.MarketID

	// cost is what the pods that fit the market cost on its nodes alone, in dollars per hour: a
	// fraction of nodes, but at least one whole node. key is cost divided by the cost of the same
	// pods on the cheapest on-demand markets; candidates are ordered by it. ratio is key without
	// the minimum of one node.
	cost, key, ratio float64

	// holds reports, by class, whether pods of the class fit on a node.
	holds []bool

	// score is the placement score; it is negative if no score is published. good reports whether
	// the score is high enough.
	score int8
	good  bool

	chosen  bool // chosen by the previous decision
	refused bool // refused a launch within refusalMemory
}

// A choice is the markets in which a pool should buy, and the reasons.
type choice struct {
	share float64

	// markets are the chosen markets, and kept the other markets in which the pool has nodes. Both
	// are in ascending order.
	markets, kept []policy.MarketID

	// urgent reports that, for some of the pods, all Spot markets that were chosen before refuse
	// launches.
	urgent bool

	// spotOnly reports that a refused launch must not fall back to on-demand: other sufficiently
	// good markets have not refused, and are chosen next.
	spotOnly bool

	why   policy.Why
	holds []policy.Hold
}

// A board chooses among the markets of one pool.
type board struct {
	r      *ranker
	pool   *policy.Pool
	memory *policy.PoolMemory

	classes    []class
	candidates []candidate

	scoreMin           int
	typesMax, zonesMax int

	// perUnit is the lowest on-demand price of one unit of the share, in dollars per hour. It is
	// used if there are no pods.
	perUnit float64
}

// choose ranks the markets of p.
func (r *ranker) choose(p *policy.Pool, memory *policy.PoolMemory) choice {
	b := board{r: r, pool: p, memory: memory, scoreMin: r.cfg.ScoreMin, typesMax: r.cfg.TypesMax, zonesMax: r.cfg.ZonesMax}
	if p.Choice.HasScoreMin {
		b.scoreMin = int(p.Choice.ScoreMin)
	}
	if p.Choice.TypesMax > 0 {
		b.typesMax = int(p.Choice.TypesMax)
	}
	if p.Choice.ZonesMax > 0 {
		b.zonesMax = int(p.Choice.ZonesMax)
	}
	b.classes = r.classes(p.ID)
	if r.spread(b.classes) {
		b.zonesMax = len(r.s.Zones)
	}
	b.survey()
	c, stays := choice{}, false
	if age := r.pricesAge(); age > r.cfg.Window && r.cfg.Window > 0 {
		c, stays = b.asBefore(age)
	}
	if !stays {
		c = b.decide()
	}
	c.kept = b.kept(c.markets)
	return c
}

// pricesAge returns the time since prices were last read from the source with the oldest; 0 if no
// source has been read.
func (r *ranker) pricesAge() (age time.Duration) {
	for i := range r.s.Sources {
		if x := &r.s.Sources[i]; x.Prices && x.At != 0 {
			age = max(age, r.s.Now.Sub(x.At))
		}
	}
	return age
}

// asBefore returns the previous choice, and false if none of its markets can be bought any more.
func (b *board) asBefore(age time.Duration) (choice, bool) {
	c := choice{share: b.pool.Steer.Share}
	var lead []*candidate
	for _, x := range slices.Concat(b.ranked(policy.Spot), b.ranked(policy.OnDemand)) {
		if x.chosen {
			lead = append(lead, x)
			c.markets = append(c.markets, x.id)
		}
	}
	if !b.pool.Steer.Set || len(lead) == 0 {
		return choice{}, false
	}
	slices.Sort(c.markets)
	c.why = b.account(ReasonStale, lead, nil)
	c.holds = append(c.holds,
		b.hold(ReasonStale, fmt.Sprintf("prices were last read %v ago, so the choice of markets stays", age)))
	return c, true
}

func (b *board) wasChosen(m policy.MarketID) bool {
	_, found := slices.BinarySearch(b.memory.Selected, b.r.s.Markets[m].Name)
	return found
}

// kept returns the markets of the pool in which it has nodes, except those in chosen.
func (b *board) kept(chosen []policy.MarketID) []policy.MarketID {
	var kept []policy.MarketID
	for i := range b.r.s.Nodes {
		n := &b.r.s.Nodes[i]
		if n.Pool != b.pool.ID || !n.Live() || n.Market == policy.None || slices.Contains(chosen, n.Market) ||
			slices.Contains(kept, n.Market) {
			continue
		}
		if slices.Contains(b.pool.Markets, n.Market) {
			kept = append(kept, n.Market)
		}
	}
	slices.Sort(kept)
	return kept
}

// survey determines the markets in which the pool may buy and what its pods cost there.
func (b *board) survey() {
	s, cfg := b.r.s, &b.r.cfg
	var ids []policy.MarketID
	for _, id := range b.pool.Markets {
		m := &s.Markets[id]
		t := &s.Types[m.Type]
		if m.Capacity == policy.Reserved || !m.Offered || t.Capacity.GPU < int64(cfg.GPUsMin) {
			continue
		}
		if len(cfg.Families) == 0 || slices.Contains(cfg.Families, t.Family) {
			ids = append(ids, id)
		}
	}
	perNode := make([]float64, len(ids)*len(b.classes))
	row := func(i int) []float64 { return perNode[i*len(b.classes) : (i+1)*len(b.classes)] }
	for i, id := range ids {
		b.r.perNode(b.pool, &s.Markets[id], b.classes, row(i))
	}
	b.base(ids, row)
	for i, id := range ids {
		if c, ok := b.candidate(id, row(i)); ok {
			b.candidates = append(b.candidates, c)
		}
	}
}

// base sets the cost of a pod of each class on-demand, or on Spot if the pool has no on-demand
// market that fits it. A class that fits no market of the pool has cost 0.
func (b *board) base(ids []policy.MarketID, row func(int) []float64) {
	for _, capacity := range [...]policy.CapacityType{policy.OnDemand, policy.Spot} {
		known := b.perUnit > 0
		for _, id := range ids {
			m := &b.r.s.Markets[id]
			if known {
				break
			}
			if each := b.price(m) / float64(b.units(id)); m.Capacity == capacity && (b.perUnit == 0 || each < b.perUnit) {
				b.perUnit = each
			}
		}
		for k := range b.classes {
			c := &b.classes[k]
			if capacity == policy.Spot && c.base > 0 {
				continue
			}
			for i, id := range ids {
				m := &b.r.s.Markets[id]
				if n := row(i)[k]; m.Capacity == capacity && n > 0 {
					if each := b.price(m) / n; c.base == 0 || each < c.base {
						c.base = each
					}
				}
			}
		}
	}
}

// candidate returns the cost of the pool's pods in market id, and false if no pod fits there.
// Without pods the price of one unit of the share decides.
func (b *board) candidate(id policy.MarketID, perNode []float64) (candidate, bool) {
	m := &b.r.s.Markets[id]
	c := candidate{id: id, score: m.PlacementScore, chosen: b.wasChosen(id), holds: make([]bool, len(b.classes))}
	refused := m.Experience.Refused
	c.refused = refused != 0 && b.r.s.Now.Sub(refused) < refusalMemory
	least := b.scoreMin
	if c.chosen {
		least -= b.r.cfg.ScoreMargin
	}
	c.good = m.Capacity != policy.Spot || c.score < 0 || int(c.score) >= least
	price := b.price(m)
	parts, base, wanted := 0.0, 0.0, false
	for k := range b.classes {
		x := &b.classes[k]
		wanted = wanted || x.base > 0
		if perNode[k] > 0 {
			c.holds[k] = true
			parts += float64(x.count*price) / perNode[k]
			base += float64(x.count * x.base)
		}
	}
	if !wanted {
		parts, base = price, float64(b.perUnit*float64(b.units(id)))
		c.cost = price
	} else if c.cost = max(price, parts); !slices.Contains(c.holds, true) {
		return c, false
	}
	if base > 0 {
		c.key, c.ratio = c.cost/base, parts/base
	}
	return c, true
}

// price returns the price of a node of m per hour in the pool, including fees.
func (b *board) price(m *policy.Market) float64 {
	return (m.Charge() + b.r.s.Fees(b.pool.ID, m.ID)).Float()
}

// units returns how many units of the pool's share a node of market id counts, at least 1.
func (b *board) units(id policy.MarketID) int64 { return max(1, share.Units(b.r.s, b.pool.ID, id)) }
