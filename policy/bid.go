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
