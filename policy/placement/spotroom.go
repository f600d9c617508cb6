package placement

// A SpotRoom computes how much Spot capacity a pool may add while its provisioner launches Spot up
// to a limit and on demand beyond it. Sizes are in units of the pool's share. Nodes that are being
// removed do not count.
type SpotRoom struct {
	// Share is the target Spot share, above 0 and below 1.
	Share float64

	// Spot and Total are the capacity of the pool, including launching nodes.
	Spot, Total int64
}

// A Purchase is a node that a provisioner is about to launch for pending pods.
type Purchase struct {
	// Size is the size of the cheapest node that can run the pods.
	Size int64

	// Largest is the size of the largest node that may be launched for them. Until the node is
	// launched, this size counts against the limits of its NodePool.
	Largest int64
}

// PurchaseOf returns the purchase of bin. The function size returns the size of an offer.
func PurchaseOf(bin Bin, size func(offer int) int64) Purchase {
	p := Purchase{Size: size(bin.Offers[0])}
	for _, o := range bin.Offers {
		p.Largest = max(p.Largest, size(o))
	}
	return p
}

// For returns the Spot capacity that the limit must allow for the given purchases, in their order.
// The provisioner launches whole nodes: on Spot while the limit allows their largest size, then on
// demand. The result is the sum of the largest sizes of the first n purchases, where n brings the
// pool closest to its share if the other purchases are on demand; of two such numbers, n is the
// larger.
func (r *SpotRoom) For(purchases []Purchase) int64 {
	total := r.Total
	for i := range purchases {
		total += purchases[i].Size
	}
	missing := float64(r.Share*float64(total)) - float64(r.Spot)
	room := int64(0)
	for i := range purchases {
		size := float64(purchases[i].Size)
		if missing < size/2 {
			break // the pool is closer to its share without this node
		}
		missing -= size
		room += purchases[i].Largest
	}
	return room
}

// aheadMax limits the result of Ahead if the share is close to 1.
const aheadMax = 1 << 40

// Ahead returns the Spot capacity that the limit must allow for demand that is not yet known, where
// largest is the size of the largest Spot node: a provisioner may launch nodes for pods before the
// limit is updated. With x as the Spot capacity after the launch, a node of that size on Spot
// brings the pool closer to its share as long as x exceeds the share by at most half of the node:
//
//	x - Share × (x + on demand) ≤ largest / 2
func (r *SpotRoom) Ahead(largest int64) int64 {
	most := (float64(r.Share*float64(r.Total-r.Spot)) + float64(largest)/2) / (1 - r.Share)
	return max(0, int64(min(float64(most*(1+rounding)), aheadMax))-r.Spot)
}
