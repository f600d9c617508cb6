package placement

// A SpotRoom decides by how much a pool may grow on Spot while its provisioner buys Spot up to
// a limit and on demand beyond it. Sizes are in units of the pool's share. Nodes that are going
// do not count.
type SpotRoom struct {
	// Share is the wanted Spot share, above 0 and below 1.
	Share float64

	// Spot and Total are what the pool holds or has on its way.
	Spot, Total int64
}

// A Purchase is a node that a provisioner is about to buy for pending pods.
type Purchase struct {
	// Size is that of the cheapest node that holds the pods.
	Size int64

	// Largest is the size of the largest node that may be bought for them. Until the node
	// is launched this counts against the limits of its NodePool.
	Largest int64
}

// PurchaseOf returns the purchase of bin, where size returns that of an offer.
func PurchaseOf(bin Bin, size func(offer int) int64) Purchase {
	p := Purchase{Size: size(bin.Offers[0])}
	for _, o := range bin.Offers {
		p.Largest = max(p.Largest, size(o))
	}
	return p
}

// For returns what the limit of Spot must leave for the nodes that are about to be bought, in
// their order. The provisioner buys whole nodes: on Spot as long as the limit leaves their
// largest size, and then on demand. So the limit leaves that of the first nodes, of as many as
// bring the pool nearest to its share with the others on demand; of two numbers the larger.
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
			break // it is nearer without this node
		}
		missing -= size
		room += purchases[i].Largest
	}
	return room
}

// aheadMax bounds what Ahead returns where the share is almost 1.
const aheadMax = 1 << 40

// Ahead returns what the limit of Spot leaves for demand that is not known yet, where the
// largest Spot node has that size: a provisioner may buy for pods before the limit follows
// them. A node of that size brings the pool nearer to its share as Spot as long as x, which is
// then on Spot, is at most half of the node above the share:
//
//	x - Share × (x + on demand) ≤ largest / 2
func (r *SpotRoom) Ahead(largest int64) int64 {
	most := (float64(r.Share*float64(r.Total-r.Spot)) + float64(largest)/2) / (1 - r.Share)
	return max(0, int64(min(float64(most*(1+rounding)), aheadMax))-r.Spot)
}
