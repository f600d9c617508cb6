package placement

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// reservations count the reserved capacity that claims may use while a batch is solved
// (reservationmanager.go and offeringsToReserve in nodeclaim.go of Karpenter 1.14.1). A claim uses
// one node of every reservation into which it may be launched.
type reservations struct {
	table    *offerTable // the table that was read
	version  uint64
	of       []int32 // reservation of the offer at each position, or None; empty without reservations
	markets  []policy.MarketID
	had      []int // size of each reservation
	left     []int
	held     []int32 // scratch
	await    bool
	deferred bool // the claim tried last must wait
	waits    bool // a pod of this attempt must wait
}

// read finds the reservations among the offers: the markets in which a pool can launch a limited
// number of nodes. Offers with the same nonzero version are not read again.
func (r *reservations) read(ot *offerTable, version uint64) {
	if version != 0 && r.table == ot && r.version == version {
		return
	}
	r.table, r.version = ot, version
	r.of, r.markets, r.had = r.of[:0], r.markets[:0], r.had[:0]
	if !ot.bounded() {
		return
	}
	for _, i := range ot.rank {
		o := &ot.offers[i]
		if o.Max == 0 {
			r.of = append(r.of, policy.None)
			continue
		}
		at := slices.Index(r.markets, o.Market)
		if at < 0 {
			at = len(r.markets)
			r.markets, r.had = append(r.markets, o.Market), append(r.had, o.Max)
		}
		r.had[at] = min(r.had[at], o.Max)
		r.of = append(r.of, int32(at))
	}
}

// bounded reports whether any offer is reserved capacity.
func (ot *offerTable) bounded() bool {
	for i := range ot.offers {
		if ot.offers[i].Max > 0 {
			return true
		}
	}
	return false
}

func (r *reservations) begin(await bool) {
	r.left = append(r.left[:0], r.had...)
	r.await, r.deferred, r.waits = await, false, false
}

// take makes a claim use the reservations among the remaining offers, and releases its others. It
// returns false, without changes, if the claim must wait for a reservation.
func (r *reservations) take(c *nodeClaim, offers bitset) bool {
	if len(r.markets) == 0 {
		return true
	}
	r.held = r.held[:0]
	some := false
	for at := offers.next(0); at >= 0; at = offers.next(at + 1) {
		x := r.of[at]
		if x == policy.None {
			continue
		}
		some = true
		if !slices.Contains(r.held, x) && (r.left[x] > 0 || slices.Contains(c.held, x)) {
			r.held = append(r.held, x)
		}
	}
	if r.await && len(r.held) == 0 && (some || len(c.held) > 0) {
		r.deferred = true
		return false
	}
	for _, x := range c.held {
		r.left[x]++
	}
	for _, x := range r.held {
		r.left[x]--
	}
	c.held = append(c.held[:0], r.held...)
	return true
}

// sold reports whether a claim may be launched as the offer at a position. A claim with
// reservations uses only these; another claim uses none (FinalizeScheduling in nodeclaim.go).
func (r *reservations) sold(c *nodeClaim, at int32) bool {
	if len(r.markets) == 0 {
		return true
	}
	if x := r.of[at]; x != policy.None {
		return slices.Contains(c.held, x)
	}
	return len(c.held) == 0
}
