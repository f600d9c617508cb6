package sim

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/portable"
	"github.com/spotter-dev/spotter/scenarios/chance"
)

// A marketState is one market in a run.
type marketState struct {
	slots       []uint64 // bit set of those taken
	running     int64    // nodes
	seen        policy.Experience
	unavailable policy.Time // until when the provisioner does not ask here
	cursor      int         // into its prices
}

// lowest returns the lowest free slot below limit.
func (m *marketState) lowest(limit int) (int32, bool) {
	for i := range m.slots {
		if free := ^m.slots[i]; free != 0 {
			s := i*64 + bits.TrailingZeros64(free)
			return int32(s), s < limit
		}
	}
	s := len(m.slots) * 64
	return int32(s), s < limit
}

// held returns how many slots are taken.
func (m *marketState) held() int {
	n := 0
	for _, word := range m.slots {
		n += bits.OnesCount64(word)
	}
	return n
}

func (m *marketState) take(s int32) {
	for len(m.slots) <= int(s)/64 {
		m.slots = append(m.slots, 0)
	}
	m.slots[s/64] |= 1 << (s % 64)
}

func (m *marketState) free(s int32) { m.slots[s/64] &^= 1 << (s % 64) }

// meet brings the experience up to now: what was seen decays, and the nodes
// that ran meanwhile add their hours.
func (m *marketState) meet(now policy.Time) {
	e := &m.seen
	if e.At == 0 {
		e.At = now
	}
	dt := now.Sub(e.At)
	if dt <= 0 {
		return
	}
	const ln2 = 0.6931471805599453
	keep := portable.Exp(-ln2 * dt.Hours() / policy.ExperienceHalfLife.Hours())
	e.Launches *= keep
	e.Refusals *= keep
	e.Reclaims *= keep
	e.NodeHours = float64(e.NodeHours*keep) + float64(float64(m.running)*dt.Hours())
	e.At = now
}

func (r *run) newMarkets() {
	w := r.world
	r.market = make([]marketState, len(w.Markets))
	for i := range w.Markets {
		_, most := r.delays.register(&w.Markets[i])
		r.registerMax = max(r.registerMax, most)
	}
	for i := range w.Types {
		r.exotic = append(r.exotic, w.Types[i].GPUResource != "" || strings.Contains(w.Types[i].Name, "metal"))
	}
	r.pools = slices.Clone(w.Pools)
	r.poolX = make([]poolState, len(w.Pools))
	for i := range w.Pools {
		r.poolX[i] = poolState{share: defaultShare(&w.Pools[i]), fallback: w.Pools[i].OnDemandFallback}
	}
}

// price returns the price of market m now, and whether it is offered.
func (r *run) price(m policy.MarketID) (policy.Money, bool) {
	c, ms := &r.stage.prices[m], &r.market[m]
	for ms.cursor+1 < len(c.At) && c.At[ms.cursor+1] <= r.q.now {
		ms.cursor++
	}
	p := c.Price[ms.cursor]
	return p, p != policy.NoPrice
}

// allocate asks the provider for one node in one of the markets, all of one
// capacity type. For spot it chooses as price-capacity-optimised does: of the
// markets that are open it drops the worst third by true hazard, unless
// Config.LowestPrice is set, and takes the cheapest of the rest. An auction knows
// no such choice: it takes the cheapest that bid is enough for. Among equal prices,
// such as those of a type on demand in all zones, any is drawn: Karpenter's kwok
// provider does so (kwok/cloudprovider/cloudprovider.go of 1.14.1), and EC2 says
// nothing of it.
func (r *run) allocate(markets []policy.MarketID, bid policy.Money) (m policy.MarketID, slot int32, ok bool) {
	type offer struct {
		market policy.MarketID
		slot   int32
		price  policy.Money
		hazard float64
	}
	open := make([]offer, 0, len(markets))
	for _, m := range markets {
		price, offered := r.price(m)
		if !offered || r.market[m].unavailable > r.q.now || r.tooLow(m, bid) {
			continue
		}
		if s, free := r.freeSlot(m); free {
			open = append(open, offer{m, s, price, r.weather.TrueHazard(int(m), r.q.now)})
		}
	}
	if len(open) == 0 {
		return 0, 0, false
	}
	if x := &r.world.Markets[open[0].market]; x.Capacity == policy.Spot && !x.Auction() && !r.cfg.LowestPrice {
		slices.SortFunc(open, func(a, b offer) int {
			return cmp.Or(cmp.Compare(a.hazard, b.hazard), cmp.Compare(a.market, b.market))
		})
		open = open[:len(open)-len(open)/3]
	}
	tie := chance.Stream(r.cfg.Seed, "launch-tie").At2(uint64(r.q.now), uint64(r.launched))
	best := slices.MinFunc(open, func(a, b offer) int {
		if c := cmp.Compare(a.price, b.price); c != 0 || a.market == b.market {
			return c
		}
		name := func(m policy.MarketID) uint64 { return portable.HashString(r.world.Markets[m].Name) }
		return cmp.Compare(tie.At1(name(a.market)), tie.At1(name(b.market)))
	})
	return best.market, best.slot, true
}

// freeSlot returns the lowest free slot of market m, and whether the provider has
// a node for it now: fewer are held than the market is deep.
func (r *run) freeSlot(m policy.MarketID) (int32, bool) {
	depth := r.weather.Depth(int(m), r.q.now)
	if depth < r.weather.Slots(int(m)) && r.market[m].held() >= depth {
		return 0, false
	}
	return r.market[m].lowest(depth)
}

// buy launches one node in one of the markets. It reports false when the
// provider has none to give, or the call fails.
func (r *run) buy(pool policy.PoolID, markets []policy.MarketID, token string) (policy.NodeID, bool) {
	if r.weather.CallFails(r.q.now) {
		r.poolX[pool].refused(r, pool)
		return policy.None, false
	}
	markets = r.affordable(pool, markets)
	if len(markets) == 0 {
		return policy.None, false // they were cheaper when they were chosen
	}
	bid := r.standingBid(pool, markets)
	m, slot, ok := r.allocate(markets, bid)
	if !ok {
		r.refuse(pool, markets)
		return policy.None, false
	}
	return r.launch(pool, m, slot, token, bid), true
}

// affords reports whether a node of market m costs no more now than pool may pay.
func (r *run) affords(pool policy.PoolID, m policy.MarketID) bool {
	if r.pools[pool].PriceMax == 0 {
		return true
	}
	x := r.world.Markets[m]
	x.Price, _ = r.price(m)
	return r.pools[pool].Affords(&x)
}

// affordable returns those of markets of which a node costs no more now than pool
// may pay.
func (r *run) affordable(pool policy.PoolID, markets []policy.MarketID) []policy.MarketID {
	if r.pools[pool].PriceMax == 0 {
		return markets
	}
	return slices.DeleteFunc(slices.Clone(markets), func(m policy.MarketID) bool { return !r.affords(pool, m) })
}

// pricedOut reports whether pool could buy on demand if it were not for the most
// that it may pay.
func (r *run) pricedOut(pool policy.PoolID) bool {
	if r.pools[pool].PriceMax == 0 {
		return false
	}
	dear := false
	for i := range r.stage.offers[pool] {
		if m := r.stage.offers[pool][i].Market; r.world.Markets[m].Capacity == policy.OnDemand {
			if r.affords(pool, m) {
				return false
			}
			dear = true
		}
	}
	return dear
}

// refuse notes that none of the markets had a node. A market that refused is
// not asked again for a while, so a burst of launches counts as one refusal.
func (r *run) refuse(pool policy.PoolID, markets []policy.MarketID) {
	for _, m := range markets {
		ms := &r.market[m]
		if ms.unavailable > r.q.now {
			continue
		}
		ms.meet(r.q.now)
		ms.seen.Refusals++
		ms.seen.Refused = r.q.now
		ms.unavailable = r.q.now.Add(r.delays.Unavailable)
	}
	r.kar.offersUntil = 0
	r.poolX[pool].refused(r, pool)
}

// refused makes the policy hear of a refused launch.
func (x *poolState) refused(r *run, pool policy.PoolID) {
	r.pools[pool].Refused = r.q.now
	r.kept[pool].refuse(r.q.now, r.window)
	if r.q.now >= r.window.From {
		r.result.Refusals++
	}
	r.log.add(r.q.now, logRefused, r.pools[pool].Name, "", 0)
	r.planStep(r.q.now.Add(collect))
}
