package market

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/chance"
	"github.com/spotter-dev/spotter/scenarios/weather"
)

// charged returns the prices that a node is charged: the market prices, but no less than the
// reserve price.
func charged(prices []policy.Money, reserve policy.Money) []policy.Money {
	if reserve == 0 {
		return prices
	}
	out := slices.Clone(prices)
	for i := range out {
		if out[i] != policy.NoPrice {
			out[i] = max(out[i], reserve)
		}
	}
	return out
}

// tooLow reports whether market id is an auction that rejects bid. The lowest accepted bid is the
// higher of the market price and the reserve price.
func (m *Market) tooLow(id policy.MarketID, bid policy.Money) bool {
	x := &m.scenario.Markets[id]
	price, offered := m.Price(id)
	return x.Auction() && (!offered || bid < max(price, x.Reserve))
}

// Outbid returns when the market price first exceeds the bid of a node that was launched in slot of
// market id, and the resulting loss of the node. The provider gives notice at that instant and
// takes the node at the end of the notice period, whatever the price does in the meantime. Outbid
// reads future prices, so its results must not reach a snapshot before the notice.
func (m *Market) Outbid(id policy.MarketID, slot int32, launched policy.Time, bid policy.Money) (lost weather.Reclaim,
	at policy.Time, ok bool) {
	if !m.scenario.Markets[id].Auction() {
		return lost, 0, false
	}
	if at, ok = m.prices.exceeds(id, launched, bid); !ok {
		return lost, 0, false
	}
	lost = weather.Reclaim{At: at.Add(m.AuctionNotice), Notice: at}
	if lead, promised := m.scenario.Truth.LeadOf(lost.At-at), lost.At-at; lead != promised {
		lost.Notice = lost.At - lead
		if lead == 0 {
			lost.Notice = 0
		}
	}
	for i := range m.scenario.Faults {
		f := &m.scenario.Faults[i]
		if f.Kind != scenarios.FaultLateNotice || at < f.At || at >= f.At.Add(f.Duration) {
			continue
		}
		key := chance.New(m.Seed, "auction-notice", m.scenario.Markets[id].Name).At2(uint64(slot), uint64(at))
		if key.At1(uint64(f.At)).Float() >= f.Share || lost.Notice == 0 {
			continue
		}
		lost.Notice = lost.Notice.Add(f.Delay)
		if f.Delay == 0 || lost.Notice >= lost.At {
			lost.Notice = 0 // it would come after the loss of the node
		}
	}
	return lost, at, true
}

// exceeds returns the first instant, not before from, at which the price of market m is above bid.
// Intervals in which the market is not offered have no price and do not count.
func (p *Prices) exceeds(m policy.MarketID, from policy.Time, bid policy.Money) (policy.Time, bool) {
	c := &p.curves[m]
	i, found := slices.BinarySearch(c.At, from)
	if !found {
		i = max(i-1, 0)
	}
	for ; i < len(c.At); i++ {
		if c.Price[i] != policy.NoPrice && c.Price[i] > bid {
			return max(c.At[i], from), true
		}
	}
	return 0, false
}
