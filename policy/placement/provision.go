package placement

import (
	"cmp"
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// Provision groups pending pods onto new nodes as Karpenter does. Pods go by
// falling CPU and then memory request; each goes to the open bin with the
// fewest pods of which some remaining offer holds it too, else to a new bin of
// the first pool (in the order of the offers) that can serve it. Spread and
// affinity narrow the zone of a bin; a host is a domain of its own. Existing
// nodes are not considered: the caller has tried them.
//
// It returns the bins, and the indices of the pods that no offer holds. The
// space is used as scratch and left as it was.
func Provision(sp *Space, pods []policy.Pod, offers []Offer) (bins []Bin, unplaced []int) {
	tr := newTrial(sp, pods, offers)
	bins, unplaced, _ = tr.buy(tr.filler.provision)
	return bins, unplaced
}

// A binFiller puts pods into bins, one by one. All but fallback is scratch.
type binFiller struct {
	tr        *trial
	table     *classTable
	occupancy *occupancy
	topology  *Topology

	// fallback are the offers for pods that none of those they are to be
	// provisioned on takes; nil for none.
	fallback bitset

	// scratch of join and pin
	cand, pinned bitset
	depth        []bitset
	here, best   []int32
	bestCount    int32
}

func newBinFiller(tr *trial) binFiller {
	sp, n, keys := tr.sp, len(tr.offerTable.rank), len(tr.sp.table.keys)
	bf := binFiller{tr: tr, table: &sp.table, occupancy: &sp.occupancy, topology: &sp.topology,
		cand: newBitset(n), pinned: newBitset(n), here: make([]int32, keys), best: make([]int32, keys)}
	for range keys {
		bf.depth = append(bf.depth, newBitset(n))
	}
	return bf
}

// provision opens bins for the wanted pods and lowers want by those it placed.
// Lots that wait for a companion are tried again after the others.
func (bf *binFiller) provision(allowed bitset, want []int32) []load {
	var bins []*bin
	for i := range bf.tr.lots {
		bins = bf.provisionLot(int32(i), allowed, want, bins)
	}
	for progress := true; progress; {
		progress = false
		for i := range bf.tr.lots {
			if before := want[i]; before > 0 && bf.tr.lots[i].kind.topology {
				bins = bf.provisionLot(int32(i), allowed, want, bins)
				progress = progress || want[i] < before
			}
		}
	}
	loads := make([]load, len(bins))
	for i, b := range bins {
		loads[i] = load{parts: b.parts, alive: b.alive, times: 1, bin: b}
	}
	return loads
}

func (bf *binFiller) provisionLot(i int32, allowed bitset, want []int32, bins []*bin) []*bin {
	if want[i] == 0 {
		return bins
	}
	l := &bf.tr.lots[i]
	candidates := make([]*bin, 0, len(bins))
	for _, b := range bins {
		if within(&l.kind.requests, &b.used, &b.most) && l.fit.meets(b.alive) {
			candidates = append(candidates, b)
		}
	}
	slices.SortFunc(candidates, byPods)
	for ; want[i] > 0; want[i]-- {
		if bf.joinFirst(i, &candidates) {
			continue
		}
		b := bf.openBin(i, allowed)
		if b == nil {
			break
		}
		bins = append(bins, b)
		at, _ := slices.BinarySearchFunc(candidates, b, byPods)
		candidates = slices.Insert(candidates, at, b)
	}
	return bins
}

// byPods orders bins as Karpenter tries them: fewest pods first.
func byPods(a, b *bin) int { return cmp.Or(cmp.Compare(a.pods, b.pods), cmp.Compare(a.host, b.host)) }

// joinFirst puts a pod of lot i into the first candidate that takes it. Those
// that never will again are removed; candidates stay in their order.
func (bf *binFiller) joinFirst(i int32, candidates *[]*bin) bool {
	list := *candidates
	for at := 0; at < len(list); {
		b := list[at]
		switch bf.join(b, i) {
		case never:
			list = slices.Delete(list, at, at+1)
			*candidates = list
		case later:
			at++
		default:
			to, _ := slices.BinarySearchFunc(list[at+1:], b, byPods)
			copy(list[at:at+to], list[at+1:at+1+to])
			list[at+to] = b
			return true
		}
	}
	return false
}

// openBin returns a new bin with one pod of lot i, or nil. Where no bin of the
// allowed offers takes the pod, or no more of them are sold, it is one of the
// fallback at once: were the pod to wait for its turn after the others, they would
// be placed as if it was not there.
func (bf *binFiller) openBin(i int32, allowed bitset) *bin {
	b := bf.openBinOf(i, allowed)
	if b == nil && bf.fallback != nil && !bf.fallback.equal(allowed) {
		b = bf.openBinOf(i, bf.fallback)
	}
	return b
}

func (bf *binFiller) openBinOf(i int32, allowed bitset) *bin {
	ot, l := bf.tr.offerTable, &bf.tr.lots[i]
	for _, pool := range ot.ofPool {
		alive := slices.Clone(l.fit)
		alive.and(allowed)
		alive.and(pool)
		if alive.empty() {
			continue
		}
		b := &bin{load: load{alive: alive, times: 1}, host: int32(len(bf.occupancy.slots)) + bf.tr.bins, claim: -1}
		b.domain = make([]int32, len(bf.table.keys))
		for key := range b.domain {
			b.domain[key] = unpinned
		}
		for s := range ot.shapes {
			if ot.ofShape[s].meets(alive) {
				b.shapes = append(b.shapes, int32(s))
			}
		}
		bf.measure(b)
		if bf.join(b, i) == joinedBin {
			bf.tr.bins++
			return b
		}
	}
	return nil
}

// measure computes the most that one of the bin's shapes has of each resource.
func (bf *binFiller) measure(b *bin) {
	b.most = policy.Resources{}
	for _, s := range b.shapes {
		r := &bf.tr.offerTable.shapes[s].free
		b.most = policy.Resources{
			CPU: max(b.most.CPU, r.CPU), Memory: max(b.most.Memory, r.Memory), Storage: max(b.most.Storage, r.Storage),
			GPU: max(b.most.GPU, r.GPU), Pods: max(b.most.Pods, r.Pods),
		}
	}
}

// within reports whether requests may fit beside what is used; what is not
// asked for is not compared.
func within(requests, used, most *policy.Resources) bool {
	return used.Pods+requests.Pods <= most.Pods &&
		(requests.CPU == 0 || used.CPU+requests.CPU <= most.CPU) &&
		(requests.Memory == 0 || used.Memory+requests.Memory <= most.Memory) &&
		(requests.Storage == 0 || used.Storage+requests.Storage <= most.Storage) &&
		(requests.GPU == 0 || used.GPU+requests.GPU <= most.GPU)
}

// An outcome says what became of a pod offered to a bin.
type outcome uint8

const (
	joinedBin outcome = iota
	later             // not as pods are spread now
	never
)

// join puts one pod of lot i into b if some remaining offer holds it too.
func (bf *binFiller) join(b *bin, i int32) outcome {
	ot, l := bf.tr.offerTable, &bf.tr.lots[i]
	k := l.kind
	if !within(&k.requests, &b.used, &b.most) || b.portTaken(k) {
		return never
	}
	volumes := b.volumes + k.volumes.own
	for _, c := range k.volumes.claims {
		if c.once && bf.occupancy.claims[c.id].users > 0 {
			return never
		}
		if !slices.Contains(b.claims, c.id) {
			volumes++
		}
	}
	known := !slices.ContainsFunc(l.keys, func(key int32) bool { return b.domain[key] == unpinned })
	if known && k.topology && bf.topology.checkTopology(k, b.host, b.domain, newNode) != OK {
		return later
	}
	need, gpu := b.used.Plus(k.requests), max(b.gpu, k.gpu)
	if b.gpu != 0 && k.gpu != 0 && b.gpu != k.gpu {
		return never
	}
	cand := bf.cand
	copy(cand, b.alive)
	cand.and(l.fit)
	for _, s := range b.shapes {
		if !ot.shapes[s].holds(&need, gpu, volumes) {
			cand.andNot(ot.ofShape[s])
		}
	}
	switch {
	case cand.empty():
		return never
	case known:
	case bf.pin(b, l):
		cand = bf.pinned
	default:
		return later
	}
	at := bf.tr.spare(b, cand)
	if at < 0 {
		return later
	}
	if !known {
		copy(b.domain, bf.best)
	}
	bf.tr.added.agree(cand, l, at)
	bf.tr.lay(b, at)
	b.used, b.gpu, b.volumes = need, gpu, volumes
	bf.commit(b, i, cand)
	return joinedBin
}

func (b *bin) portTaken(k *kind) bool {
	for _, t := range k.ports {
		if slices.Contains(b.templates, t) {
			return true
		}
	}
	return false
}

// commit records that a pod of lot i joined b and that alive remain.
func (bf *binFiller) commit(b *bin, i int32, alive bitset) {
	ot, l := bf.tr.offerTable, &bf.tr.lots[i]
	k := l.kind
	if !b.alive.equal(alive) {
		copy(b.alive, alive)
		b.shapes = slices.DeleteFunc(b.shapes, func(s int32) bool { return !ot.ofShape[s].meets(alive) })
		bf.measure(b)
	}
	b.pods++
	if n := len(b.parts); n > 0 && b.parts[n-1].lot == i {
		b.parts[n-1].n++
	} else {
		b.parts = append(b.parts, part{i, 1})
	}
	if k.ports != nil {
		b.templates = append(b.templates, l.template)
	}
	for _, c := range k.volumes.claims {
		bf.occupancy.claims[c.id].users++
		b.claims = appendOnce(b.claims, c.id)
	}
	for _, id := range k.counters {
		t := &bf.topology.counters[id]
		if t.private || !bf.countsIn(t, l, b) {
			continue
		}
		d := b.host
		if t.key != keyHost {
			d = b.domain[t.key]
		}
		if d >= 0 {
			t.add(d, 1)
			b.counts = append(b.counts, presence{id, d})
		}
	}
}

// countsIn reports whether t counts pods of l in b. Where the offers that
// remain differ in that, a count by host takes the pod in, which can only
// refuse more later; for other keys they do not differ.
func (bf *binFiller) countsIn(t *counter, l *lot, b *bin) bool {
	if t.among == nil || t.among.owner == l.template {
		return true
	}
	if t.key != keyHost {
		return bf.table.classCounts(t.among, bf.tr.offerTable.class[b.claim], "", "")
	}
	for at := b.alive.next(0); at >= 0; at = b.alive.next(at + 1) {
		if bf.table.classCounts(t.among, bf.tr.offerTable.class[at], "", "") {
			return true
		}
	}
	return false
}

// pin seeks the domains of l's keys, of those that tr.cand offers, in which a
// pod of l may join b: those with the fewest pods that its spread constraints
// count, then those with the cheapest offer. It leaves them in tr.best, and
// the positions that have them in tr.pinned.
func (bf *binFiller) pin(b *bin, l *lot) bool {
	copy(bf.here, b.domain)
	bf.bestCount = -1
	bf.descend(b, l, 0, bf.cand)
	return bf.bestCount >= 0
}

func (bf *binFiller) descend(b *bin, l *lot, depth int, cand bitset) {
	if depth == len(l.keys) {
		bf.weigh(b, l, cand)
		return
	}
	key := l.keys[depth]
	if bf.here[key] != unpinned {
		bf.descend(b, l, depth+1, cand)
		return
	}
	for d, positions := range bf.tr.offerTable.ofDomain[key] {
		if !cand.meets(positions) {
			continue
		}
		sub := bf.depth[depth]
		copy(sub, cand)
		sub.and(positions)
		bf.here[key] = int32(d - 1)
		bf.descend(b, l, depth+1, sub)
	}
	bf.here[key] = unpinned
}

func (bf *binFiller) weigh(b *bin, l *lot, cand bitset) {
	if bf.tr.spare(b, cand) < 0 {
		return
	}
	if l.kind.topology && bf.topology.checkTopology(l.kind, b.host, bf.here, newNode) != OK {
		return
	}
	count := int32(0)
	for _, c := range l.kind.terms.spreads {
		if c.key != keyHost {
			count += bf.topology.counters[c.counter].at(bf.here[c.key])
		}
	}
	if bf.bestCount < 0 || count < bf.bestCount ||
		count == bf.bestCount && cand.next(0) < bf.pinned.next(0) {
		bf.bestCount = count
		copy(bf.best, bf.here)
		copy(bf.pinned, cand)
	}
}
