package placement

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// addedDomains are what a trial adds to the domains that spread constraints know, and takes off
// again when it ends. Loads are bought such that no domain that they add leaves others too full.
type addedDomains struct {
	tr        *trial
	table     *classTable
	occupancy *occupancy
	topology  *Topology

	domain []presence // domains that offers add to spread constraints

	// counting are, by counter, the positions at which it counts pods; nil where
	// no lot is in doubt about it.
	counting []bitset
}

// A presence is one count in one domain of a counter.
type presence struct{ counter, domain int32 }

// A floor says how many pods a domain must hold that a purchase adds to those of
// counter: with fewer it would leave others too full beside it.
type floor struct {
	counter, key, least int32
}

// plan asks propose for loads that keep their word in the end. Pods that may not run in
// a zone are bounded by it all the same as soon as a node stands there, where their
// spread constraint does not ask for affinity or taints to be honoured. So what adds
// such a zone is bought elsewhere; where that leaves pods without a place, the zone
// counts from the start.
func (ad *addedDomains) plan(propose func(allowed bitset, want []int32) []load, allowed bitset, want []int32) []load {
	wanted := slices.Clone(want)
	for {
		loads := propose(allowed, want)
		adding, added := ad.keepDomains(loads)
		if len(added) == 0 {
			return loads
		}
		left := sum(want)
		ad.tr.withdraw(loads)
		copy(want, wanted)
		others := slices.Clone(allowed)
		others.andNot(adding)
		loads = propose(others, want)
		if _, more := ad.keepDomains(loads); len(more) == 0 && sum(want) <= left {
			return loads
		}
		ad.tr.withdraw(loads)
		copy(want, wanted)
		for _, p := range added {
			ad.topology.counters[p.counter].node(p.domain, 1)
		}
		ad.domain = append(ad.domain, added...)
	}
}

func sum(counts []int32) (total int32) {
	for _, n := range counts {
		total += n
	}
	return total
}

// keepDomains takes off loads the offers whose nodes would add a domain that leaves
// too few pods in it by a spread constraint of the pods in loads. It returns all
// such offers, and the domains that loads add nevertheless: nothing else holds them.
func (ad *addedDomains) keepDomains(loads []load) (adding bitset, added []presence) {
	floors := ad.floors(loads)
	if len(floors) == 0 {
		return nil, nil
	}
	adding = newBitset(len(ad.tr.offerTable.rank))
	for _, f := range floors {
		for at := range ad.tr.offerTable.rank {
			if ad.adds(f, int32(at)) {
				adding.set(int32(at))
			}
		}
	}
	for i := range loads {
		l := &loads[i]
		if !l.alive.meets(adding) {
			continue
		}
		rest := slices.Clone(l.alive)
		rest.andNot(adding)
		if at := ad.moved(l, rest); at >= 0 {
			l.alive = rest
			continue
		}
		for _, f := range floors {
			if at := ad.boughtAt(l); ad.adds(f, at) {
				p := presence{f.counter, ad.domainAt(at, f.key)}
				if !slices.Contains(added, p) {
					added = append(added, p)
				}
			}
		}
	}
	return adding, added
}

// moved returns where l is bought of rest, after its claim was moved there, or -1.
func (ad *addedDomains) moved(l *load, rest bitset) int32 {
	if l.bin == nil {
		return rest.next(0)
	}
	at := l.bin.claim
	if rest.has(at) {
		return at
	}
	if at = ad.tr.spare(l.bin, rest); at >= 0 {
		ad.tr.lay(l.bin, at)
	}
	return at
}

func (ad *addedDomains) boughtAt(l *load) int32 {
	if l.bin != nil {
		return l.bin.claim
	}
	return l.alive.next(0)
}

func (ad *addedDomains) domainAt(at, key int32) int32 {
	return ad.table.classes[ad.tr.offerTable.class[at]].domain[key]
}

// adds reports whether a node bought at this position adds a domain below f.
func (ad *addedDomains) adds(f floor, at int32) bool {
	t, d := &ad.topology.counters[f.counter], ad.domainAt(at, f.key)
	known := d < 0 || int(d) < len(t.nodes) && t.nodes[d] > 0
	return !known && t.at(d) < f.least && ad.table.classCounts(t.among, ad.tr.offerTable.class[at], "", "")
}

// floors returns what the constraints of the pods in loads ask of further domains.
func (ad *addedDomains) floors(loads []load) []floor {
	if len(ad.domain) == 0 {
		return nil // no pod is bound by a spread over anything but hosts
	}
	var floors []floor
	for i := range loads {
		b := loads[i].bin
		if b == nil {
			continue
		}
		for _, p := range b.parts {
			for _, c := range ad.tr.lots[p.lot].kind.terms.spreads {
				if c.key == keyHost {
					continue
				}
				least := ad.topology.counters[c.counter].at(b.domain[c.key]) - c.skewMax
				at := slices.IndexFunc(floors, func(f floor) bool { return f.counter == c.counter })
				switch {
				case least <= 0:
				case at < 0:
					floors = append(floors, floor{c.counter, c.key, least})
				default:
					floors[at].least = max(floors[at].least, least)
				}
			}
		}
	}
	return floors
}

// doubt finds the counters that count pods of l at some offers only.
func (ad *addedDomains) doubt(l *lot) {
	for _, id := range l.kind.counters {
		t := &ad.topology.counters[id]
		if t.private || t.among == nil || t.key == keyHost || t.among.owner == l.template {
			continue
		}
		set := newBitset(len(ad.tr.offerTable.rank))
		for at, class := range ad.tr.offerTable.class {
			if ad.table.classCounts(t.among, class, "", "") {
				set.set(int32(at))
			}
		}
		if l.fit.meets(set) && !l.fit.within(set) {
			l.doubtful = append(l.doubtful, id)
			for len(ad.counting) <= int(id) {
				ad.counting = append(ad.counting, nil)
			}
			ad.counting[id] = set
		}
	}
}

// agree keeps those of positions at which pods of l count for others' constraints
// as they do at one of them: what is bought later of the others is then as counted.
func (ad *addedDomains) agree(positions bitset, l *lot, at int32) {
	for _, id := range l.doubtful {
		if ad.counting[id].has(at) {
			positions.and(ad.counting[id])
		} else {
			positions.andNot(ad.counting[id])
		}
	}
}

// announce adds the domains in which l could be bought, or others must be, to
// those that its spread constraints know: once a node stands there they will
// count, and an empty one then bounds all others.
func (ad *addedDomains) announce(l *lot) {
	ot := ad.tr.offerTable
	for _, c := range l.kind.terms.spreads {
		known := slices.ContainsFunc(ad.domain, func(p presence) bool { return p.counter == c.counter })
		if c.key == keyHost || known {
			continue
		}
		for d, positions := range ot.ofDomain[c.key] {
			if d > 0 && (ad.buyable(l, positions) || ad.confines(&ad.topology.counters[c.counter], positions)) {
				ad.topology.counters[c.counter].node(int32(d-1), 1)
				ad.domain = append(ad.domain, presence{c.counter, int32(d - 1)})
			}
		}
		ad.expect(c)
	}
}

// expect adds the domains of nodes that are on their way: they will be there before
// what is bought now.
func (ad *addedDomains) expect(c spread) {
	t := &ad.topology.counters[c.counter]
	for n := range ad.occupancy.slots {
		id := policy.NodeID(n)
		if ad.occupancy.slots[n].state != coming || !ad.topology.counts(t, id) {
			continue
		}
		if d := ad.occupancy.domain(c.key, id); d >= 0 {
			t.node(d, 1)
			ad.domain = append(ad.domain, presence{c.counter, d})
		}
	}
}

// buyable reports whether one of the positions suits pods of l. Whether there
// is room for one does not matter: it does not when Kubernetes counts domains.
func (ad *addedDomains) buyable(l *lot, positions bitset) bool {
	for at := positions.next(0); at >= 0; at = positions.next(at + 1) {
		if ad.table.suits(l.template, ad.tr.offerTable.class[at], "", "") == OK {
			return true
		}
	}
	return false
}

// confines reports whether some of the pods can be bought for at these positions
// alone, on nodes that t counts. Such nodes count for constraints of pods that may
// not run there, too, unless they ask for other taint and affinity policies.
func (ad *addedDomains) confines(t *counter, positions bitset) bool {
	for i := range ad.tr.lots {
		fit := ad.tr.lots[i].fit
		if !fit.within(positions) {
			continue
		}
		at := fit.next(0)
		counts := at >= 0
		for ; counts && at >= 0; at = fit.next(at + 1) {
			counts = ad.table.classCounts(t.among, ad.tr.offerTable.class[at], "", "")
		}
		if counts {
			return true
		}
	}
	return false
}

// end leaves the space as it was, given that all bins were taken out.
func (ad *addedDomains) end() {
	for _, p := range ad.domain {
		ad.topology.counters[p.counter].node(p.domain, -1)
	}
}
