package placement

import (
	"github.com/spotter-dev/spotter/policy"
)

// A counter counts pods of some templates by the domains of a topology key.
type counter struct {
	key     int32
	members bitset // by template
	live    bool   // terminating pods do not count
	hard    bool   // of a hard spread constraint: domains and their minimum are kept
	private bool   // kept for its owner, read by no check
	among   *among

	count []int32 // by domain
	total int32

	// nodes counts the nodes in each domain, domains those with any. hist
	// counts domains by their count, and least is the smallest such count.
	nodes   []int32
	domains int32
	hist    []int32
	least   int32
}

// An among restricts the nodes whose pods a spread constraint counts.
type among struct {
	owner          policy.TemplateID
	keys           []int32
	ignoreAffinity bool
	honorTaints    bool
	byClass        []int8 // 0 not known, 1 counts, 2 does not
}

func (sp *Space) addCounter(t counter) int32 {
	id := int32(len(sp.counters))
	sp.counters = append(sp.counters, t)
	for u := range sp.kinds {
		if t.members.has(int32(u)) {
			sp.kinds[u].counters = append(sp.kinds[u].counters, id)
		}
	}
	return id
}

// sharedCounter returns the counter of all members by key, wherever they run.
func (sp *Space) sharedCounter(key int32, members bitset) int32 {
	for i := range sp.counters {
		t := &sp.counters[i]
		if t.key == key && !t.live && t.among == nil && t.members.equal(members) {
			return int32(i)
		}
	}
	return sp.addCounter(counter{key: key, members: members})
}

// domain returns the domain of node n by key, -1 without one.
func (sp *Space) domain(key int32, n policy.NodeID) int32 {
	if key == keyHost {
		return int32(n)
	}
	return sp.classes[sp.slots[n].class].domain[key]
}

// counts reports whether t counts pods on node n.
func (sp *Space) counts(t *counter, n policy.NodeID) bool {
	a := t.among
	if a == nil {
		return true
	}
	s := &sp.slots[n]
	if a.honorTaints && !sp.kinds[a.owner].bears(s.state) {
		return false
	}
	if !a.ignoreAffinity && sp.kinds[a.owner].byName {
		return sp.classCounts(a, s.class, sp.nodes[n].host, sp.nodes[n].name)
	}
	for len(a.byClass) < len(sp.classes) {
		a.byClass = append(a.byClass, 0)
	}
	if a.byClass[s.class] == 0 {
		a.byClass[s.class] = 2
		if sp.classCounts(a, s.class, "", "") {
			a.byClass[s.class] = 1
		}
	}
	return a.byClass[s.class] == 1
}

func (sp *Space) classCounts(a *among, c int32, host, name string) bool {
	cl := &sp.classes[c]
	for _, key := range a.keys {
		if key != keyHost && cl.domain[key] < 0 {
			return false
		}
	}
	if a.honorTaints && blockedBy(cl.taints, sp.kinds[a.owner].tolerations) {
		return false
	}
	if a.ignoreAffinity {
		return true
	}
	view := nodeView{cl.labels, host, name}
	return view.wantedBy(&sp.templates[a.owner])
}

// count adds delta pods of kind k on node n to the counters that count them.
func (sp *Space) count(k *kind, n policy.NodeID, terminating bool, delta int32) {
	for _, i := range k.counters {
		t := &sp.counters[i]
		if t.live && terminating || !sp.counts(t, n) {
			continue
		}
		if d := sp.domain(t.key, n); d >= 0 {
			t.add(d, delta)
		}
	}
}

func (t *counter) reach(d int32) {
	for int(d) >= len(t.count) {
		t.count = append(t.count, make([]int32, max(8, int(d)+1-len(t.count)))...)
	}
	if t.hard && len(t.nodes) < len(t.count) {
		t.nodes = append(t.nodes, make([]int32, len(t.count)-len(t.nodes))...)
	}
}

// at returns the count of domain d.
func (t *counter) at(d int32) int32 {
	if int(d) >= len(t.count) {
		return 0
	}
	return t.count[d]
}

func (t *counter) add(d, delta int32) {
	t.reach(d)
	old := t.count[d]
	t.count[d] = old + delta
	t.total += delta
	if !t.hard || t.nodes[d] == 0 {
		return
	}
	t.bucket(old+delta, 1)
	t.bucket(old, -1)
	t.least = min(t.least, old+delta)
	t.raiseLeast()
}

// node records that domain d gained or lost a node.
func (t *counter) node(d, delta int32) {
	t.reach(d)
	had := t.nodes[d] > 0
	t.nodes[d] += delta
	switch has := t.nodes[d] > 0; {
	case has && !had:
		t.domains++
		t.bucket(t.count[d], 1)
		if t.domains == 1 || t.count[d] < t.least {
			t.least = t.count[d]
		}
	case had && !has:
		t.domains--
		t.bucket(t.count[d], -1)
		t.raiseLeast()
	}
}

func (t *counter) bucket(count, delta int32) {
	for int(count) >= len(t.hist) {
		t.hist = append(t.hist, make([]int32, 8)...)
	}
	t.hist[count] += delta
}

// raiseLeast moves least up to the smallest count that a domain has.
func (t *counter) raiseLeast() {
	if t.domains == 0 {
		t.least = 0
		return
	}
	for t.hist[t.least] == 0 {
		t.least++
	}
}

// countNode takes node n and its pods out of all counters (-1), before its labels or its
// phase change, or puts them back (1).
func (sp *Space) countNode(n policy.NodeID, delta int32) {
	s := &sp.slots[n]
	if s.state == absent {
		return
	}
	if delta > 0 {
		sp.present(n, 1)
	}
	for _, b := range sp.nodes[n].bound {
		k := &sp.kinds[b.template]
		if len(k.counters) > 0 {
			sp.count(k, n, b.terminating, delta)
		}
		if len(k.groups) > 0 {
			sp.countGroups(k, n, b.terminating, delta)
		}
	}
	if delta < 0 {
		sp.present(n, -1)
	}
}

func (sp *Space) present(n policy.NodeID, delta int32) {
	if !sp.slots[n].state.exists() || sp.loading {
		return
	}
	for _, i := range sp.spreads {
		t := &sp.counters[i]
		if d := sp.domain(t.key, n); d >= 0 && sp.counts(t, n) {
			t.node(d, delta)
		}
	}
}

// presentAll is present for all nodes at once: those of a class together, where
// a constraint does not tell them apart.
func (sp *Space) presentAll() {
	if len(sp.spreads) == 0 {
		return
	}
	nodes, one := make([]int32, len(sp.classes)), make([]policy.NodeID, len(sp.classes))
	for n := range sp.slots {
		if s := &sp.slots[n]; s.state.exists() {
			nodes[s.class]++
			one[s.class] = policy.NodeID(n)
		}
	}
	for _, i := range sp.spreads {
		t := &sp.counters[i]
		if t.key == keyHost || t.among.honorTaints || sp.kinds[t.among.owner].byName {
			sp.presentEach(t)
			continue
		}
		for c, k := range nodes {
			if d := sp.classes[c].domain[t.key]; k > 0 && d >= 0 && sp.counts(t, one[c]) {
				t.node(d, k)
			}
		}
	}
}

// presentEach adds every node to the domains of t.
func (sp *Space) presentEach(t *counter) {
	for n := range sp.slots {
		if !sp.slots[n].state.exists() || !sp.counts(t, policy.NodeID(n)) {
			continue
		}
		if d := sp.domain(t.key, policy.NodeID(n)); d >= 0 {
			t.node(d, 1)
		}
	}
}

// A Counter is a count of pods by the domains of a topology key that the space
// keeps for its owner, besides those that its own checks need.
type Counter int32

// A Count says what a Counter counts.
type Count struct {
	// Key is the topology key.
	Key string

	// Member says whether pods of a template count; terminating ones do
	// unless Live is set.
	Member func(*policy.Template) bool
	Live   bool

	// For, unless nil, restricts the nodes to those that count for a spread
	// constraint of this template: those that its selector and affinity want
	// (not with IgnoreAffinity), whose taints it tolerates (with HonorTaints)
	// and that have all of Keys.
	For            *policy.Template
	IgnoreAffinity bool
	HonorTaints    bool
	Keys           []string
}

// Track begins a count and returns its handle. Pods already bound count too.
func (sp *Space) Track(c Count) Counter {
	t := counter{key: sp.keyFor(c.Key), live: c.Live, private: true, members: sp.membersOf(c.Member)}
	if c.For != nil {
		t.among = &among{owner: c.For.ID, ignoreAffinity: c.IgnoreAffinity, honorTaints: c.HonorTaints}
		for _, k := range c.Keys {
			t.among.keys = append(t.among.keys, sp.keyFor(k))
		}
	}
	id := sp.addCounter(t)
	added := &sp.counters[id]
	for n := range sp.slots {
		for _, b := range sp.nodes[n].bound {
			if !added.members.has(int32(b.template)) || added.live && b.terminating {
				continue
			}
			if d := sp.domain(added.key, policy.NodeID(n)); d >= 0 && sp.counts(added, policy.NodeID(n)) {
				added.add(d, 1)
			}
		}
	}
	return Counter(id)
}

// Domain returns the domain of node n by the key of t, a small number, or -1
// if n has no such label.
func (sp *Space) Domain(t Counter, n policy.NodeID) int32 { return sp.domain(sp.counters[t].key, n) }

// Counted returns the pods that t counts in domain d.
func (sp *Space) Counted(t Counter, d int32) int32 { return sp.counters[t].at(d) }
