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

// unchangedMax is the age from which the account of a steer says how old its
// price is. Prices hold until they change, so an old one is not a wrong one.
const unchangedMax = 24 * time.Hour

// A candidate is a market that a pool may buy in, and what its pods cost there.
type candidate struct {
	id policy.MarketID

	// cost is that of the pods that it holds, in dollars an hour, on its nodes
	// alone: of parts of nodes, but of one whole node at least. key is cost
	// against that of the same pods on the cheapest on-demand markets, by which
	// candidates are ordered; ratio leaves the one whole node out of account.
	cost, key, ratio float64

	// holds says, by class, whether a node takes pods of it.
	holds []bool

	// score is the placement score, below zero if it is not published. good says that it is high
	// enough.
	score int8
	good  bool

	chosen  bool // it was chosen before
	refused bool // it refused us a short while ago
}

// A choice is what a pool should buy in, and why.
type choice struct {
	share float64

	// markets are those chosen and kept the others in which nodes live, each
	// ascending.
	markets, kept []policy.MarketID

	// urgent says that all Spot markets that were chosen before for some of the pods refuse
	// launches.
	urgent bool

	// spotOnly says that a refused launch must not fall back to on demand: other markets that are
	// good enough have not refused, and are chosen next.
	spotOnly bool

	why   policy.Why
	holds []policy.Hold
}

// A board is the choice among the markets of one pool.
type board struct {
	r      *ranker
	pool   *policy.Pool
	memory *policy.PoolMemory

	classes    []class
	candidates []candidate

	scoreMin           int
	typesMax, zonesMax int

	// perUnit is the least on-demand price of one unit of the share, in dollars an hour. It is used
	// if there are no pods.
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

// pricesAge returns how long ago prices were last read, 0 if that is unknown.
func (r *ranker) pricesAge() time.Duration {
	for i := range r.s.Sources {
		if x := &r.s.Sources[i]; x.Name == "prices" && x.At != 0 {
			return r.s.Now.Sub(x.At)
		}
	}
	return 0
}

// asBefore returns the choice that was made last, if there is one that can still
// be bought.
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

// kept returns the markets of the pool in which its nodes live, without those
// of chosen.
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

// survey finds out what may be bought and what the pods of the pool cost there.
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

// base sets what a pod of each class costs on demand, or if the pool has no on-demand market that
// fits it, on Spot. Classes that fit no market get no cost: they belong to another pool, or to
// none.
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

// candidate returns what the pods of the pool cost in market id, and false if it
// takes none of them. Without pods the price of the pool's own unit decides.
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

// price returns what a node of m costs per hour in the pool, fees included.
func (b *board) price(m *policy.Market) float64 {
	return (m.Charge() + b.r.s.Fees(b.pool.ID, m.ID)).Float()
}

// units is what a node of market id counts in the share of the pool, at least 1.
func (b *board) units(id policy.MarketID) int64 { return max(1, share.Units(b.r.s, b.pool.ID, id)) }
