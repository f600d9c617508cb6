package policy

// BidStep is the price increment of bids on Rackspace Spot, half a cent. A bid holds for the life
// of a node: no code raises the bid of a running node.
const BidStep Money = 5_000

// Bid returns the smallest multiple of BidStep that is at least m, or BidStep if m is not positive.
// It uses integers: rounded up in binary fractions, $0.035 would become $0.040.
func Bid(m Money) Money {
	if m <= 0 {
		return BidStep
	}
	return (m + BidStep - 1) / BidStep * BidStep
}

// Affords reports whether a node in m now costs at most PriceMax, the highest price that p may pay
// for a node. In an auction, the highest bid that does not exceed PriceMax must be sufficient too.
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

// Bid returns the bid for a node of p whose value is worth: the smallest multiple of BidStep that
// is at least worth, limited by PriceMax.
func (p *Pool) Bid(worth Money) Money {
	bid := Bid(worth)
	if p.PriceMax > 0 {
		bid = min(bid, p.PriceMax/BidStep*BidStep)
	}
	return bid
}
