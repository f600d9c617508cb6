package eval

import (
	"math"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/place"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/weather"
	"github.com/spotter-dev/spotter/sim"
)

// closed is the price of a market in which no node can be alive. It is above
// all others.
const closed policy.Money = math.MaxInt64

// A site is where a node may be: a market, for a pool.
type site struct {
	market policy.MarketID

	// room is what DaemonSet pods leave to others on a node, takes are the
	// workloads of which one pod may run there.
	room  [resources]int64
	takes []bool
}

// resources is the number of resources that a site has. Accelerators of all
// makes are one of them, since a site has but one make and takes only the
// workloads that ask for it.
const resources = 5

func vector(r *policy.Resources) [resources]int64 {
	return [resources]int64{r.CPU, r.Memory, r.Storage, r.GPU, r.Pods}
}

// findSites lists the sites of all pools and of the nodes that are there from
// the start.
func (o *oracle) findSites() {
	w := o.world
	// Where other pods run may forbid a place for the time being, and never for
	// good: only what lies in the node itself counts.
	alone := slices.Clone(w.Templates)
	for i := range alone {
		t := &alone[i]
		t.PodAffinity, t.PodAntiAffinity, t.Spread, t.HostPorts, t.Volumes = nil, nil, nil, nil, nil
	}
	space := place.New(alone, w.Zones)
	for p := range w.Pools {
		markets := slices.Clone(w.Pools[p].Markets)
		for _, s := range w.Seeds {
			if s.Pool == policy.PoolID(p) {
				markets = append(markets, s.Market)
			}
		}
		slices.Sort(markets)
		for _, m := range slices.Compact(markets) {
			if s, ok := o.siteOf(space, &w.Pools[p], m); ok {
				o.sites = append(o.sites, s)
			}
		}
	}
}

// siteOf returns the site of market m for pool; false where no workload runs.
func (o *oracle) siteOf(space *place.Space, pool *policy.Pool, m policy.MarketID) (site, bool) {
	w := o.world
	typ := &w.Types[w.Markets[m].Type]
	node := policy.Node{Pool: pool.ID, Market: m, Phase: policy.NodeInitialized, Allocatable: typ.Allocatable,
		VolumesMax: typ.VolumesMax, GPUResource: typ.GPUResource,
		Labels: place.NodeLabels(w.Types, w.Zones, pool, &w.Markets[m]), Taints: pool.Taints}
	space.SetNode(&node)
	free := typ.Allocatable
	if daemons := space.Daemons(node.Labels, node.Taints); daemons.Within(free) {
		free = free.Minus(daemons) // else some of them find no room, and which is not asked
	}
	s := site{market: m, room: vector(&free), takes: make([]bool, len(w.Workloads))}
	any := false
	for i := range w.Workloads {
		pod := policy.Pod{Template: policy.TemplateID(i), Phase: policy.PodPending, Node: policy.None, Nominated: policy.None, VolumeZone: policy.None}
		requests := vector(&w.Templates[i].Requests)
		if !w.Templates[i].DaemonSet && space.Check(&pod, 0) == place.OK && holds(&s.room, &requests) {
			s.takes[i], any = true, true
		}
	}
	return s, any
}

// findClasses fills classes and classOf. Pods are alike that request the same, may
// run on the same nodes, keep off the same others and are worth the same.
func (o *oracle) findClasses() {
	for i := range o.world.Workloads {
		c := slices.IndexFunc(o.classes, func(first int) bool { return o.alike(first, i) })
		if c < 0 {
			c, o.classes = len(o.classes), append(o.classes, i)
		}
		o.classOf = append(o.classOf, c)
	}
}

// alike reports whether pods of workloads a and b cost the same to serve.
func (o *oracle) alike(a, b int) bool {
	t := o.world.Templates
	return vector(&t[a].Requests) == vector(&t[b].Requests) && o.value[a] == o.value[b] &&
		!slices.ContainsFunc(o.sites, func(s site) bool { return s.takes[a] != s.takes[b] }) &&
		!slices.ContainsFunc(o.apart, func(set []int) bool { return slices.Contains(set, a) != slices.Contains(set, b) })
}

// holds reports whether room holds requests; what is not asked for is not
// compared.
func holds(room, requests *[resources]int64) bool {
	for r, q := range requests {
		if q > 0 && q > room[r] {
			return false
		}
	}
	return true
}

// A fleet is the kinds of node that a set of markets offers.
type fleet struct {
	kinds  []nodeKind
	covers []cover

	// supplies are the markets that have slots, where these are looked at; the
	// price of a kind is then that of the others. cuts are more instants at which
	// the window is cut.
	supplies []supply
	cuts     []policy.Time
}

// A cover is a commitment: free nodes with a bound. Its unit is what the node
// that takes most of it takes.
type cover struct {
	commitment policy.Commitment

	// amount is in units, rounded up, and list what a unit costs per hour on
	// demand, for scale.
	amount, list float64
}

// A nodeKind is nodes that are alike to pods: only the cheapest is of use.
type nodeKind struct {
	// takers are the classes of pods that may run there.
	takers []int

	// rows say what fits: of every set of pods on a node, the coefficients of
	// its takers sum to at most 1 in each row. They are rounded down.
	rows [][]float64

	// room, asked and apart say the same of whole pods, exactly: what a node has,
	// what a pod of each taker requests, and sets of takers of which a node holds
	// one pod in all.
	room  [resources]int64
	asked [][resources]int64
	apart [][]bool

	// larger are the kinds of which a node holds whatever one of this kind does.
	// Where one of them costs no more this kind is of no use.
	larger []int

	// price is the least price of the kind's markets from at on.
	at    []policy.Time
	price []policy.Money

	// takes is what a node of the kind takes at least of each commitment, in its
	// units and rounded down; 0 for one that does not cover it. list is the price
	// on demand of one that is covered, for scale.
	takes []float64
	list  float64
}

// priceAt returns the price at t.
func (k *nodeKind) priceAt(t policy.Time) policy.Money {
	i, found := slices.BinarySearch(k.at, t)
	if !found {
		i--
	}
	return k.price[i]
}

// newFleet makes the kinds of the admitted markets under a weather; nil stands
// for every one.
func (o *oracle) newFleet(admitted func(*policy.Market) bool, drawn *weather.Weather) *fleet {
	f := &fleet{}
	of, kindOf := o.kindsOf(admitted)
	curves := make([][]scenarios.PriceCurve, len(of))
	for i, k := range kindOf {
		if k >= 0 {
			curves[k] = append(curves[k], o.charges(o.sites[i].market, drawn))
		}
	}
	for k, s := range of {
		f.kinds = append(f.kinds, o.newKind(s))
		f.kinds[k].at, f.kinds[k].price = o.least(curves[k])
	}
	f.order(o, of)
	f.own(o, kindOf)
	return f
}

// order fills larger of every kind.
func (f *fleet) order(o *oracle, of []*site) {
	for k, a := range of {
		for j, b := range of {
			if j != k && within(&a.room, &b.room) && !slices.ContainsFunc(f.kinds[k].takers, func(c int) bool { return !b.takes[o.classes[c]] }) {
				f.kinds[k].larger = append(f.kinds[k].larger, j)
			}
		}
	}
}

// within reports whether a is no more than b of any resource.
func within(a, b *[resources]int64) bool {
	for r := range a {
		if a[r] > b[r] {
			return false
		}
	}
	return true
}

// kindsOf returns the first site of each kind of node in the markets admitted,
// and the kind of every site; −1 where it is not admitted.
func (o *oracle) kindsOf(admitted func(*policy.Market) bool) (of []*site, kindOf []int) {
	for i := range o.sites {
		s := &o.sites[i]
		k := -1
		if admitted(&o.world.Markets[s.market]) {
			if k = slices.IndexFunc(of, func(x *site) bool { return x.room == s.room && slices.Equal(x.takes, s.takes) }); k < 0 {
				k, of = len(of), append(of, s)
			}
		}
		kindOf = append(kindOf, k)
	}
	return of, kindOf
}

// own tells the fleet what commitments cover of its kinds. A covered node can be
// had at all times, on demand also where no slot of the market could hold it:
// that only lowers the bound.
func (f *fleet) own(o *oracle, kindOf []int) {
	w := o.world
	for i := range w.Commitments {
		c := &w.Commitments[i]
		least, most := make([]int64, len(f.kinds)), int64(0)
		next := cover{commitment: *c}
		for j := range o.sites {
			m, k := &w.Markets[o.sites[j].market], kindOf[j]
			takes := c.Takes(m, &w.Types[m.Type], w.Zones[m.Zone])
			if takes == 0 || m.OnDemand <= 0 || k < 0 {
				continue
			}
			if least[k] == 0 || takes < least[k] {
				least[k] = takes
			}
			f.kinds[k].list = max(f.kinds[k].list, float64(m.OnDemand))
			if takes > most {
				most, next.list = takes, float64(m.OnDemand)
			}
		}
		if most == 0 {
			continue
		}
		next.amount = above(float64(c.Amount) / float64(most))
		for k := range f.kinds {
			part := 0.0
			if least[k] > 0 {
				part = below(float64(least[k]) / float64(most))
			}
			f.kinds[k].takes = append(f.kinds[k].takes, part)
		}
		f.covers = append(f.covers, next)
	}
}

func (o *oracle) newKind(s *site) nodeKind {
	k := nodeKind{room: s.room}
	var requests [][resources]int64
	for class, w := range o.classes {
		if s.takes[w] {
			k.takers = append(k.takers, class)
			requests = append(requests, vector(&o.world.Templates[w].Requests))
		}
	}
	for r, room := range s.room {
		if room <= 0 {
			continue // nobody who asks for it is a taker
		}
		asked := make([]int64, len(requests))
		for i := range requests {
			asked[i] = requests[i][r]
		}
		k.rows = appendRows(k.rows, asked, room)
	}
	for _, apart := range o.apart {
		row, set := make([]float64, len(k.takers)), make([]bool, len(k.takers))
		for i, class := range k.takers {
			if set[i] = slices.Contains(apart, o.classes[class]); set[i] {
				row[i] = 1
			}
		}
		if slices.Contains(set, true) && !slices.ContainsFunc(k.rows, func(x []float64) bool { return slices.Equal(x, row) }) {
			k.rows, k.apart = append(k.rows, row), append(k.apart, set)
		}
	}
	k.asked = requests
	return k
}

// sharpMax is the most pods of a workload on a node up to which it matters that
// they are whole. Beyond it the loss is under a tenth.
const sharpMax = 10

// appendRows appends what a resource says of the pods on a node: that their
// requests sum to at most its room and, sharper, what follows from it because
// pods are whole. A pod that takes a little more than a fifth of the room leaves
// place for four, and costs a fourth of a node and not a fifth.
func appendRows(rows [][]float64, asked []int64, room int64) [][]float64 {
	plain := make([]float64, len(asked))
	var counts []int64
	for i, q := range asked {
		if q <= 0 {
			continue
		}
		plain[i] = max(0, below(float64(q)/float64(room)))
		if n := room / q; n <= sharpMax && room%q != 0 && !slices.Contains(counts, n) {
			counts = append(counts, n)
		}
	}
	if slices.Max(plain) == 0 {
		return rows
	}
	rows = append(rows, plain)
	slices.Sort(counts)
	for _, n := range counts {
		row := make([]float64, len(asked))
		for i, q := range asked {
			row[i] = sharpened(max(0, q), room, n, plain[i])
		}
		rows = append(rows, row)
	}
	return rows
}

// sharpened returns u(x) for x = asked ÷ room, rounded down; share is x rounded
// down. u(x) is x where (n+1)·x is whole, and else the whole part of (n+1)·x
// divided by n (Fekete and Schepers, 2001).
//
// Numbers that sum to at most 1 still do so after u. If all of them are of the
// first sort they stay what they are. If not, let a/(n+1) be the sum of those
// that are, and b the sum of the whole parts of the others. Something was cut
// off, so a + b is below n+1; it is whole, so at most n; and a/(n+1) + b/n is at
// most (a+b)/n.
func sharpened(asked, room, n int64, share float64) float64 {
	whole, rest := (n+1)*asked/room, (n+1)*asked%room
	if rest == 0 {
		return share
	}
	return max(0, below(float64(whole)/float64(n)))
}

// below and above return the floats next to x, so that what was rounded to the
// nearest is a bound.
func below(x float64) float64 { return math.Nextafter(x, math.Inf(-1)) }
func above(x float64) float64 { return math.Nextafter(x, math.Inf(1)) }

// charges returns what a node of market m is charged over time, and closed where
// none can be alive.
func (o *oracle) charges(m policy.MarketID, drawn *weather.Weather) scenarios.PriceCurve {
	curve := o.stage.Charges(m)
	out := scenarios.PriceCurve{At: slices.Clone(curve.At), Price: carried(curve.Price)}
	seeded := slices.ContainsFunc(o.world.Seeds, func(s scenarios.NodeSeed) bool { return s.Market == m })
	if !seeded {
		for i := 0; i < len(curve.Price) && curve.Price[i] == policy.NoPrice; i++ {
			out.Price[i] = closed // nothing was ever offered
		}
	}
	if o.world.Markets[m].Auction() {
		out = leastWithin(out, policy.Time(sim.DefaultDelays().RackspaceNotice.Milliseconds())+1)
	}
	shut := o.shut(m, seeded)
	if drawn != nil && o.world.Markets[m].Capacity == policy.Spot {
		shut = append(shut, o.swept(m, seeded, drawn)...)
	}
	for _, s := range shut {
		out = without(out, s.from, s.to)
	}
	return out
}

// carried returns prices with the price in force before it, or the first one
// after it, in place of policy.NoPrice: what a node is charged that runs on
// while the market is not offered.
func carried(prices []policy.Money) []policy.Money {
	out, last := make([]policy.Money, len(prices)), closed
	if first := slices.IndexFunc(prices, func(p policy.Money) bool { return p != policy.NoPrice }); first >= 0 {
		last = prices[first]
	}
	for i, p := range prices {
		if p != policy.NoPrice {
			last = p
		}
		out[i] = last
	}
	return out
}

// leastWithin returns the least price of c within the time before each instant.
// A node that was outbid pays its bid until it is taken, and that was at least
// the price just before.
func leastWithin(c scenarios.PriceCurve, before policy.Time) scenarios.PriceCurve {
	cuts := slices.Clone(c.At)
	for _, at := range c.At {
		cuts = append(cuts, at+before)
	}
	slices.Sort(cuts)
	var out scenarios.PriceCurve
	first := 0
	for _, at := range slices.Compact(cuts) {
		for first+1 < len(c.At) && c.At[first+1] <= at-before {
			first++
		}
		least := c.Price[first]
		for i := first + 1; i < len(c.At) && c.At[i] <= at; i++ {
			least = min(least, c.Price[i])
		}
		out.At, out.Price = append(out.At, at), append(out.Price, least)
	}
	return out
}

// A stretch is a part of time.
type stretch struct{ from, to policy.Time }

// shut returns when no node of market m can be alive, whatever the seed: between
// the time in which a squeeze that takes every slot does so and its end, and
// until a recorded availability first begins. Other squeezes may spare a slot.
func (o *oracle) shut(m policy.MarketID, seeded bool) []stretch {
	w, x := o.world, &o.world.Markets[m]
	var out []stretch
	taken := weather.DefaultParams().TakeWindow
	for i := range w.Faults {
		f := &w.Faults[i]
		all := f.Kind == scenarios.FaultZoneOutage || f.Kind == scenarios.FaultSqueeze && f.Share >= 1 && x.Capacity == policy.Spot
		if all && (f.Zone == "" || f.Zone == w.Zones[x.Zone]) && (f.Type == "" || f.Type == w.Types[x.Type].Name) {
			out = append(out, stretch{f.At.Add(taken), f.At.Add(f.Duration)})
		}
	}
	if x.Capacity != policy.Spot || seeded || w.Available == nil || len(w.Available[m].At) == 0 || w.Available[m].Available[0] {
		return out
	}
	a := &w.Available[m]
	until := policy.Time(math.MaxInt64)
	if up := slices.Index(a.Available, true); up >= 0 {
		until = a.At[up]
		if a.Gap != nil {
			until = max(a.At[up]-a.Gap[up], a.At[up-1])
		}
	}
	return append(out, stretch{0, until})
}

// swept returns when no node of spot market m can be alive under a weather:
// while the market refuses launches, from the loss of the last node that may
// have been there before.
func (o *oracle) swept(m policy.MarketID, seeded bool, drawn *weather.Weather) []stretch {
	var refuses []stretch
	for _, s := range drawn.Spells(int(m)) {
		if last := len(refuses) - 1; last >= 0 && s.From <= refuses[last].to {
			refuses[last].to = max(refuses[last].to, s.Until)
			continue
		}
		refuses = append(refuses, stretch{s.From, s.Until})
	}
	begin := o.world.Start.Add(-o.world.WarmUp)
	var out []stretch
	for _, s := range refuses {
		if s.to <= o.window.From || s.from >= o.window.To {
			continue
		}
		if s.from > begin || seeded {
			s.from = lastLost(drawn, m, max(s.from, begin)-1)
		}
		if s.from < s.to {
			out = append(out, s)
		}
	}
	return out
}

// lastLost returns when the last slot of market m loses the node that has held
// it since t or before.
func lastLost(drawn *weather.Weather, m policy.MarketID, t policy.Time) policy.Time {
	last := t + 1
	for slot := range drawn.Slots(int(m)) {
		r, ok := drawn.Reclaim(int(m), slot, t)
		if !ok {
			return math.MaxInt64
		}
		last = max(last, r.At)
	}
	return last
}

// without returns c closed from one instant to another.
func without(c scenarios.PriceCurve, from, to policy.Time) scenarios.PriceCurve {
	cuts := append(slices.Clone(c.At), from, to)
	slices.Sort(cuts)
	var out scenarios.PriceCurve
	i := 0
	for _, t := range slices.Compact(cuts) {
		for i+1 < len(c.At) && c.At[i+1] <= t {
			i++
		}
		price := c.Price[i]
		if from <= t && t < to {
			price = closed
		}
		out.At, out.Price = append(out.At, t), append(out.Price, price)
	}
	return out
}

// least returns the least of the curves from the begin of the window on.
func (o *oracle) least(curves []scenarios.PriceCurve) (at []policy.Time, price []policy.Money) {
	cuts := []policy.Time{o.window.From}
	for i := range curves {
		for _, t := range curves[i].At {
			if t > o.window.From && t < o.window.To {
				cuts = append(cuts, t)
			}
		}
	}
	slices.Sort(cuts)
	cursor := make([]int, len(curves))
	for _, t := range slices.Compact(cuts) {
		lowest := closed
		for i := range curves {
			c := &curves[i]
			for cursor[i]+1 < len(c.At) && c.At[cursor[i]+1] <= t {
				cursor[i]++
			}
			lowest = min(lowest, c.Price[cursor[i]])
		}
		if last := len(price) - 1; last < 0 || price[last] != lowest {
			at, price = append(at, t), append(price, lowest)
		}
	}
	return at, price
}
