package placement

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// A trial is one attempt to buy nodes for pods. While it lasts its bins stand
// in the counters of the space, as hosts after the last slot.
type trial struct {
	sp         *Space
	offerTable *offerTable
	lots       []lot

	bins int32 // opened so far, given back ones included

	// used counts the nodes meant for each position. A bin lays claim to one
	// with room for it from the start, so that what topology was promised can
	// be bought.
	used []int32

	domain []presence // domains that offers add to spread constraints

	// counting are, by counter, the positions at which it counts pods; nil where
	// no lot is in doubt about it.
	counting []bitset

	// fallback are the offers for pods that none of those they are to be
	// provisioned on takes; nil for none.
	fallback bitset

	// scratch of join and pin
	cand, pinned bitset
	depth        []bitset
	here, best   []int32
	bestCount    int32
}

// A presence is one count in one domain of a counter.
type presence struct{ counter, domain int32 }

// unpinned stands for a domain that a bin has not yet.
const unpinned = -2

// A load is what a number of equal bins hold.
type load struct {
	parts []part
	alive bitset // positions of the offers that hold it
	times int32
	bin   *bin // nil where its pods are in no counter and it has no claim
}

// A part is a number of pods of one lot.
type part struct{ lot, n int32 }

// A bin is a node to be bought while it is being filled.
type bin struct {
	load
	host      int32
	pods      int32
	used      policy.Resources
	gpu       int16
	volumes   int32
	claims    []int32
	templates []policy.TemplateID // of pods with host ports

	shapes []int32
	most   policy.Resources // largest of the shapes

	domain []int32 // by topology key
	claim  int32   // position, -1 before the first pod
	counts []presence
}

func newTrial(sp *Space, pods []policy.Pod, offers []Offer) *trial {
	ot := sp.offers.offerTableOf(offers, 0)
	tr := &trial{sp: sp, offerTable: ot}
	tr.readLots(pods)
	tr.cand, tr.pinned = newBitset(len(offers)), newBitset(len(offers))
	tr.used = make([]int32, len(offers))
	for range sp.table.keys {
		tr.depth = append(tr.depth, newBitset(len(offers)))
	}
	tr.here, tr.best = make([]int32, len(sp.table.keys)), make([]int32, len(sp.table.keys))
	for i := range tr.lots {
		tr.announce(&tr.lots[i])
		tr.doubt(&tr.lots[i])
	}
	return tr
}

// announce adds the domains in which l could be bought, or others must be, to
// those that its spread constraints know: once a node stands there they will
// count, and an empty one then bounds all others.
func (tr *trial) announce(l *lot) {
	sp, ot := tr.sp, tr.offerTable
	for _, c := range l.kind.spreads {
		known := slices.ContainsFunc(tr.domain, func(p presence) bool { return p.counter == c.counter })
		if c.key == keyHost || known {
			continue
		}
		for d, positions := range ot.ofDomain[c.key] {
			if d > 0 && (tr.buyable(l, positions) || tr.confines(&sp.topology.counters[c.counter], positions)) {
				sp.topology.counters[c.counter].node(int32(d-1), 1)
				tr.domain = append(tr.domain, presence{c.counter, int32(d - 1)})
			}
		}
		tr.expect(c)
	}
}

// expect adds the domains of nodes that are on their way: they will be there before
// what is bought now.
func (tr *trial) expect(c spread) {
	t := &tr.sp.topology.counters[c.counter]
	for n := range tr.sp.occupancy.slots {
		id := policy.NodeID(n)
		if tr.sp.occupancy.slots[n].state != coming || !tr.sp.topology.counts(t, id) {
			continue
		}
		if d := tr.sp.occupancy.domain(c.key, id); d >= 0 {
			t.node(d, 1)
			tr.domain = append(tr.domain, presence{c.counter, d})
		}
	}
}

// buyable reports whether one of the positions suits pods of l. Whether there
// is room for one does not matter: it does not when Kubernetes counts domains.
func (tr *trial) buyable(l *lot, positions bitset) bool {
	for at := positions.next(0); at >= 0; at = positions.next(at + 1) {
		if tr.sp.table.suits(l.template, tr.offerTable.class[at], "", "") == OK {
			return true
		}
	}
	return false
}

// confines reports whether some of the pods can be bought for at these positions
// alone, on nodes that t counts. Such nodes count for constraints of pods that may
// not run there, too, unless they ask for other taint and affinity policies.
func (tr *trial) confines(t *counter, positions bitset) bool {
	for i := range tr.lots {
		fit := tr.lots[i].fit
		if !fit.within(positions) {
			continue
		}
		at := fit.next(0)
		counts := at >= 0
		for ; counts && at >= 0; at = fit.next(at + 1) {
			counts = tr.sp.table.classCounts(t.among, tr.offerTable.class[at], "", "")
		}
		if counts {
			return true
		}
	}
	return false
}

// end leaves the space as it was, given that all bins were taken out.
func (tr *trial) end() {
	for _, p := range tr.domain {
		tr.sp.topology.counters[p.counter].node(p.domain, -1)
	}
}

// spare returns the cheapest of the positions at which b may be bought beside
// the other bins, or -1.
func (tr *trial) spare(b *bin, positions bitset) int32 {
	for at := positions.next(0); at >= 0; at = positions.next(at + 1) {
		if at == b.claim || !tr.exhausted(at) {
			return at
		}
	}
	return -1
}

func (tr *trial) exhausted(at int32) bool {
	m := tr.offerTable.offers[tr.offerTable.rank[at]].Max
	return m > 0 && int(tr.used[at]) >= m
}

// lay gives b the claim to position at.
func (tr *trial) lay(b *bin, at int32) {
	if b.claim >= 0 {
		tr.used[b.claim]--
	}
	b.claim = at
	tr.used[at]++
}

// countBin adds (1) the pods of b to the counters or takes them out (-1), and its
// claim likewise.
func (tr *trial) countBin(b *bin, delta int32) {
	tr.used[b.claim] += delta
	for _, c := range b.counts {
		tr.sp.topology.counters[c.counter].add(c.domain, delta)
	}
	for _, p := range b.parts {
		for _, c := range tr.lots[p.lot].kind.claims {
			tr.sp.occupancy.claims[c.id].users += delta * p.n
		}
	}
}

// withdraw takes bins out of the counters.
func (tr *trial) withdraw(loads []load) {
	for i := range loads {
		if loads[i].bin != nil {
			tr.countBin(loads[i].bin, -1)
		}
	}
}

func (tr *trial) wanted() []int32 {
	want := make([]int32, len(tr.lots))
	for i := range tr.lots {
		want[i] = int32(len(tr.lots[i].pods))
	}
	return want
}

// buy turns what plan proposes into bins. Plan packs as many as it can of
// the wanted pods onto allowed offers and lowers want by them. Where offers
// are exhausted, what was meant for them is planned again without.
func (tr *trial) buy(plan func(allowed bitset, want []int32) []load) ([]Bin, []int, policy.Money) {
	var (
		allowed = slices.Clone(tr.offerTable.all)
		want    = tr.wanted()
		taken   = make([]int32, len(tr.lots))
		bins    []Bin
		kept    []load
		total   policy.Money
	)
	for again := true; again; {
		again = false
		loads := tr.plan(plan, allowed, want)
		for i := range loads {
			l := &loads[i]
			for range l.times {
				at, list := tr.choose(l)
				if at < 0 {
					again = true
					for _, p := range l.parts {
						want[p.lot] += p.n
					}
					continue
				}
				total += tr.priceAt(at)
				bins = append(bins, Bin{Pods: tr.take(l.parts, taken), Offers: list})
			}
		}
		kept = append(kept, loads...)
		for at := range tr.used {
			if tr.exhausted(int32(at)) {
				allowed.clear(int32(at))
			}
		}
	}
	tr.withdraw(kept)
	tr.end()
	var unplaced []int
	for i := range tr.lots {
		unplaced = append(unplaced, tr.lots[i].pods[taken[i]:]...)
	}
	slices.Sort(unplaced)
	return bins, unplaced, total
}

// choose returns the position at which a node of l is bought, its claim or the
// cheapest that is not exhausted, or -1; and the offers of its pool that are
// not exhausted either.
func (tr *trial) choose(l *load) (int32, []int) {
	ot, first, list := tr.offerTable, int32(-1), []int(nil)
	for at := l.alive.next(0); at >= 0; at = l.alive.next(at + 1) {
		claimed := l.bin != nil && at == l.bin.claim
		if !claimed && tr.exhausted(at) || l.bin != nil && at < l.bin.claim {
			continue
		}
		if first < 0 {
			first = at
			list = make([]int, 0, 16)
		}
		if ot.pool[at] == ot.pool[first] {
			list = append(list, ot.rank[at])
		}
	}
	if first >= 0 && l.bin == nil {
		tr.used[first]++
	}
	return first, list
}

// take removes the pods of parts from the lots, oldest first.
func (tr *trial) take(parts []part, taken []int32) []int {
	n := int32(0)
	for _, p := range parts {
		n += p.n
	}
	pods := make([]int, 0, n)
	for _, p := range parts {
		from := taken[p.lot]
		pods = append(pods, tr.lots[p.lot].pods[from:from+p.n]...)
		taken[p.lot] += p.n
	}
	return pods
}
