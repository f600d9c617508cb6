package policy

// BidStep is the grid of bids on Rackspace Spot, half a cent. A bid is for the
// life of a node: nothing here raises that of a node that runs.
const BidStep Money = 5_000

// Bid returns the least bid on the grid that is at least m, and one step when
// m is not positive. It counts in integers: rounded up in binary fractions,
// $0.035 would become $0.040.
func Bid(m Money) Money {
	if m <= 0 {
		return BidStep
	}
	return (m + BidStep - 1) / BidStep * BidStep
}

// Affords reports whether a node of m costs no more now than PriceMax, the most
// that p may pay for one. In an auction, a bid on the grid has to be enough too.
func (p *Pool) Affords(m *Market) bool {
	most := p.PriceMax
	if most == 0 {
		return true
	}
	if m.Auction() {
		most = most / BidStep * BidStep
	}
	return m.Charge() <= most
}

// Bid returns the bid for a node of p that is worth that much: the least on the
// grid that is at least worth, and never above PriceMax.
func (p *Pool) Bid(worth Money) Money {
	bid := Bid(worth)
	if p.PriceMax > 0 {
		bid = min(bid, p.PriceMax/BidStep*BidStep)
	}
	return bid
}
