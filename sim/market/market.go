package market

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/portable"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/chance"
	"github.com/spotter-dev/spotter/scenarios/weather"
	"github.com/spotter-dev/spotter/sim/engine"
)

// A Config configures the behaviour of the provider.
type Config struct {
	Seed uint64

	// Unavailable is how long no launch is requested from a market that refused one.
	Unavailable time.Duration

	// AuctionNotice is the time from the instant at which a price exceeds a bid until the provider
	// takes the node.
	AuctionNotice time.Duration

	// LowestPrice makes the provider launch nodes in the cheapest open market, of either capacity
	// type. Otherwise, the default strategy for Spot is price-capacity-optimised.
	LowestPrice bool
}

// A Market is the provider of a run: all markets of a scenario, with their used slots and the
// experience of the cluster with them.
type Market struct {
	Config
	scenario *scenarios.BoundScenario
	prices   *Prices
	weather  *weather.Weather
	clock    *engine.Queue
	state    []state
	reserved []*scenarios.Reservation // by market; nil for a market without a reservation
}

// New returns the markets of a scenario with the given prices and weather.
func New(cfg Config, p *Prices, w *weather.Weather, clock *engine.Queue) *Market {
	m := &Market{Config: cfg, scenario: p.scenario, prices: p, weather: w, clock: clock,
		state:    make([]state, len(p.scenario.Markets)),
		reserved: make([]*scenarios.Reservation, len(p.scenario.Markets))}
	for i := range p.scenario.Reservations {
		m.reserved[p.scenario.Reservations[i].Market] = &p.scenario.Reservations[i]
	}
	return m
}

// A state is the state of one market.
type state struct {
	slots       []uint64 // bit set of the used slots
	running     int64    // number of running nodes
	seen        policy.Experience
	unavailable policy.Time // until when the provisioner does not request this market
	cursor      int         // index in its prices
}

// lowest returns the lowest free slot, and whether it is below limit.
func (m *state) lowest(limit int) (int32, bool) {
	for i := range m.slots {
		if free := ^m.slots[i]; free != 0 {
			s := i*64 + bits.TrailingZeros64(free)
			return int32(s), s < limit
		}
	}
	s := len(m.slots) * 64
	return int32(s), s < limit
}

// held returns the number of used slots.
func (m *state) held() int {
	n := 0
	for _, word := range m.slots {
		n += bits.OnesCount64(word)
	}
	return n
}

func (m *state) take(s int32) {
	for len(m.slots) <= int(s)/64 {
		m.slots = append(m.slots, 0)
	}
	m.slots[s/64] |= 1 << (s % 64)
}

func (m *state) free(s int32) { m.slots[s/64] &^= 1 << (s % 64) }

// advance updates the experience to now: old observations decay, and the running nodes add their
// hours.
func (m *state) advance(now policy.Time) {
	e := &m.seen
	if e.At == 0 {
		e.At = now
	}
	dt := now.Sub(e.At)
	if dt <= 0 {
		return
	}
	keep := portable.Decay(dt, policy.ExperienceHalfLife)
	e.Launches *= keep
	e.Refusals *= keep
	e.Reclaims *= keep
	e.NodeHours = float64(e.NodeHours*keep) + float64(float64(m.running)*dt.Hours())
	e.At = now
}

func (m *state) refuse(now policy.Time) {
	m.advance(now)
	m.seen.Refusals++
	m.seen.Refused = now
}

// Price returns the current price of market id, and whether it is offered.
func (m *Market) Price(id policy.MarketID) (policy.Money, bool) {
	c, s := &m.prices.curves[id], &m.state[id]
	for s.cursor+1 < len(c.At) && c.At[s.cursor+1] <= m.clock.Now {
		s.cursor++
	}
	p := c.Price[s.cursor]
	return p, p != policy.NoPrice
}

// Changes returns when the price of market id changes next or the market can be requested again,
// whichever is first.
func (m *Market) Changes(id policy.MarketID) policy.Time {
	m.Price(id) // moves the cursor
	next := policy.Time(math.MaxInt64)
	c, s := &m.prices.curves[id], &m.state[id]
	if s.cursor+1 < len(c.At) {
		next = c.At[s.cursor+1]
	}
	if s.unavailable > m.clock.Now {
		next = min(next, s.unavailable)
	}
	return next
}

// Closed reports whether market id is currently not requested because of a recent refusal or a call
// of Close.
func (m *Market) Closed(id policy.MarketID) bool { return m.state[id].unavailable > m.clock.Now }

// Close makes market id unavailable for requests for a while.
func (m *Market) Close(id policy.MarketID) {
	s := &m.state[id]
	s.unavailable = max(s.unavailable, m.clock.Now.Add(m.Unavailable))
}

// CallFails reports whether a call of the provider's API fails now.
func (m *Market) CallFails() bool { return m.weather.CallFails(m.clock.Now) }

// An Allocation describes how the provider chooses among markets.
type Allocation struct {
	Bid    policy.Money
	Number int // number of the launch, which breaks ties

	// Strategy is the allocation strategy for Spot. capacity-optimized takes the market with the
	// least pressure. The prioritized variant drops the third with the most pressure, since AWS
	// only documents that capacity has precedence over the order.
	Strategy scenarios.SpotStrategy

	// Rank orders markets before their prices do, the lowest first. It may be nil.
	Rank func(policy.MarketID) int
}

// Allocate requests one node in one of the markets, which must have the same capacity type unless
// Config.LowestPrice is set. The default strategy for Spot is price-capacity-optimised: of the open
// markets, it drops the third with the most pressure, unless Config.LowestPrice is set, and takes
// the cheapest of the rest. Auctions are not subject to this choice: the cheapest for which bid is
// sufficient is taken. Equal prices, such as those of an on-demand type in all zones, are ordered
// by a draw from the number of the launch. Karpenter's kwok provider also chooses among them at
// random (kwok/cloudprovider/cloudprovider.go of 1.14.1), and EC2 does not document its choice.
func (m *Market) Allocate(markets []policy.MarketID, a Allocation) (id policy.MarketID, slot int32, ok bool) {
	open := make([]offer, 0, len(markets))
	for _, id := range markets {
		price, offered := m.Price(id)
		if !offered || m.Closed(id) || m.tooLow(id, a.Bid) {
			continue
		}
		if s, free := m.freeSlot(id); free {
			open = append(open, offer{id, s, price, m.pressure(id)})
		}
	}
	for len(open) > 0 {
		best := m.choose(open, a)
		if !m.attemptFails(best.market) {
			return best.market, best.slot, true
		}
		open = slices.DeleteFunc(open, func(o offer) bool { return m.Closed(o.market) })
	}
	return 0, 0, false
}

// An offer is a market in which a node can be launched now.
type offer struct {
	market   policy.MarketID
	slot     int32
	price    policy.Money
	pressure float64
}

// choose returns the offer that the provider takes; see [Market.Allocate]. There must be at least
// one. It may reorder open.
func (m *Market) choose(open []offer, a Allocation) offer {
	if x := &m.scenario.Markets[open[0].market]; x.Capacity == policy.Spot && !x.Auction() && !m.LowestPrice &&
		a.Strategy != scenarios.LowestPrice {
		slices.SortFunc(open, func(a, b offer) int {
			return cmp.Or(cmp.Compare(a.pressure, b.pressure), cmp.Compare(a.market, b.market))
		})
		if a.Strategy == scenarios.CapacityOptimized {
			return open[0]
		}
		open = open[:len(open)-len(open)/3]
	}
	tie := chance.Stream(m.Seed, "launch-tie").At2(uint64(m.clock.Now), uint64(a.Number))
	return slices.MinFunc(open, func(x, y offer) int {
		if a.Rank != nil {
			if c := cmp.Compare(a.Rank(x.market), a.Rank(y.market)); c != 0 {
				return c
			}
		}
		if c := cmp.Compare(x.price, y.price); c != 0 || x.market == y.market {
			return c
		}
		name := func(id policy.MarketID) uint64 { return portable.HashString(m.scenario.Markets[id].Name) }
		return cmp.Compare(tie.At1(name(x.market)), tie.At1(name(y.market)))
	})
}

// pressure returns how short of capacity Spot market id is, as its provider observes it: the
// expected reclaims per hour for each free node. It is 0 for other markets.
func (m *Market) pressure(id policy.MarketID) float64 {
	if m.scenario.Markets[id].Capacity != policy.Spot {
		return 0
	}
	left := m.weather.Depth(int(id), m.clock.Now) - m.state[id].held()
	return float64(m.weather.ExpectedHazard(int(id),
		m.clock.Now)*float64(m.weather.Slots(int(id)))) / float64(max(1, left))
}

// freeSlot returns the lowest free slot of market id, and whether the provider has a node for it
// now: fewer slots are used than the depth of the market.
func (m *Market) freeSlot(id policy.MarketID) (int32, bool) {
	if r := m.reserved[id]; r != nil {
		slot, free := m.state[id].lowest(r.Count)
		return slot, free && m.Left(id) > 0
	}
	depth := m.weather.Depth(int(id), m.clock.Now)
	if depth < m.weather.Slots(int(id)) && m.state[id].held() >= depth {
		return 0, false
	}
	return m.state[id].lowest(depth)
}

// Left returns how many nodes can be launched now into the reservation of market id, which must
// have one.
func (m *Market) Left(id policy.MarketID) int {
	r := m.reserved[id]
	if r.Ends() <= m.clock.Now {
		return 0
	}
	return max(0, r.Count-m.state[id].held())
}

// Believed returns the price that Karpenter assumes, and whether market id is offered. Reserved
// capacity costs almost nothing until its reservation ends (reserved_capacity_resolver.go of
// karpenter-provider-aws 1.14.1 divides by ten million, which Money cannot represent for most
// types).
func (m *Market) Believed(id policy.MarketID) (policy.Money, bool) {
	price, offered := m.Price(id)
	if r := m.reserved[id]; r != nil && (r.Until == 0 || m.clock.Now < r.Until) {
		price = max(1, price/reservedPart)
	}
	return price, offered
}

// Block reports whether market id is a capacity block.
func (m *Market) Block(id policy.MarketID) bool {
	r := m.reserved[id]
	return r != nil && r.Block
}

// reservedPart is the divisor of the on-demand price for the assumed price of reserved capacity.
const reservedPart = 10_000

// Slot returns the lowest free slot of market id, whether or not the provider has capacity now. It
// returns false if all slots are used.
func (m *Market) Slot(id policy.MarketID) (int32, bool) {
	if r := m.reserved[id]; r != nil {
		return m.state[id].lowest(r.Count)
	}
	return m.state[id].lowest(m.weather.Slots(int(id)))
}

// Launch records that a node uses a slot of market id.
func (m *Market) Launch(id policy.MarketID, slot int32) {
	s := &m.state[id]
	s.take(slot)
	s.advance(m.clock.Now)
	s.seen.Launches++
	s.running++
}

// Free records that no node runs in a slot of market id any more.
func (m *Market) Free(id policy.MarketID, slot int32) { m.state[id].free(slot) }

// Forget records that the cluster knows that a node of market id no longer runs.
func (m *Market) Forget(id policy.MarketID) {
	s := &m.state[id]
	s.advance(m.clock.Now)
	s.running--
}

// Reclaimed adds a reclaim to the experience with market id.
func (m *Market) Reclaimed(id policy.MarketID) {
	s := &m.state[id]
	s.advance(m.clock.Now)
	s.seen.Reclaims++
	s.seen.Reclaimed = m.clock.Now
}

// Refuse records that none of the markets had capacity. No launch is requested from such a market
// for a while, so a burst of launches counts as one refusal.
func (m *Market) Refuse(markets []policy.MarketID) {
	for _, id := range markets {
		if s := &m.state[id]; s.unavailable <= m.clock.Now {
			s.refuse(m.clock.Now)
			s.unavailable = m.clock.Now.Add(m.Unavailable)
		}
	}
}

// RefuseGroup records that market id had no capacity for an Auto Scaling group. A group may repeat
// its requests at any time, so at most one refusal is counted in each interval of length
// Unavailable.
func (m *Market) RefuseGroup(id policy.MarketID) {
	if s := &m.state[id]; s.seen.Refused == 0 || m.clock.Now.Sub(s.seen.Refused) >= m.Unavailable {
		s.refuse(m.clock.Now)
	}
}

// Reclaim returns the weather's reclaim of a node launched now in slot of market id, or, if that is
// earlier, the end of a capacity block.
func (m *Market) Reclaim(id policy.MarketID, slot int32) (weather.Reclaim, bool) {
	taken, ok := m.weather.Reclaim(int(id), int(slot), m.clock.Now)
	if r := m.reserved[id]; r != nil && r.Block && r.Until > 0 {
		// EC2 terminates the instances half an hour before the end of the block.
		if at := r.Until.Add(-blockEnd); !ok || at < taken.At {
			return weather.Reclaim{Notice: r.Ends(), At: max(at, m.clock.Now)}, true
		}
	}
	return taken, ok
}

// blockEnd is how long before the end of a capacity block EC2 starts to terminate its instances
// (pkg/controllers/capacityreservation/expiration of karpenter-provider-aws).
const blockEnd = 30 * time.Minute

// Recommendation returns when a node launched now in slot of market id gets a rebalance
// recommendation, and whether it does.
func (m *Market) Recommendation(id policy.MarketID, slot int32) (policy.Time, bool) {
	return m.weather.Recommendation(int(id), int(slot), m.clock.Now)
}

// Publish sets the published interruption band of market x, which is constant in a run.
func (m *Market) Publish(x *policy.Market) {
	x.Band, x.BandModelled = m.weather.Band(int(x.ID))
}

// Observe updates the observable fields of a market.
func (m *Market) Observe(x *policy.Market) {
	s := &m.state[x.ID]
	x.Price, x.Offered = m.Price(x.ID)
	if !x.Offered {
		x.Price = 0
	}
	x.PricedAt = min(m.prices.curves[x.ID].At[s.cursor], m.clock.Now)
	if m.scenario.Signals != nil {
		m.scenario.Signals[x.ID].Publish(x, m.clock.Now)
	}
	x.History = m.prices.history(x.ID, m.clock.Now)
	if s.running > 0 || s.seen.At != 0 {
		s.advance(m.clock.Now)
		x.Experience = s.seen
	}
}
