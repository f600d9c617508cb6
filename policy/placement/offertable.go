package placement

import (
	"cmp"
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// An Offer is a market in which new nodes can be launched for a pool.
type Offer struct {
	Pool   policy.PoolID
	Market policy.MarketID

	// Price is the cost per node-hour.
	Price policy.Money

	// Allocatable is the resources that pods can use on a new node, including DaemonSet pods, whose
	// requests this package subtracts. VolumesMax is the number of volumes that can be attached; 0
	// means no known limit. GPUResource is the extended resource that Allocatable.GPU counts.
	Allocatable policy.Resources
	VolumesMax  int32
	GPUResource string

	// Labels and Taints are those of a new node, without its host name. The space keeps the lists,
	// so they must not be modified afterwards.
	Labels []policy.Label
	Taints []policy.Taint

	// Capacity is the total resources of the machine, which count against the limits of pools.
	Capacity policy.Resources

	// Max is the maximum number of nodes to launch; 0 means no limit.
	Max int

	// Choice numbers the combinations of values of the labels that the pool leaves open. A market
	// has one offer for each combination.
	Choice int
}

// A Bin is a node to launch: its pods and the offers that can run all of them.
type Bin struct {
	// Pods are indices into the given pods.
	Pods []int

	// Offers are indices into the given offers. They belong to one pool and are sorted by price,
	// then market.
	Offers []int
}

// An offerTable contains offers in a form that is fast to compare with pods. A position is the rank
// of an offer by price, then market.
type offerTable struct {
	offers  []Offer
	filled  []Offer // copy of the offers from which the table was built, to compare with others
	version uint64  // version of the offers, 0 if unknown
	shares  bool    // all offers of a pool have the same DaemonSets, listed in shared
	rank    []int   // offer by position
	class   []int32
	shape   []int32
	pool    []int32

	// goods contains the data of each offer that does not depend on prices. kinds are the distinct
	// shapes; shapes are the same in the order of positions. shapeOf is scratch.
	goods   []good
	kinds   []shape
	shapeOf []int32

	shapes  []shape
	ofShape []bitset
	ofPool  []bitset // by pool, in the order of their first offers
	shared  [][]policy.TemplateID
	all     bitset

	// fits contains, for each relaxation, the positions whose labels and taints suit it; nil until
	// it is needed.
	fits []bitset

	// ofDomain contains the positions by topology key and domain. Domains are shifted by one: entry
	// 0 is for offers without the label. Only keys in use are filled.
	ofDomain [][]bitset

	freed []bitset // unused sets, for reuse
}

// A good is the part of an offer that does not depend on its price.
type good struct{ class, kind, pool int32 }

// A shape is the capacity that a node provides to pods in addition to its DaemonSet pods.
type shape struct {
	free       policy.Resources
	volumesMax int32
	gpu        int16
}

// offerTablesMax is the number of tables that a space keeps: one for each capacity type, for two
// sets of pods that are tried alternately.
const offerTablesMax = 4

// offerTableOf returns the table of offers. Many sets of pods are tried on the same offers, so the
// last tables are kept, most recently used first. The result is in use until the next batch is
// prepared. A nonzero version in b identifies its offers: a table of the same version is used
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
	cache.offerTables[0], ot.offers = ot, offers // their Max may differ
	if version != 0 {
		ot.version = version
	}
	return ot
}

// sameOffers reports whether the table of offers would be the same except for Max.
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

// sameButPrices reports whether the table of offers would be the same except for prices and Max.
// Lists of labels and taints are compared by address, since they are never modified.
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
// and never modified, so lists at the same address are equal.
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

// reprice sets the prices of the table to those of offers.
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

// arrange builds the fields that are indexed by position.
func (ot *offerTable) arrange() {
	ot.class, ot.shape, ot.pool, ot.shapes = ot.class[:0], ot.shape[:0], ot.pool[:0], ot.shapes[:0]
	for _, list := range [...][]bitset{ot.ofShape, ot.ofPool} {
		for i := range list {
			clear(list[i])
		}
	}
	ot.free()
	shapeOf := resize(ot.shapeOf, len(ot.kinds)) // by kind: index of the shape plus one
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

// free discards the sets by position that are computed on demand.
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

// newSet returns an empty set of positions.
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

// divide builds ofDomain for key.
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

// divideAll builds ofDomain for all keys, and extends fits to all relaxations.
func (ot *offerTable) divideAll(sp *Space) {
	for key := 1; key < len(sp.table.keys); key++ {
		ot.divide(&sp.table, int32(key))
	}
	for len(ot.fits) < len(sp.groups.relaxations) {
		ot.fits = append(ot.fits, nil)
	}
}

// daemonPort reports whether a DaemonSet pod on nodes of class uses a host port that k requests.
func (ct *classTable) daemonPort(k *kind, class int32) bool {
	return ct.portDaemon(k, class) != policy.None
}

// portDaemon returns a DaemonSet that runs on nodes of class and uses a host port that k requests,
// or None.
func (ct *classTable) portDaemon(k *kind, class int32) policy.TemplateID {
	for _, t := range k.ports {
		if ct.kinds[t].daemon && ct.suits(t, class, "", "") == OK {
			return t
		}
	}
	return policy.None
}

// holds reports whether a node of this shape can run pods with total requests of need.
func (s *shape) holds(need *policy.Resources, gpu int16, volumes int32) bool {
	return need.Pods <= s.free.Pods &&
		(need.CPU == 0 || need.CPU <= s.free.CPU) &&
		(need.Memory == 0 || need.Memory <= s.free.Memory) &&
		(need.Storage == 0 || need.Storage <= s.free.Storage) &&
		(need.GPU == 0 || need.GPU <= s.free.GPU && gpu == s.gpu) &&
		(volumes == 0 || s.volumesMax == 0 || volumes <= s.volumesMax)
}

// An offerCache keeps the most recently used offer tables.
type offerCache struct {
	table *classTable

	// offerTables are in order of use, most recently used first.
	offerTables []*offerTable
}
