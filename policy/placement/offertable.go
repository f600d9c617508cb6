package placement

import (
	"cmp"
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// An Offer is a market in which new nodes can be bought for a pool.
type Offer struct {
	Pool   policy.PoolID
	Market policy.MarketID

	// Price is the cost of one node for one hour.
	Price policy.Money

	// Allocatable is what pods may use of a new node, DaemonSet pods
	// included: what those request is taken off here. VolumesMax is the
	// number of volumes that can be attached, 0 for no known limit, and
	// GPUResource what Allocatable.GPU counts.
	Allocatable policy.Resources
	VolumesMax  int32
	GPUResource string

	// Labels and Taints are those that a new node will carry, its host name
	// left out. They are kept, and must not be written afterwards.
	Labels []policy.Label
	Taints []policy.Taint

	// Capacity is what the machine has in all, which limits of pools count.
	Capacity policy.Resources

	// Max is the most nodes to buy here; 0 means no bound.
	Max int

	// Choice numbers the values of the labels that its pool leaves open: what is sold in one
	// market is offered once for each combination of them.
	Choice int
}

// A Bin is a node to be bought: the pods meant for it and the offers that hold
// them all.
type Bin struct {
	// Pods are indices into the pods that were given.
	Pods []int

	// Offers are indices into the offers that were given, all of one pool,
	// cheapest first and then by market.
	Offers []int
}

// A offerTable holds offers in the form in which they are compared with pods. A
// position is the rank of an offer by price, then market.
type offerTable struct {
	offers  []Offer
	filled  []Offer // those that the offerTable was filled with; a copy, compared with others
	version uint64  // of these, 0 for none
	shares  bool    // all offers of a pool bear the same DaemonSets: those of shared
	rank    []int   // offer by position
	class   []int32
	shape   []int32
	pool    []int32

	// goods are what does not come of prices, by offer; shapes are kinds in the order of
	// positions, and shapeOf is scratch.
	goods   []good
	kinds   []shape
	shapeOf []int32

	shapes  []shape
	ofShape []bitset
	ofPool  []bitset // pools in the order in which the offers name them
	shared  [][]policy.TemplateID
	all     bitset

	// fits are, by relaxation, the positions whose labels and taints suit it; nil until they are
	// needed.
	fits []bitset

	// ofDomain are the positions by topology key and domain, shifted by one:
	// entry 0 are those without the label. Only keys in use are filled.
	ofDomain [][]bitset

	freed []bitset // of other positions, to be used again
}

// A good is what is for sale at some price.
type good struct{ class, kind, pool int32 }

// A shape is the room that one node leaves to pods when its DaemonSet pods run.
type shape struct {
	free       policy.Resources
	volumesMax int32
	gpu        int16
}

// offerTablesMax is how many offerTables a space keeps: one for each capacity type, for
// two sets of pods that are tried in turn.
const offerTablesMax = 4

// offerTableOf returns offers as an offerTable. Many sets of pods are tried on the same offers, so
// the last tables are kept, the latest first. The result is in use until the next batch is
// prepared. A version in b other than 0 identifies its offers: a table of the same version is used
// without a comparison. If only prices differ from an earlier version, its table is repriced.
func (cache *offerCache) offerTableOf(offers []Offer, b *Batch) *offerTable {
	at, version := -1, b.OffersVersion
	find := func(is func(ot *offerTable) bool) int {
		return slices.IndexFunc(cache.offerTables, func(ot *offerTable) bool {
			return ot.shares == b.SharedDaemons &&
				is(ot)
		})
	}
	if version != 0 {
		at = find(func(ot *offerTable) bool { return ot.version == version })
	}
	if at < 0 {
		at = find(func(ot *offerTable) bool { return ot.sameOffers(offers) })
	}
	if at < 0 && version != 0 {
		at = find(func(ot *offerTable) bool { return ot.version != 0 && ot.sameButPrices(offers) })
		if at >= 0 {
			cache.offerTables[at].reprice(offers)
		}
	}
	if at < 0 {
		if len(cache.offerTables) < offerTablesMax {
			cache.offerTables = append(cache.offerTables, nil)
		}
		at = len(cache.offerTables) - 1
		cache.offerTables[at] = cache.newOfferTable(offers, b)
	}
	ot := cache.offerTables[at]
	copy(cache.offerTables[1:at+1], cache.offerTables[:at])
	cache.offerTables[0], ot.offers = ot, offers // their bounds may be others
	if version != 0 {
		ot.version = version
	}
	return ot
}

// sameOffers reports whether the offerTable of offers would be the same but for the bounds
// on what is bought.
func (ot *offerTable) sameOffers(offers []Offer) bool {
	if len(offers) != len(ot.filled) {
		return false
	}
	for i := range offers {
		if offers[i].Price != ot.filled[i].Price {
			return false
		}
	}
	return ot.sameButPrices(offers)
}

// sameButPrices reports whether the offerTable of offers would be the same except for prices and
// bounds. Lists of labels and taints are compared by address, as they are never written.
func (ot *offerTable) sameButPrices(offers []Offer) bool {
	if len(offers) != len(ot.filled) {
		return false
	}
	for i := range offers {
		x, y := &ot.filled[i], &offers[i]
		if x.Market != y.Market || x.Pool != y.Pool || x.Allocatable != y.Allocatable ||
			x.VolumesMax != y.VolumesMax || x.GPUResource != y.GPUResource ||
			keyOf(x.Labels, x.Taints) != keyOf(y.Labels, y.Taints) {
			return false
		}
	}
	return true
}

// A listKey identifies lists of labels and taints by their address. Lists are shared between nodes
// and never written, so that lists at one address are equal.
type listKey struct {
	labels          *policy.Label
	taints          *policy.Taint
	labelsN, taintN int
}

func keyOf(labels []policy.Label, taints []policy.Taint) listKey {
	k := listKey{labelsN: len(labels), taintN: len(taints)}
	if len(labels) > 0 {
		k.labels = &labels[0]
	}
	if len(taints) > 0 {
		k.taints = &taints[0]
	}
	return k
}

func (cache *offerCache) newOfferTable(offers []Offer, b *Batch) *offerTable {
	ot := &offerTable{offers: offers, filled: slices.Clone(offers), rank: make([]int, len(offers)),
		all: newBitset(len(offers))}
	for i := range offers {
		ot.rank[i] = i
		ot.all.set(int32(i))
	}
	ot.goods = make([]good, len(offers))
	index := make(map[shape]int32, len(offers)/4+1)
	ot.indexPools()
	if ot.shares = b.SharedDaemons; ot.shares {
		ot.shareDaemons(cache.table, b.Pools)
	}
	ot.sort()
	for _, i := range ot.rank {
		o := &offers[i]
		class := cache.table.classOf(o.Labels, o.Taints)
		daemons := cache.table.daemonsOf(class)
		if ot.shares {
			daemons = cache.table.requestsOf(ot.shared[ot.goods[i].pool])
		}
		s := shape{o.Allocatable.Minus(daemons), o.VolumesMax, cache.table.gpuOf(o.GPUResource)}
		id, known := index[s]
		if !known {
			id = int32(len(ot.kinds))
			index[s] = id
			ot.kinds = append(ot.kinds, s)
			ot.ofShape = append(ot.ofShape, newBitset(len(offers)))
		}
		ot.goods[i].class, ot.goods[i].kind = class, id
	}
	ot.arrange()
	return ot
}

// reprice gives the offerTable the prices of offers.
func (ot *offerTable) reprice(offers []Offer) {
	for i := range offers {
		ot.filled[i].Price = offers[i].Price
	}
	ot.sort()
	ot.arrange()
}

// sort ranks the offers. Most of them keep their rank when prices change.
func (ot *offerTable) sort() {
	slices.SortFunc(ot.rank, func(a, b int) int {
		x, y := &ot.filled[a], &ot.filled[b]
		return cmp.Or(cmp.Compare(x.Price, y.Price), cmp.Compare(x.Market, y.Market),
			cmp.Compare(x.Pool, y.Pool), cmp.Compare(a, b))
	})
}

// arrange fills what is known by position.
func (ot *offerTable) arrange() {
	ot.class, ot.shape, ot.pool, ot.shapes = ot.class[:0], ot.shape[:0], ot.pool[:0], ot.shapes[:0]
	for _, list := range [...][]bitset{ot.ofShape, ot.ofPool} {
		for i := range list {
			clear(list[i])
		}
	}
	ot.free()
	shapeOf := resize(ot.shapeOf, len(ot.kinds)) // one more than the shape, by kind
	for at, i := range ot.rank {
		g := &ot.goods[i]
		if shapeOf[g.kind] == 0 {
			ot.shapes = append(ot.shapes, ot.kinds[g.kind])
			shapeOf[g.kind] = int32(len(ot.shapes))
		}
		id := shapeOf[g.kind] - 1
		ot.ofShape[id].set(int32(at))
		ot.ofPool[g.pool].set(int32(at))
		ot.class, ot.shape, ot.pool = append(ot.class, g.class), append(ot.shape, id), append(ot.pool, g.pool)
	}
	ot.shapeOf = shapeOf
}

func (ot *offerTable) indexPools() {
	var ids []policy.PoolID
	for i := range ot.filled {
		p := slices.Index(ids, ot.filled[i].Pool)
		if p < 0 {
			p = len(ids)
			ids = append(ids, ot.filled[i].Pool)
			ot.ofPool = append(ot.ofPool, newBitset(len(ot.filled)))
		}
		ot.goods[i].pool = int32(p)
	}
}

// free discards the sets that are computed by position when needed.
func (ot *offerTable) free() {
	for s, fit := range ot.fits {
		if fit != nil {
			ot.fits[s], ot.freed = nil, append(ot.freed, fit)
		}
	}
	for key, by := range ot.ofDomain {
		ot.ofDomain[key], ot.freed = by[:0], append(ot.freed, by...)
	}
}

// newSet returns a set of no positions.
func (ot *offerTable) newSet() bitset {
	last := len(ot.freed) - 1
	if last < 0 {
		return newBitset(len(ot.rank))
	}
	set := ot.freed[last]
	ot.freed = ot.freed[:last]
	clear(set)
	return set
}

// divide fills ofDomain for key.
func (ot *offerTable) divide(table *classTable, key int32) {
	for len(ot.ofDomain) <= int(key) {
		ot.ofDomain = append(ot.ofDomain, nil)
	}
	if len(ot.ofDomain[key]) > 0 {
		return
	}
	by := ot.ofDomain[key]
	by = append(by, ot.newSet())
	for at := range ot.rank {
		d := table.classes[ot.class[at]].domain[key] + 1
		for len(by) <= int(d) {
			by = append(by, ot.newSet())
		}
		by[d].set(int32(at))
	}
	ot.ofDomain[key] = by
}

// divideAll fills ofDomain for all keys, and makes place for what suits each relaxation.
func (ot *offerTable) divideAll(sp *Space) {
	for key := 1; key < len(sp.table.keys); key++ {
		ot.divide(&sp.table, int32(key))
	}
	for len(ot.fits) < len(sp.groups.relaxations) {
		ot.fits = append(ot.fits, nil)
	}
}

// daemonPort reports whether a DaemonSet of class has a port that k wants.
func (ct *classTable) daemonPort(k *kind, class int32) bool {
	return ct.portDaemon(k, class) != policy.None
}

// portDaemon returns a DaemonSet of class that has a port which k wants, None without one.
func (ct *classTable) portDaemon(k *kind, class int32) policy.TemplateID {
	for _, t := range k.ports {
		if ct.kinds[t].daemon && ct.suits(t, class, "", "") == OK {
			return t
		}
	}
	return policy.None
}

// holds reports whether a node of this shape has room for all of need.
func (s *shape) holds(need *policy.Resources, gpu int16, volumes int32) bool {
	return need.Pods <= s.free.Pods &&
		(need.CPU == 0 || need.CPU <= s.free.CPU) &&
		(need.Memory == 0 || need.Memory <= s.free.Memory) &&
		(need.Storage == 0 || need.Storage <= s.free.Storage) &&
		(need.GPU == 0 || need.GPU <= s.free.GPU && gpu == s.gpu) &&
		(volumes == 0 || s.volumesMax == 0 || volumes <= s.volumesMax)
}

// An offerCache keeps the tables of what was offered last.
type offerCache struct {
	table *classTable

	// offerTables are the last that offers were put on, the latest first.
	offerTables []*offerTable
}
