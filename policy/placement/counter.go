package placement

import (
	"github.com/spotter-dev/spotter/policy"
)

// A Topology counts bound pods by the domains of topology keys, as kube-scheduler does for spread
// constraints and pod affinity.
type Topology struct {
	table     *classTable
	occupancy *occupancy

	counters []counter
	spreads  []int32 // the counters of hard spread constraints

	// loading is set while addAll adds nodes.
	loading bool
}

// A counter counts pods of some templates by the domains of a topology key.
type counter struct {
	key     int32
	members bitset // by template
	live    bool   // do not count terminating pods
	hard    bool   // belongs to a hard spread constraint: the fields about domains are maintained
	private bool   // created by Track, not used by checks
	among   *among

	count []int32 // by domain
	total int32

	// nodes is the number of nodes in each domain, and domains is the number of domains with nodes.
	// hist is the number of such domains by their count of pods, and least is the smallest such
	// count.
	nodes   []int32
	domains int32
	hist    []int32
	least   int32
}

// An among restricts the nodes on which a spread constraint counts pods.
type among struct {
	owner          policy.TemplateID
	keys           []int32
	ignoreAffinity bool
	honorTaints    bool
	byClass        []int8 // 0 unknown, 1 counts, 2 does not count
}

func (tp *Topology) addCounter(t counter) int32 {
	id := int32(len(tp.counters))
	tp.counters = append(tp.counters, t)
	for u := range tp.table.kinds {
		if t.members.has(int32(u)) {
			tp.table.kinds[u].counters = append(tp.table.kinds[u].counters, id)
		}
	}
	return id
}

// sharedCounter returns the counter of all members by key on all nodes. It creates the counter if
// necessary.
func (tp *Topology) sharedCounter(key int32, members bitset) int32 {
	for i := range tp.counters {
		t := &tp.counters[i]
		if t.key == key && !t.live && t.among == nil && t.members.equal(members) {
			return int32(i)
		}
	}
	return tp.addCounter(counter{key: key, members: members})
}

// counts reports whether t counts pods on node n.
func (tp *Topology) counts(t *counter, n policy.NodeID) bool {
	a := t.among
	if a == nil {
		return true
	}
	s := &tp.occupancy.slots[n]
	if a.honorTaints && !tp.table.kinds[a.owner].bears(s.state) {
		return false
	}
	if !a.ignoreAffinity && tp.table.kinds[a.owner].byName {
		return tp.table.classCounts(a, s.class, tp.occupancy.nodes[n].host, tp.occupancy.nodes[n].name)
	}
	for len(a.byClass) < len(tp.table.classes) {
		a.byClass = append(a.byClass, 0)
	}
	if a.byClass[s.class] == 0 {
		a.byClass[s.class] = 2
		if tp.table.classCounts(a, s.class, "", "") {
			a.byClass[s.class] = 1
		}
	}
	return a.byClass[s.class] == 1
}

func (ct *classTable) classCounts(a *among, c int32, host, name string) bool {
	cl := &ct.classes[c]
	for _, key := range a.keys {
		if key != keyHost && cl.domain[key] < 0 {
			return false
		}
	}
	if a.honorTaints && !policy.TolerateAll(ct.kinds[a.owner].tolerations, cl.taints) {
		return false
	}
	if a.ignoreAffinity {
		return true
	}
	view := nodeView{cl.labels, host, name}
	return view.wantedBy(&ct.templates[a.owner])
}

// count adds delta pods of kind k on node n to the counters that include them.
func (tp *Topology) count(k *kind, n policy.NodeID, terminating bool, delta int32) {
	for _, i := range k.counters {
		t := &tp.counters[i]
		if t.live && terminating || !tp.counts(t, n) {
			continue
		}
		if d := tp.occupancy.domain(t.key, n); d >= 0 {
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

// at returns the number of pods in domain d.
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

// node records that the number of nodes in domain d changed by delta.
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

// raiseLeast raises least to the smallest count of any domain with nodes.
func (t *counter) raiseLeast() {
	if t.domains == 0 {
		t.least = 0
		return
	}
	for t.hist[t.least] == 0 {
		t.least++
	}
}

func (tp *Topology) present(n policy.NodeID, delta int32) {
	if !tp.occupancy.slots[n].state.exists() || tp.loading {
		return
	}
	for _, i := range tp.spreads {
		t := &tp.counters[i]
		if d := tp.occupancy.domain(t.key, n); d >= 0 && tp.counts(t, n) {
			t.node(d, delta)
		}
	}
}

// addAll calls add, which adds nodes to an empty space, and counts them at its end, faster than one
// by one.
func (tp *Topology) addAll(add func()) {
	tp.loading = true
	add()
	tp.loading = false
	tp.presentAll()
}

// presentAll is present for all nodes at once. Nodes of one class are added together where the
// constraint cannot distinguish them.
func (tp *Topology) presentAll() {
	if len(tp.spreads) == 0 {
		return
	}
	nodes, one := make([]int32, len(tp.table.classes)), make([]policy.NodeID, len(tp.table.classes))
	for n := range tp.occupancy.slots {
		if s := &tp.occupancy.slots[n]; s.state.exists() {
			nodes[s.class]++
			one[s.class] = policy.NodeID(n)
		}
	}
	for _, i := range tp.spreads {
		t := &tp.counters[i]
		if t.key == keyHost || t.among.honorTaints || tp.table.kinds[t.among.owner].byName {
			tp.presentEach(t)
			continue
		}
		for c, k := range nodes {
			if d := tp.table.classes[c].domain[t.key]; k > 0 && d >= 0 && tp.counts(t, one[c]) {
				t.node(d, k)
			}
		}
	}
}

// presentEach adds every node to its domain in t.
func (tp *Topology) presentEach(t *counter) {
	for n := range tp.occupancy.slots {
		if !tp.occupancy.slots[n].state.exists() || !tp.counts(t, policy.NodeID(n)) {
			continue
		}
		if d := tp.occupancy.domain(t.key, policy.NodeID(n)); d >= 0 {
			t.node(d, 1)
		}
	}
}

// A Counter is a handle for a count of pods by the domains of a topology key. The space maintains
// it for a caller, in addition to the counts for its own checks.
type Counter int32

// A Count specifies the pods that a Counter counts.
type Count struct {
	// Key is the topology key.
	Key string

	// Member reports whether pods of a template count. Terminating pods count unless Live is set.
	Member func(*policy.Template) bool
	Live   bool

	// For, unless it is nil, restricts the nodes to those that count for a spread constraint of
	// this template: those that match its selector and affinity (unless IgnoreAffinity is set),
	// whose taints it tolerates (if HonorTaints is set) and that have all of Keys as labels.
	For            *policy.Template
	IgnoreAffinity bool
	HonorTaints    bool
	Keys           []string
}

// Track starts a count and returns its handle. Pods that are already bound count too.
func (tp *Topology) Track(c Count) Counter {
	t := counter{key: tp.table.keyFor(c.Key), live: c.Live, private: true, members: tp.table.membersOf(c.Member)}
	if c.For != nil {
		t.among = &among{owner: c.For.ID, ignoreAffinity: c.IgnoreAffinity, honorTaints: c.HonorTaints}
		for _, k := range c.Keys {
			t.among.keys = append(t.among.keys, tp.table.keyFor(k))
		}
	}
	id := tp.addCounter(t)
	added := &tp.counters[id]
	for n := range tp.occupancy.slots {
		for _, b := range tp.occupancy.nodes[n].bound {
			if !added.members.has(int32(b.template)) || added.live && b.terminating {
				continue
			}
			if d := tp.occupancy.domain(added.key, policy.NodeID(n)); d >= 0 && tp.counts(added, policy.NodeID(n)) {
				added.add(d, 1)
			}
		}
	}
	return Counter(id)
}

// Domain returns the domain of node n by the key of t, a small non-negative integer, or -1 if n
// lacks the label.
func (tp *Topology) Domain(t Counter, n policy.NodeID) int32 {
	return tp.occupancy.domain(tp.counters[t].key, n)
}

// Counted returns the number of pods that t counts in domain d.
func (tp *Topology) Counted(t Counter, d int32) int32 { return tp.counters[t].at(d) }

// checkTopology checks spread constraints and pod (anti-)affinity for a node. host is its domain by
// host name, domain its domains by the other keys. If exists is false, the node has no Node object
// yet, and its domains count as if it had one.
func (tp *Topology) checkTopology(k *kind, host int32, domain []int32, exists bool) Result {
	for i := range k.terms.spreads {
		c := &k.terms.spreads[i]
		d := host
		if c.key != keyHost {
			d = domain[c.key]
		}
		if d < 0 || tp.skew(c, d, exists) > c.skewMax {
			return Skewed
		}
	}
	if len(k.terms.companions) > 0 && !tp.accompanied(k, host, domain) {
		return Lonely
	}
	if tp.anyIn(k.terms.rivals, host, domain) {
		return Repelled
	}
	if tp.anyIn(k.terms.repellers, host, domain) {
		return RepelledByPod
	}
	return OK
}

// skew returns the difference between the count of domain d with the pod and the smallest count of
// any domain.
func (tp *Topology) skew(c *spread, d int32, exists bool) int32 {
	t := &tp.counters[c.counter]
	least, domains, here := t.least, t.domains, t.at(d)
	if !exists && (int(d) >= len(t.nodes) || t.nodes[d] == 0) {
		domains++
		if domains == 1 || here < least {
			least = here
		}
	}
	if domains < c.domains {
		least = 0
	}
	return here + c.self - least
}

// accompanied reports whether required pod affinity is satisfied. A pod that matches its own terms
// may be the first one in any domain.
func (tp *Topology) accompanied(k *kind, host int32, domain []int32) bool {
	all, any := true, int32(0)
	for _, i := range k.terms.companions {
		t := &tp.counters[i]
		d := host
		if t.key != keyHost {
			d = domain[t.key]
		}
		if d < 0 {
			return false
		}
		all = all && t.at(d) > 0
		any += t.total
	}
	return all || any == 0 && k.terms.selfish
}

func (tp *Topology) anyIn(counters []int32, host int32, domain []int32) bool {
	for _, i := range counters {
		t := &tp.counters[i]
		d := host
		if t.key != keyHost {
			d = domain[t.key]
		}
		if d >= 0 && t.at(d) > 0 {
			return true
		}
	}
	return false
}
