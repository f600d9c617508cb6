package placement

import "slices"

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
func (tr *trial) plan(propose func(allowed bitset, want []int32) []load, allowed bitset, want []int32) []load {
	wanted := slices.Clone(want)
	for {
		loads := propose(allowed, want)
		adding, added := tr.keepDomains(loads)
		if len(added) == 0 {
			return loads
		}
		left := sum(want)
		tr.withdraw(loads)
		copy(want, wanted)
		others := slices.Clone(allowed)
		others.andNot(adding)
		loads = propose(others, want)
		if _, more := tr.keepDomains(loads); len(more) == 0 && sum(want) <= left {
			return loads
		}
		tr.withdraw(loads)
		copy(want, wanted)
		for _, p := range added {
			tr.sp.topology.counters[p.counter].node(p.domain, 1)
		}
		tr.domain = append(tr.domain, added...)
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
func (tr *trial) keepDomains(loads []load) (adding bitset, added []presence) {
	floors := tr.floors(loads)
	if len(floors) == 0 {
		return nil, nil
	}
	adding = newBitset(len(tr.offerTable.rank))
	for _, f := range floors {
		for at := range tr.offerTable.rank {
			if tr.adds(f, int32(at)) {
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
		if at := tr.moved(l, rest); at >= 0 {
			l.alive = rest
			continue
		}
		for _, f := range floors {
			if at := tr.boughtAt(l); tr.adds(f, at) {
				p := presence{f.counter, tr.domainAt(at, f.key)}
				if !slices.Contains(added, p) {
					added = append(added, p)
				}
			}
		}
	}
	return adding, added
}

// moved returns where l is bought of rest, after its claim was moved there, or -1.
func (tr *trial) moved(l *load, rest bitset) int32 {
	if l.bin == nil {
		return rest.next(0)
	}
	at := l.bin.claim
	if rest.has(at) {
		return at
	}
	if at = tr.spare(l.bin, rest); at >= 0 {
		tr.lay(l.bin, at)
	}
	return at
}

func (tr *trial) boughtAt(l *load) int32 {
	if l.bin != nil {
		return l.bin.claim
	}
	return l.alive.next(0)
}

func (tr *trial) domainAt(at, key int32) int32 {
	return tr.sp.table.classes[tr.offerTable.class[at]].domain[key]
}

// adds reports whether a node bought at this position adds a domain below f.
func (tr *trial) adds(f floor, at int32) bool {
	t, d := &tr.sp.topology.counters[f.counter], tr.domainAt(at, f.key)
	known := d < 0 || int(d) < len(t.nodes) && t.nodes[d] > 0
	return !known && t.at(d) < f.least && tr.sp.table.classCounts(t.among, tr.offerTable.class[at], "", "")
}

// floors returns what the constraints of the pods in loads ask of further domains.
func (tr *trial) floors(loads []load) []floor {
	if len(tr.domain) == 0 {
		return nil // no pod is bound by a spread over anything but hosts
	}
	var floors []floor
	for i := range loads {
		b := loads[i].bin
		if b == nil {
			continue
		}
		for _, p := range b.parts {
			for _, c := range tr.lots[p.lot].kind.spreads {
				if c.key == keyHost {
					continue
				}
				least := tr.sp.topology.counters[c.counter].at(b.domain[c.key]) - c.skewMax
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
func (tr *trial) doubt(l *lot) {
	for _, id := range l.kind.counters {
		t := &tr.sp.topology.counters[id]
		if t.private || t.among == nil || t.key == keyHost || t.among.owner == l.template {
			continue
		}
		set := newBitset(len(tr.offerTable.rank))
		for at, class := range tr.offerTable.class {
			if tr.sp.table.classCounts(t.among, class, "", "") {
				set.set(int32(at))
			}
		}
		if l.fit.meets(set) && !l.fit.within(set) {
			l.doubtful = append(l.doubtful, id)
			for len(tr.counting) <= int(id) {
				tr.counting = append(tr.counting, nil)
			}
			tr.counting[id] = set
		}
	}
}

// agree keeps those of positions at which pods of l count for others' constraints
// as they do at one of them: what is bought later of the others is then as counted.
func (tr *trial) agree(positions bitset, l *lot, at int32) {
	for _, id := range l.doubtful {
		if tr.counting[id].has(at) {
			positions.and(tr.counting[id])
		} else {
			positions.andNot(tr.counting[id])
		}
	}
}
