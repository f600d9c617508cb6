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

	added  addedDomains
	filler binFiller
}

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
	ot := sp.offers.offerTableOf(offers, &Batch{})
	tr := &trial{sp: sp, offerTable: ot, used: make([]int32, len(offers))}
	tr.added = addedDomains{tr: tr, table: &sp.table, occupancy: &sp.occupancy, topology: &sp.topology}
	tr.readLots(pods)
	tr.filler = newBinFiller(tr)
	for i := range tr.lots {
		tr.added.announce(&tr.lots[i])
		tr.added.doubt(&tr.lots[i])
	}
	return tr
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
		for _, c := range tr.lots[p.lot].kind.volumes.claims {
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
		loads := tr.added.plan(plan, allowed, want)
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
	tr.added.end()
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
